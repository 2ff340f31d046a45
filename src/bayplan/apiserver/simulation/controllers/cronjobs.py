"""CronJobs: a Job at each time of a schedule."""

from __future__ import annotations

from bayplan.apiserver.kinds.cron_schedule import Schedule
from bayplan.apiserver.protocol.encoding import Json, parse_timestamp, timestamp
from bayplan.apiserver.simulation.controllers.base import Controller
from bayplan.apiserver.simulation.controllers.jobs import finished_as
from bayplan.apiserver.simulation.controllers.pods import copy_of, key_of, owner_reference
from bayplan.apiserver.storage.store import Key

JOBS = "jobs.batch"
SCHEDULED_AT = "batch.kubernetes.io/cronjob-scheduled-timestamp"
_MAX_MISSED = 100


class CronJobs(Controller):
    """Starts Jobs on time, and removes old ones."""

    name = "cronjob-controller"
    primary = "cronjobs.batch"
    watches = (JOBS,)

    def reconcile(self, key: Key) -> float | None:
        cron = self.client.get(self.primary, key)
        if cron is None or "deletionTimestamp" in cron["metadata"]:
            return None
        jobs = self.client.owned(JOBS, cron["metadata"]["uid"])
        self._trim(cron, jobs)
        started = self._start_due(cron, jobs)
        jobs = self.client.owned(JOBS, cron["metadata"]["uid"]) if started else jobs
        self._write_status(key, cron, jobs, started)
        if cron["spec"].get("suspend"):
            return None
        following = self._next(cron, self.client.clock.now())
        return None if following is None else max(0.1, following - self.client.clock.now())

    def _next(self, cron: Json, after: float) -> float | None:
        return Schedule.parse(cron["spec"]["schedule"]).next_after(after, cron["spec"].get("timeZone") or "")

    def _start_due(self, cron: Json, jobs: list[Json]) -> float | None:
        """Start the latest Job that is due; returns the time it was due."""
        if cron["spec"].get("suspend"):
            return None
        due = self._latest_due(cron)
        if due is None:
            return None
        running = [job for job in jobs if not finished_as(job)]
        if running and cron["spec"]["concurrencyPolicy"] == "Forbid":
            message = "Not starting job because prior execution is running and concurrency policy is Forbid"
            self.client.event(cron, "JobAlreadyActive", message)
            return None
        if cron["spec"]["concurrencyPolicy"] == "Replace":
            for job in running:
                self.client.delete(JOBS, key_of(job))
        made = _job(cron, due)
        if self.client.store.get(JOBS, cron["metadata"]["namespace"], made["metadata"]["name"]) is None:
            self.client.create(made)
            self.client.event(cron, "SuccessfulCreate", f"Created job {made['metadata']['name']}")
        return due

    def _latest_due(self, cron: Json) -> float | None:
        now = self.client.clock.now()
        last = (cron.get("status") or {}).get("lastScheduleTime") or cron["metadata"]["creationTimestamp"]
        earliest = parse_timestamp(last)
        deadline = cron["spec"].get("startingDeadlineSeconds")
        if deadline is not None:
            earliest = max(earliest, now - deadline)
        due, found = None, self._next(cron, earliest)
        for _ in range(_MAX_MISSED):
            if found is None or found > now:
                break
            due, found = found, self._next(cron, found)
        return due

    def _trim(self, cron: Json, jobs: list[Json]) -> None:
        """Delete finished Jobs beyond the history limits, oldest first."""
        for kind, field in (("Complete", "successfulJobsHistoryLimit"), ("Failed", "failedJobsHistoryLimit")):
            over = sorted((job for job in jobs if finished_as(job) == kind), key=_age)
            for job in over[: max(0, len(over) - cron["spec"][field])]:
                self.client.delete(JOBS, key_of(job))

    def _write_status(self, key: Key, cron: Json, jobs: list[Json], started: float | None) -> None:
        status: Json = dict(cron.get("status") or {})
        active = [_reference(job) for job in jobs if not finished_as(job)]
        status.pop("active", None)
        status |= {"active": active} if active else {}
        status |= {"lastScheduleTime": timestamp(started)} if started is not None else {}
        done = [job["status"]["completionTime"] for job in jobs if finished_as(job) == "Complete"]
        status |= {"lastSuccessfulTime": max(done)} if done else {}
        if (cron.get("status") or {}) != status:
            self.client.set_status(self.primary, key, status)


def _job(cron: Json, due: float) -> Json:
    template = copy_of(cron["spec"]["jobTemplate"])
    given = template.get("metadata") or {}
    metadata = {
        "name": f"{cron['metadata']['name']}-{int(due // 60)}",
        "namespace": cron["metadata"]["namespace"],
        "labels": given.get("labels") or {},
        "annotations": {**(given.get("annotations") or {}), SCHEDULED_AT: timestamp(due)},
        "ownerReferences": [owner_reference(cron)],
    }
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": template.get("spec") or {}}


def _age(job: Json) -> tuple[float, str]:
    return parse_timestamp(job["metadata"]["creationTimestamp"]), job["metadata"]["name"]


def _reference(job: Json) -> Json:
    metadata = job["metadata"]
    reference = {"apiVersion": "batch/v1", "kind": "Job", "name": metadata["name"], "namespace": metadata["namespace"]}
    return reference | {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
