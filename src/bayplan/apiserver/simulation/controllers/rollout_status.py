"""The status of a Deployment: its counts, whether it is available, and how its rollout gets on.

A rollout makes progress while the counts of its pods change for the better; one that has made none for as long as its
deadline has failed, until it goes on.
"""

from __future__ import annotations

from bayplan.apiserver.protocol.encoding import Json, parse_timestamp, timestamp

_NO_DEADLINE = 2**31 - 1
_PROGRESSING, _AVAILABLE, _FAILURE = "Progressing", "Available", "ReplicaFailure"
_COMPLETE, _TIMED_OUT = "NewReplicaSetAvailable", "ProgressDeadlineExceeded"
_PAUSED, _RESUMED = "DeploymentPaused", "DeploymentResumed"


def rollout_status(deployment: Json, new: Json | None, sets: list[Json], most_missing: int, now: float) -> Json:
    """The status that follows from the ReplicaSets; `new` is the one of the present template."""
    wanted = deployment["spec"].get("replicas", 1)
    counts = {
        "replicas": _total("replicas", sets),
        "updatedReplicas": _total("replicas", [new] if new else []),
        "readyReplicas": _total("readyReplicas", sets),
        "availableReplicas": _total("availableReplicas", sets),
    }
    asked = sum(int(one["spec"].get("replicas", 1)) for one in sets)
    counts["unavailableReplicas"] = max(0, asked - counts["availableReplicas"])
    status: Json = {"observedGeneration": deployment["metadata"].get("generation", 1)}
    status |= {name: value for name, value in counts.items() if value}
    old = deployment.get("status") or {}
    conditions = {one["type"]: one for one in old.get("conditions") or ()}
    if counts["availableReplicas"] >= wanted - most_missing:
        found = ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    else:
        found = ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    _set(conditions, _AVAILABLE, *found, timestamp(now))
    _judge_progress(conditions, deployment, counts, new, now)
    _tell_failure(conditions, [*([new] if new else []), *sets])
    status["conditions"] = list(conditions.values())
    return status


def seconds_to_deadline(deployment: Json, status: Json, now: float) -> float | None:
    """When a rollout that makes no progress will have failed; None if it has ended or has no deadline."""
    for one in status["conditions"]:
        if (
            one["type"] == _PROGRESSING
            and one["reason"] not in (_COMPLETE, _TIMED_OUT, _PAUSED)
            and _deadline(deployment)
        ):
            return max(1.0, parse_timestamp(one["lastUpdateTime"]) + _deadline(deployment) - now + 1)
    return None


def _judge_progress(conditions: dict[str, Json], deployment: Json, counts: Json, new: Json | None, now: float) -> None:
    if not _deadline(deployment):
        conditions.pop(_PROGRESSING, None)
        return
    known, time = conditions.get(_PROGRESSING), timestamp(now)
    reason = known["reason"] if known else ""
    if deployment["spec"].get("paused"):
        if reason not in (_PAUSED, _TIMED_OUT):
            _set(conditions, _PROGRESSING, "Unknown", _PAUSED, "Deployment is paused", time)
        return
    if reason == _PAUSED:
        _set(conditions, _PROGRESSING, "Unknown", _RESUMED, "Deployment is resumed", time)
        reason = _RESUMED
    if reason == _COMPLETE and counts["replicas"] == counts["updatedReplicas"]:
        return
    what = f'ReplicaSet "{new["metadata"]["name"]}"' if new else f'Deployment "{deployment["metadata"]["name"]}"'
    wanted = deployment["spec"].get("replicas", 1)
    if counts["updatedReplicas"] == counts["replicas"] == counts["availableReplicas"] == wanted:
        _set(conditions, _PROGRESSING, "True", _COMPLETE, f"{what} has successfully progressed.", time)
    elif known is None or _is_better(counts, deployment.get("status") or {}) or reason == _COMPLETE:
        if known and known["status"] == "True":
            conditions[_PROGRESSING] = known | {"reason": ""}  # so that the time of the update moves
        _set(conditions, _PROGRESSING, "True", "ReplicaSetUpdated", f"{what} is progressing.", time)
    elif parse_timestamp(conditions[_PROGRESSING]["lastUpdateTime"]) + _deadline(deployment) < now:
        _set(conditions, _PROGRESSING, "False", _TIMED_OUT, f"{what} has timed out progressing.", time)


def _is_better(counts: Json, old: Json) -> bool:
    """Whether there are more new pods, fewer old ones, or more that are ready or available."""
    outdated = counts["replicas"] - counts["updatedReplicas"]
    more = any(counts[name] > old.get(name, 0) for name in ("updatedReplicas", "readyReplicas", "availableReplicas"))
    return more or outdated < old.get("replicas", 0) - old.get("updatedReplicas", 0)


def _tell_failure(conditions: dict[str, Json], sets: list[Json]) -> None:
    """Say why pods of a ReplicaSet could not be created."""
    for one in sets:
        for condition in one.get("status", {}).get("conditions") or ():
            if condition["type"] == _FAILURE:
                since = condition["lastTransitionTime"]
                conditions[_FAILURE] = condition | {"lastUpdateTime": since}
                return
    conditions.pop(_FAILURE, None)


def _set(conditions: dict[str, Json], kind: str, value: str, reason: str, message: str, now: str) -> None:
    before = conditions.get(kind) or {}
    if before.get("status") == value and before.get("reason") == reason:
        return
    moved = before.get("lastTransitionTime", now) if before.get("status") == value else now
    changed = {"status": value, "lastUpdateTime": now, "lastTransitionTime": moved}
    conditions[kind] = {"type": kind, **changed, "reason": reason, "message": message}


def _deadline(deployment: Json) -> int:
    """In seconds; 0 without one."""
    seconds = int(deployment["spec"].get("progressDeadlineSeconds", _NO_DEADLINE))
    return 0 if seconds == _NO_DEADLINE else seconds


def _total(field: str, sets: list[Json]) -> int:
    return sum(int(one.get("status", {}).get(field, 0)) for one in sets)
