"""The status of a PodGroup, from the group and its pods: a plain function.

    ""  ->  Pending  ->  Scheduling  ->  Running  ->  Finished
                 ^------------^------------^   `->  Failed

Finished is the end. A group that failed and is whole again is running again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from bayplan.api.pod import Pod
from bayplan.plugins.community.coscheduling.pod_group import PodGroup, PodGroupStatus

__all__ = ["FAILED", "FINISHED", "PENDING", "RUNNING", "SCHEDULING", "next_status"]

PENDING, SCHEDULING, RUNNING, FINISHED, FAILED = "Pending", "Scheduling", "Running", "Finished", "Failed"


def next_status(group: PodGroup, pods: Sequence[Pod]) -> PodGroupStatus:
    """What the status should be. `pods` are those of the group, finished ones included."""
    status = group.status
    if status.phase == FINISHED:
        return status
    if len(pods) < group.spec.min_member:
        return _replaced(status, phase=PENDING) if status.phase in ("", PENDING) else _recount(status, pods, PENDING)
    if status.phase in ("", PENDING):
        status = _replaced(status, occupied_by=_owners(pods))
    return _recount(status, pods, _phase(group.spec.min_member, _phases(pods)))


def _phases(pods: Iterable[Pod]) -> Counter[str]:
    return Counter(pod.status.phase for pod in pods)


def _phase(wanted: int, phases: Counter[str]) -> str:
    running, succeeded, failed = phases["Running"], phases["Succeeded"], phases["Failed"]
    if succeeded >= wanted:
        return FINISHED
    if failed and running + succeeded < wanted <= failed + running + succeeded:
        return FAILED
    return RUNNING if running + succeeded >= wanted else SCHEDULING


def _recount(status: PodGroupStatus, pods: Iterable[Pod], phase: str) -> PodGroupStatus:
    phases = _phases(pods)
    return _replaced(
        status, phase=phase, running=phases["Running"], succeeded=phases["Succeeded"], failed=phases["Failed"]
    )


def _owners(pods: Sequence[Pod]) -> str:
    """The owners of the first pod."""
    first = min(pods, key=lambda pod: pod.name)
    owners = sorted(f"{first.namespace}/{owner.name}" for owner in first.metadata.owner_references or ())
    return ",".join(owners)


def _replaced(status: PodGroupStatus, **changes: str | int) -> PodGroupStatus:
    return msgspec.structs.replace(status, **changes)
