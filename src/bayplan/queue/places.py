"""Where a pod can be in the queue, the causes of its moves, and their history.

The values of `Place` are the queue labels of metrics and records. Causes that stand for "try again, whatever it was"
are wildcard events: no hint is called for them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from bayplan.framework.events import ALL, ActionType, ClusterEvent, Resource
from bayplan.framework.queued import QueuedPod
from bayplan.queue.backoff import BackoffQueue
from bayplan.queue.heap import PodHeap
from bayplan.queue.unschedulable import UnschedulablePool

__all__ = [
    "BACKOFF_COMPLETE",
    "FORCE_ACTIVATE",
    "HISTORY_LENGTH",
    "POD_ADD",
    "POD_UPDATE",
    "POP",
    "POP_FROM_BACKOFF",
    "RELOADED",
    "SCHEDULE_ATTEMPT_FAILURE",
    "UNSCHEDULABLE_TIMEOUT",
    "MoveHistory",
    "MoveListener",
    "Place",
    "QueueSizes",
    "Queues",
]


class Place(Enum):
    """Every pod that the queue knows is in one of these."""

    ACTIVE = "active"
    BACKOFF = "backoff"
    UNSCHEDULABLE = "unschedulable"
    GATED = "gated"
    IN_FLIGHT = "in-flight"


class QueueSizes(NamedTuple):
    """Number of pods by place."""

    active: int
    backoff: int
    unschedulable: int
    gated: int
    in_flight: int


POD_ADD = ClusterEvent(Resource.UNSCHEDULABLE_POD, ActionType.ADD).name
POD_UPDATE = ClusterEvent(Resource.UNSCHEDULABLE_POD, ActionType.UPDATE).name
POP = "Pop"
POP_FROM_BACKOFF = "PopFromBackoffQ"
BACKOFF_COMPLETE = "BackoffComplete"
RELOADED = "ConfigurationReloaded"
SCHEDULE_ATTEMPT_FAILURE = "ScheduleAttemptFailure"

FORCE_ACTIVATE = ClusterEvent(Resource.ANY, ALL, "ForceActivate")
UNSCHEDULABLE_TIMEOUT = ClusterEvent(Resource.ANY, ALL, "UnschedulableTimeout")

HISTORY_LENGTH = 48
_IN_FLIGHT = Place.IN_FLIGHT.value


class Queues:
    """The three queues in which pods wait, keyed by `namespace/name`; a pod is in one of them at most.

    Finds and removes pods. Which queue a pod enters, and when, is decided by `SchedulingQueue`.
    """

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

    def move_times(self, seconds: float) -> None:
        """Move the times of all waiting pods alike."""
        for pods in self.by_place().values():
            for queued in pods:
                queued.move_times(seconds)
        self.active.sort_again()
        self.backoff.sort_again()

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


MoveListener = Callable[[QueuedPod, str, str], None]
"""Called with a pod, the place that it moves to, and the cause."""


class MoveHistory:
    """Writes each move of a pod into its `history`, and counts by queue and cause how many pods entered."""

    def __init__(self, now: Callable[[], float], on_move: MoveListener | None = None) -> None:
        self._now = now
        self._on_move = on_move
        self.incoming: Counter[tuple[str, str]] = Counter()
        """(queue, cause) to how many pods entered; for `queue_incoming_pods_total`."""

    def entered(self, queued: QueuedPod, place: Place, cause: str) -> Place:
        """Note the pod's new place. A pod that stays gated has not entered anything."""
        if place is Place.GATED and queued.history and queued.history[-1][1] == Place.GATED.value:
            return place
        name = place.value
        self.incoming[name, cause] += 1
        self._append(queued, name, cause)
        return place

    def popped(self, queued: QueuedPod, cause: str) -> None:
        self._append(queued, _IN_FLIGHT, cause)

    def _append(self, queued: QueuedPod, place: str, cause: str) -> None:
        if self._on_move is not None:
            self._on_move(queued, place, cause)
        moves = queued.history
        moves.append((self._now(), place, cause))
        if len(moves) > HISTORY_LENGTH:
            # The first entry is kept, so the oldest after it is dropped.
            del moves[1]
