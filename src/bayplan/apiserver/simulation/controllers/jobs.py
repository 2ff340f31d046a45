"""Jobs: pods until enough of them have succeeded, or too many have failed."""

from __future__ import annotations

from bayplan.apiserver.protocol.encoding import Json, parse_timestamp
from bayplan.apiserver.simulation.controllers.base import Controller
from bayplan.apiserver.simulation.controllers.pod_tally import OwnedPods, PodFacts
from bayplan.apiserver.simulation.controllers.pods import first_to_remove, is_active, key_of, pod_from_template
from bayplan.apiserver.storage.store import Key

INDEX = "batch.kubernetes.io/job-completion-index"
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
        verdict = _verdict(job, pods, self.client.clock.now())
        if verdict or job["spec"].get("suspend"):
            for name, pod in pods.in_order():
                if pod.is_active:
                    self.client.delete_pod(job, name)
        else:
            self._adjust(job, pods)
        self._write_status(key, job, verdict)
        if verdict:
            self._tell(job, verdict)
        return self._deadline(job)

    def _tell(self, job: Json, verdict: tuple[str, str, str]) -> None:
        kind, reason, message = verdict
        if kind == "Complete":
            self.client.event(job, "Completed", "Job completed")
        else:
            self.client.event(job, reason, message, is_warning=True)

    def _adjust(self, job: Json, pods: OwnedPods) -> None:
        spec = job["spec"]
        active, succeeded = pods.active, pods.in_phase("Succeeded")
        wanted = spec.get("parallelism", 1)
        if spec.get("completions") is not None:
            wanted = min(wanted, spec["completions"] - succeeded)
        elif succeeded:
            wanted = active
        if active > wanted:
            running = [pod for pod in self.client.owned("pods", job["metadata"]["uid"]) if is_active(pod)]
            for pod in first_to_remove(running)[: active - wanted]:
                self.client.delete_pod(job, key_of(pod))
        if active < wanted:
            indexes = _free_indexes(job, pods)
            for _ in range(wanted - active):
                self.client.create_pod(job, _job_pod(job, indexes.pop(0) if indexes else None))

    def _write_status(self, key: Key, job: Json, verdict: tuple[str, str, str] | None) -> None:
        pods = self.client.pods.of(job["metadata"]["uid"])
        succeeded, failed = pods.in_phase("Succeeded"), pods.in_phase("Failed")
        now = self.client.now()
        status: Json = {"startTime": job.get("status", {}).get("startTime", now)}
        status |= {"active": pods.active} if pods.active else {}
        status |= {"ready": pods.ready, "terminating": 0, "uncountedTerminatedPods": {}}
        status |= {"succeeded": succeeded} if succeeded else {}
        status |= {"failed": failed} if failed else {}
        if job["spec"].get("completionMode") == "Indexed" and succeeded:
            done = sorted({_index(pod) for pod in pods.by_key.values() if pod.phase == "Succeeded"})
            status["completedIndexes"] = ",".join(str(index) for index in done)
        if verdict:
            kind, reason, message = verdict
            status["conditions"] = [
                *_of_others(job),
                _condition("SuccessCriteriaMet" if kind == "Complete" else "FailureTarget", reason, message, now),
                _condition(kind, reason, message, now),
            ]
            status |= {"completionTime": now} if kind == "Complete" else {}
        elif job["spec"].get("suspend"):
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


def _verdict(job: Json, pods: OwnedPods, now: float) -> tuple[str, str, str] | None:
    spec = job["spec"]
    succeeded = pods.in_phase("Succeeded")
    if pods.in_phase("Failed") > spec.get("backoffLimit", 6):
        return ("Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit")
    started = job.get("status", {}).get("startTime")
    deadline = spec.get("activeDeadlineSeconds")
    if started and deadline is not None and parse_timestamp(started) + deadline <= now:
        return ("Failed", "DeadlineExceeded", "Job was active longer than specified deadline")
    completions = spec.get("completions")
    reached = succeeded >= completions if completions is not None else succeeded and not pods.active
    if reached:
        return ("Complete", "CompletionsReached", "Reached expected number of succeeded pods")
    return None


def _index(pod: PodFacts) -> int:
    text = pod.labels.get(INDEX, "-1")
    return int(text) if text.isdigit() else -1


def _free_indexes(job: Json, pods: OwnedPods) -> list[int]:
    if job["spec"].get("completionMode") != "Indexed":
        return []
    taken = {_index(pod) for pod in pods.by_key.values() if pod.is_active or pod.phase == "Succeeded"}
    return [index for index in range(job["spec"].get("completions") or 0) if index not in taken]


def _job_pod(job: Json, index: int | None) -> Json:
    pod = pod_from_template(job["spec"]["template"], job)
    if index is not None:
        pod["metadata"].setdefault("annotations", {})[INDEX] = str(index)
        pod["metadata"]["labels"][INDEX] = str(index)
        pod["metadata"]["generateName"] = f"{job['metadata']['name']}-{index}-"
        pod["spec"].setdefault("hostname", f"{job['metadata']['name']}-{index}")
    return pod


def _of_others(job: Json) -> list[Json]:
    """Conditions that somebody else has written."""
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
