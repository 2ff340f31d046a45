"""Jobs: pods until enough of them have succeeded, or too many have failed."""

from __future__ import annotations

from bayplan.apiserver.controllers.base import Controller
from bayplan.apiserver.controllers.pods import first_to_remove, is_active, is_ready, key_of, phase, pod_from_template
from bayplan.apiserver.encoding import Json, parse_timestamp
from bayplan.apiserver.store import Key

INDEX = "batch.kubernetes.io/job-completion-index"
_FINAL = ("Complete", "Failed")


class Jobs(Controller):
    """Runs Jobs to their end."""

    name = "job-controller"
    primary = "jobs.batch"
    watches = ("pods",)

    def reconcile(self, key: Key) -> float | None:
        job = self.bench.get(self.primary, key)
        if job is None or "deletionTimestamp" in job["metadata"]:
            return None
        if _finished(job):
            return self._expire(key, job)
        pods = self.bench.owned("pods", job["metadata"]["uid"])
        active = [pod for pod in pods if is_active(pod)]
        verdict = _verdict(job, pods, self.bench.clock.now())
        if verdict or job["spec"].get("suspend"):
            for pod in active:
                self.bench.delete("pods", key_of(pod))
            active = []
        else:
            self._adjust(job, pods, active)
        self._write_status(key, job, verdict)
        return self._deadline(job)

    def _adjust(self, job: Json, pods: list[Json], active: list[Json]) -> None:
        spec = job["spec"]
        succeeded = sum(phase(pod) == "Succeeded" for pod in pods)
        wanted = spec.get("parallelism", 1)
        if spec.get("completions") is not None:
            wanted = min(wanted, spec["completions"] - succeeded)
        elif succeeded:
            wanted = len(active)
        for pod in first_to_remove(active)[: max(0, len(active) - wanted)]:
            self.bench.delete("pods", key_of(pod))
        indexes = _free_indexes(job, pods)
        for _ in range(wanted - len(active)):
            self.bench.create(_job_pod(job, indexes.pop(0) if indexes else None))

    def _write_status(self, key: Key, job: Json, verdict: tuple[str, str, str] | None) -> None:
        pods = self.bench.owned("pods", job["metadata"]["uid"])
        active = [pod for pod in pods if is_active(pod)]
        succeeded = sum(phase(pod) == "Succeeded" for pod in pods)
        now = self.bench.now()
        status: Json = {"startTime": job.get("status", {}).get("startTime", now)}
        status |= {"active": len(active)} if active else {}
        status |= {"ready": sum(is_ready(pod) for pod in active), "terminating": 0, "uncountedTerminatedPods": {}}
        status |= {"succeeded": succeeded} if succeeded else {}
        failed = sum(phase(pod) == "Failed" for pod in pods)
        status |= {"failed": failed} if failed else {}
        if job["spec"].get("completionMode") == "Indexed" and succeeded:
            done = sorted({_index(pod) for pod in pods if phase(pod) == "Succeeded"})
            status["completedIndexes"] = ",".join(str(index) for index in done)
        if verdict:
            kind, reason, message = verdict
            status["conditions"] = [
                _condition("SuccessCriteriaMet" if kind == "Complete" else "FailureTarget", reason, message, now),
                _condition(kind, reason, message, now),
            ]
            status |= {"completionTime": now} if kind == "Complete" else {}
        elif job["spec"].get("suspend"):
            status["conditions"] = [_condition("Suspended", "JobSuspended", "Job suspended", now)]
            status.pop("startTime")
        if job.get("status") != status:
            self.bench.set_status(self.primary, key, status)

    def _expire(self, key: Key, job: Json) -> float | None:
        seconds = job["spec"].get("ttlSecondsAfterFinished")
        if seconds is None:
            return None
        finished = job["status"].get("completionTime") or job["status"]["conditions"][-1]["lastTransitionTime"]
        left: float = parse_timestamp(finished) + seconds - self.bench.clock.now()
        if left > 0:
            return left
        self.bench.delete(self.primary, key)
        return None

    def _deadline(self, job: Json) -> float | None:
        seconds = job["spec"].get("activeDeadlineSeconds")
        started = job.get("status", {}).get("startTime")
        if seconds is None:
            return None
        begin = parse_timestamp(started) if started else self.bench.clock.now()
        left: float = begin + seconds - self.bench.clock.now()
        return max(0.5, left)


def _finished(job: Json) -> bool:
    conditions = job.get("status", {}).get("conditions") or ()
    return any(c.get("type") in _FINAL and c.get("status") == "True" for c in conditions)


def _verdict(job: Json, pods: list[Json], now: float) -> tuple[str, str, str] | None:
    spec = job["spec"]
    succeeded = sum(phase(pod) == "Succeeded" for pod in pods)
    failed = sum(phase(pod) == "Failed" for pod in pods)
    if failed > spec.get("backoffLimit", 6):
        return ("Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit")
    started = job.get("status", {}).get("startTime")
    deadline = spec.get("activeDeadlineSeconds")
    if started and deadline is not None and parse_timestamp(started) + deadline <= now:
        return ("Failed", "DeadlineExceeded", "Job was active longer than specified deadline")
    completions = spec.get("completions")
    reached = succeeded >= completions if completions is not None else succeeded and not any(map(is_active, pods))
    if reached:
        return ("Complete", "CompletionsReached", "Reached expected number of succeeded pods")
    return None


def _index(pod: Json) -> int:
    text = (pod["metadata"].get("annotations") or {}).get(INDEX, "-1")
    return int(text) if text.isdigit() else -1


def _free_indexes(job: Json, pods: list[Json]) -> list[int]:
    if job["spec"].get("completionMode") != "Indexed":
        return []
    taken = {_index(pod) for pod in pods if is_active(pod) or phase(pod) == "Succeeded"}
    return [index for index in range(job["spec"].get("completions") or 0) if index not in taken]


def _job_pod(job: Json, index: int | None) -> Json:
    pod = pod_from_template(job["spec"]["template"], job)
    if index is not None:
        pod["metadata"].setdefault("annotations", {})[INDEX] = str(index)
        pod["metadata"]["labels"][INDEX] = str(index)
        pod["metadata"]["generateName"] = f"{job['metadata']['name']}-{index}-"
    return pod


def _condition(kind: str, reason: str, message: str, now: str) -> Json:
    return {
        "type": kind,
        "status": "True",
        "lastProbeTime": now,
        "lastTransitionTime": now,
        "reason": reason,
        "message": message,
    }
