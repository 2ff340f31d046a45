"""The phases of a PodGroup."""

from __future__ import annotations

import pytest

from bayplan.api.meta import Metadata, OwnerReference
from bayplan.api.pod import Pod
from bayplan.app.controllers.pod_group_status import next_status
from bayplan.plugins.community.coscheduling.pod_group import PodGroup, PodGroupSpec, PodGroupStatus
from bayplan.testing import pod


def _group(phase: str = "", *, minimum: int = 3) -> PodGroup:
    return PodGroup(spec=PodGroupSpec(min_member=minimum), status=PodGroupStatus(phase=phase))


def _pods(**phases: int) -> list[Pod]:
    return [pod(f"{phase}-{i}", phase=phase.title()) for phase, count in phases.items() for i in range(count)]


@pytest.mark.parametrize(
    ("before", "pods", "after"),
    [
        ("", _pods(), "Pending"),
        ("", _pods(pending=2), "Pending"),
        ("Pending", _pods(pending=3), "Scheduling"),
        ("", _pods(pending=3), "Scheduling"),
        ("Scheduling", _pods(pending=1, running=2), "Scheduling"),
        ("Scheduling", _pods(running=3), "Running"),
        ("Running", _pods(running=2, succeeded=1), "Running"),
        ("Running", _pods(running=2, failed=1), "Failed"),
        ("Running", _pods(running=3, failed=1), "Running"),
        ("Running", _pods(succeeded=3), "Finished"),
        ("Running", _pods(succeeded=3, failed=1), "Finished"),
        ("Running", _pods(running=2), "Pending"),
        ("Failed", _pods(running=3, failed=1), "Running"),
        ("Finished", _pods(), "Finished"),
    ],
)
def test_the_phase_follows_the_pods(before: str, pods: list[Pod], after: str) -> None:
    assert next_status(_group(before), pods).phase == after


def test_pods_are_counted_by_phase() -> None:
    status = next_status(_group("Running", minimum=6), _pods(running=3, succeeded=2, failed=1, pending=4))

    assert (status.running, status.succeeded, status.failed) == (3, 2, 1)


def test_the_owners_of_the_first_pod_occupy_the_group() -> None:
    owners = [OwnerReference(name="z"), OwnerReference(name="a")]
    first = pod("a-first")
    first.metadata = Metadata(name="a-first", namespace="default", owner_references=owners)

    assert next_status(_group("Pending"), [*_pods(pending=2), first]).occupied_by == "default/a,default/z"
