"""How a Job stands: which indexes are done or have failed, and how it ends by its limits and policies.

Pure functions of the Job and its pods; `jobs` acts on what they say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from bayplan.apiserver.protocol.encoding import Json, parse_timestamp
from bayplan.apiserver.simulation.controllers.pod_tally import OwnedPods, PodFacts
from bayplan.apiserver.storage.store import Key

INDEX = "batch.kubernetes.io/job-completion-index"
_FAIL_JOB, _FAIL_INDEX, _IGNORE = "FailJob", "FailIndex", "Ignore"
Verdict = tuple[str, str, str]
"""`Complete` or `Failed`, the reason and the message."""


@dataclass
class JobProgress:
    """What the pods of a Job have come to."""

    succeeded: int = 0
    failed: int = 0
    """Failed pods that count: those that a policy ignores do not."""
    completed_indexes: set[int] = field(default_factory=set)
    failed_indexes: set[int] = field(default_factory=set)
    failures: Counter[int] = field(default_factory=Counter)
    """Failed pods that count, by index."""
    failure_target: str = ""
    """Why a pod failure policy ends the Job, if one does."""


def progress(job: Json, pods: OwnedPods, read: Callable[[Key], Json | None]) -> JobProgress:
    """Count the pods; only those that a failure policy has to judge are read."""
    spec = job["spec"]
    found = JobProgress(pods.in_phase("Succeeded"), pods.in_phase("Failed"))
    rules = (spec.get("podFailurePolicy") or {}).get("rules") or []
    if spec.get("completionMode") != "Indexed" and not rules:
        return found
    for key, facts in pods.by_key.items():
        if facts.phase == "Succeeded":
            found.completed_indexes.add(index_of(facts))
        elif facts.phase == "Failed":
            _count_failure(found, index_of(facts), *_judged(rules, read(key) if rules else None))
    limit = spec.get("backoffLimitPerIndex")
    if limit is not None:
        found.failed_indexes |= {index for index, count in found.failures.items() if count > limit}
    found.failed_indexes -= found.completed_indexes
    return found


def _count_failure(found: JobProgress, index: int, action: str, message: str) -> None:
    if action == _IGNORE:
        found.failed -= 1
        return
    found.failures[index] += 1
    if action == _FAIL_INDEX:
        found.failed_indexes.add(index)
    elif action == _FAIL_JOB:
        found.failure_target = found.failure_target or message


def _judged(rules: list[Json], pod: Json | None) -> tuple[str, str]:
    """The action of the first rule that a failed pod matches, and a sentence about it."""
    if pod is None:
        return "", ""
    whole_name = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
    for number, rule in enumerate(rules):
        where = f"matching {rule['action']} rule at index {number}"
        container = _matching_container(rule.get("onExitCodes") or {}, pod)
        if container is not None:
            code = container["state"]["terminated"]["exitCode"]
            message = f"Container {container['name']} for pod {whole_name} failed with exit code {code} {where}"
            return rule["action"], message
        condition = _matching_condition(rule.get("onPodConditions") or [], pod)
        if condition is not None:
            return rule["action"], f"Pod {whole_name} has condition {condition} {where}"
    return "", ""


def _matching_container(wanted: Json, pod: Json) -> Json | None:
    if not wanted:
        return None
    status = pod.get("status", {})
    for container in [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]:
        code = (container.get("state", {}).get("terminated") or {}).get("exitCode", 0)
        if code == 0 or wanted.get("containerName") not in (None, container["name"]):
            continue
        if (code in wanted["values"]) is (wanted["operator"] == "In"):
            return container  # type: ignore[no-any-return]
    return None


def _matching_condition(patterns: list[Json], pod: Json) -> str | None:
    conditions = {one["type"]: one["status"] for one in pod.get("status", {}).get("conditions") or ()}
    return next((one["type"] for one in patterns if conditions.get(one["type"]) == one.get("status", "True")), None)


def verdict(job: Json, pods: OwnedPods, standing: JobProgress, now: float) -> Verdict | None:
    """How the Job ends, or None while it goes on."""
    spec = job["spec"]
    failure = _failure(job, standing, now)
    if failure is not None:
        return failure
    matched = _matched_success_rule(spec, standing)
    if matched is not None:
        return ("Complete", "SuccessPolicy", f"Matched rules at index {matched}")
    completions = spec.get("completions")
    if completions is None:
        reached = standing.succeeded > 0 and not pods.active
    elif spec.get("backoffLimitPerIndex") is not None:
        reached = len(standing.completed_indexes) + len(standing.failed_indexes) >= completions
    else:
        reached = standing.succeeded >= completions
    if reached and standing.failed_indexes:
        return ("Failed", "FailedIndexes", "Job has failed indexes")
    return ("Complete", "CompletionsReached", "Reached expected number of succeeded pods") if reached else None


def _failure(job: Json, standing: JobProgress, now: float) -> Verdict | None:
    spec = job["spec"]
    if standing.failure_target:
        return ("Failed", "PodFailurePolicy", standing.failure_target)
    if standing.failed > spec.get("backoffLimit", 6):
        return ("Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit")
    started = job.get("status", {}).get("startTime")
    deadline = spec.get("activeDeadlineSeconds")
    if started and deadline is not None and parse_timestamp(started) + deadline <= now:
        return ("Failed", "DeadlineExceeded", "Job was active longer than specified deadline")
    most = spec.get("maxFailedIndexes")
    if most is not None and len(standing.failed_indexes) > most:
        message = "Job has exceeded the specified maximal number of failed indexes"
        return ("Failed", "MaxFailedIndexesExceeded", message)
    return None


def _matched_success_rule(spec: Json, standing: JobProgress) -> int | None:
    for number, rule in enumerate((spec.get("successPolicy") or {}).get("rules") or ()):
        done, wanted = standing.completed_indexes, rule.get("succeededIndexes")
        if wanted is not None:
            chosen = parse_indexes(wanted)
            done, enough = done & chosen, rule.get("succeededCount", len(chosen))
        else:
            enough = rule["succeededCount"]
        if len(done) >= enough:
            return number
    return None


def index_of(pod: PodFacts) -> int:
    text = pod.labels.get(INDEX, "-1")
    return int(text) if text.isdecimal() else -1


def parse_indexes(text: str) -> set[int]:
    """The numbers of `1,3-5`."""
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found


def format_indexes(indexes: Iterable[int]) -> str:
    """Numbers as the status of a Job spells them: `1,3-5`."""
    runs: list[list[int]] = []
    for index in sorted(indexes):
        if runs and runs[-1][1] == index - 1:
            runs[-1][1] = index
        else:
            runs.append([index, index])
    shown = (
        str(first) if first == last else f"{first}{',' if last == first + 1 else '-'}{last}" for first, last in runs
    )
    return ",".join(shown)
