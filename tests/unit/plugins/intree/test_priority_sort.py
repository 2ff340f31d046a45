"""PrioritySort orders by priority, then by the time in the queue."""

from __future__ import annotations

from tests.unit.plugins.small_cluster import SmallCluster

from bayplan.framework import QueuedPod
from bayplan.plugins.intree.priority_sort import PrioritySort

CLUSTER = SmallCluster()


def queued(name: str, *, priority: int | None, timestamp: float) -> QueuedPod:
    return QueuedPod(CLUSTER.pod(name, priority=priority), timestamp)


def test_higher_priority_goes_first_then_the_longest_wait() -> None:
    pods = [
        queued("late", priority=5, timestamp=20.0),
        queued("none", priority=None, timestamp=1.0),
        queued("early", priority=5, timestamp=10.0),
        queued("high", priority=9, timestamp=30.0),
        queued("negative", priority=-1, timestamp=0.0),
    ]

    in_order = [pod.info.name for pod in sorted(pods, key=PrioritySort().sort_key)]

    assert in_order == ["high", "early", "late", "none", "negative"]


def test_no_priority_counts_as_zero() -> None:
    plugin = PrioritySort()

    assert plugin.sort_key(queued("a", priority=None, timestamp=1.0)) == plugin.sort_key(
        queued("b", priority=0, timestamp=1.0)
    )
