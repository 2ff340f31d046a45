"""The queues in which pods wait, as one: who waits, and where.

A pod waits in one of them at most. Which one, and when it moves, is the machine's business; this only looks and
removes.
"""

from __future__ import annotations

from collections import Counter

from bayplan.framework.queued import QueuedPod
from bayplan.queue.backoff import BackoffQueue
from bayplan.queue.heap import PodHeap
from bayplan.queue.places import Place
from bayplan.queue.unschedulable import UnschedulablePool

__all__ = ["WaitingPods"]


class WaitingPods:
    """Keyed by `namespace/name`."""

    def __init__(self, active: PodHeap, backoff: BackoffQueue, pool: UnschedulablePool) -> None:
        self.active = active
        self.backoff = backoff
        self.pool = pool

    def get(self, key: str) -> QueuedPod | None:
        return self.active.get(key) or self.pool.get(key) or self.backoff.get(key)

    def remove(self, key: str) -> QueuedPod | None:
        return self.active.remove(key) or self.pool.remove(key) or self.backoff.remove(key)

    def place_of(self, key: str) -> Place | None:
        if key in self.active:
            return Place.ACTIVE
        if (queued := self.pool.get(key)) is not None:
            return Place.GATED if queued.gating_plugin else Place.UNSCHEDULABLE
        return Place.BACKOFF if self.backoff.get(key) is not None else None

    def by_place(self) -> dict[Place, list[QueuedPod]]:
        """The order within a place is not the order of leaving."""
        return {
            Place.ACTIVE: list(self.active),
            Place.BACKOFF: list(self.backoff),
            Place.UNSCHEDULABLE: [queued for queued in self.pool if not queued.gating_plugin],
            Place.GATED: [queued for queued in self.pool if queued.gating_plugin],
        }

    def rejections(self) -> dict[tuple[str, str], int]:
        """(plugin, profile) to how many waiting pods it rejected."""
        return dict(
            Counter(
                (plugin, queued.info.scheduler_name)
                for pods in self.by_place().values()
                for queued in pods
                for plugin in queued.rejectors
            )
        )
