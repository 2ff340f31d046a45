"""Jobs: pods until enough of them have succeeded, or too many have failed."""

from __future__ import annotations

from bayplan.apiserver.protocol.encoding import Json, parse_timestamp
from bayplan.apiserver.simulation.controllers.base import Controller
from bayplan.apiserver.simulation.controllers.job_outcome import (
    INDEX,
    JobProgress,
    Verdict,
    format_indexes,
    index_of,
    progress,
    verdict,
)
from bayplan.apiserver.simulation.controllers.pod_tally import OwnedPods
from bayplan.apiserver.simulation.controllers.pods import first_to_remove, is_active, key_of, pod_from_template
from bayplan.apiserver.storage.store import Key

_FAILURE_COUNT = "batch.kubernetes.io/job-index-failure-count"
_FINAL = ("Complete", "Failed")
_OWN = (*_FINAL, "SuccessCriteriaMet", "FailureTarget", "Suspended")


class Jobs(Controller):
    """Runs Jobs to their end."""

    name = "job-controller"
    primary = "jobs.batch"
    watches = ("pods",)
    adopts = "pods"

    def reconcile(self, key: Key) -> float | None:
        job = self.client.get(self.primary, key)
        if job is None or "deletionTimestamp" in job["metadata"]:
            return None
        if finished_as(job):
            return self._expire(key, job)
        self.claims.settle(job)
        pods = self.client.pods.of(job["metadata"]["uid"])
        standing = progress(job, pods, lambda pod: self.client.get("pods", pod))
        ending = verdict(job, pods, standing, self.client.clock.now())
        if ending or job["spec"].get("suspend"):
            for name, pod in pods.in_order():
                if pod.is_active:
                    self.client.delete_pod(job, name)
        else:
            self._adjust(job, pods, standing)
        self._write_status(key, job, standing, ending)
        if ending:
            self._tell(job, ending)
        return self._deadline(job)

    def _tell(self, job: Json, ending: Verdict) -> None:
        kind, reason, message = ending
        if kind == "Complete":
            self.client.event(job, "Completed", "Job completed")
        else:
            self.client.event(job, reason, message, is_warning=True)

    def _adjust(self, job: Json, pods: OwnedPods, standing: JobProgress) -> None:
        spec = job["spec"]
        active = pods.active
        wanted = spec.get("parallelism", 1)
        if spec.get("completions") is not None:
            wanted = min(wanted, spec["completions"] - standing.succeeded - len(standing.failed_indexes))
        elif standing.succeeded:
            wanted = active
        if active > wanted:
            running = [pod for pod in self.client.owned("pods", job["metadata"]["uid"]) if is_active(pod)]
            for pod in first_to_remove(running)[: active - wanted]:
                self.client.delete_pod(job, key_of(pod))
        if active < wanted:
            indexes = _free_indexes(job, pods, standing)
            for _ in range(wanted - active):
                self.client.create_pod(job, _job_pod(job, indexes.pop(0) if indexes else None, standing))

    def _write_status(self, key: Key, job: Json, standing: JobProgress, ending: Verdict | None) -> None:
        pods, spec = self.client.pods.of(job["metadata"]["uid"]), job["spec"]
        now = self.client.now()
        status: Json = {"startTime": job.get("status", {}).get("startTime", now)}
        status |= {"active": pods.active} if pods.active else {}
        status |= {"ready": pods.ready, "terminating": 0, "uncountedTerminatedPods": {}}
        status |= {"succeeded": standing.succeeded} if standing.succeeded else {}
        status |= {"failed": standing.failed} if standing.failed else {}
        if spec.get("completionMode") == "Indexed":
            done = format_indexes(standing.completed_indexes)
            status |= {"completedIndexes": done} if done else {}
        if spec.get("backoffLimitPerIndex") is not None:
            status["failedIndexes"] = format_indexes(standing.failed_indexes)
        if ending:
            kind, reason, message = ending
            status["conditions"] = [
                *_of_others(job),
                _condition("SuccessCriteriaMet" if kind == "Complete" else "FailureTarget", reason, message, now),
                _condition(kind, reason, message, now),
            ]
            status |= {"completionTime": now} if kind == "Complete" else {}
        elif spec.get("suspend"):
            status["conditions"] = [*_of_others(job), _condition("Suspended", "JobSuspended", "Job suspended", now)]
            status.pop("startTime")
        elif _of_others(job):
            status["conditions"] = _of_others(job)
        if job.get("status") != status:
            self.client.set_status(self.primary, key, status)

    def _expire(self, key: Key, job: Json) -> float | None:
        seconds = job["spec"].get("ttlSecondsAfterFinished")
        if seconds is None:
            return None
        finished = job["status"].get("completionTime") or job["status"]["conditions"][-1]["lastTransitionTime"]
        left: float = parse_timestamp(finished) + seconds - self.client.clock.now()
        if left > 0:
            return left
        self.client.delete(self.primary, key)
        return None

    def _deadline(self, job: Json) -> float | None:
        seconds = job["spec"].get("activeDeadlineSeconds")
        started = job.get("status", {}).get("startTime")
        if seconds is None:
            return None
        begin = parse_timestamp(started) if started else self.client.clock.now()
        left: float = begin + seconds - self.client.clock.now()
        return max(0.5, left)


def finished_as(job: Json) -> str:
    """`Complete` or `Failed`; empty while the Job is not finished."""
    conditions = job.get("status", {}).get("conditions") or ()
    return next((c["type"] for c in conditions if c.get("type") in _FINAL and c.get("status") == "True"), "")


def _free_indexes(job: Json, pods: OwnedPods, standing: JobProgress) -> list[int]:
    if job["spec"].get("completionMode") != "Indexed":
        return []
    taken = {index_of(pod) for pod in pods.by_key.values() if pod.is_active}
    taken |= standing.completed_indexes | standing.failed_indexes
    return [index for index in range(job["spec"].get("completions") or 0) if index not in taken]


def _job_pod(job: Json, index: int | None, standing: JobProgress) -> Json:
    pod = pod_from_template(job["spec"]["template"], job)
    if index is not None:
        annotations = pod["metadata"].setdefault("annotations", {})
        annotations[INDEX] = str(index)
        if job["spec"].get("backoffLimitPerIndex") is not None:
            annotations[_FAILURE_COUNT] = str(standing.failures[index])
        pod["metadata"]["labels"][INDEX] = str(index)
        pod["metadata"]["generateName"] = f"{job['metadata']['name']}-{index}-"
        pod["spec"].setdefault("hostname", f"{job['metadata']['name']}-{index}")
    return pod


def _of_others(job: Json) -> list[Json]:
    """Conditions that another client has written."""
    return [c for c in job.get("status", {}).get("conditions") or () if c.get("type") not in _OWN]


def _condition(kind: str, reason: str, message: str, now: str) -> Json:
    return {
        "type": kind,
        "status": "True",
        "lastProbeTime": now,
        "lastTransitionTime": now,
        "reason": reason,
        "message": message,
    }
