"""Pods that were popped and not yet settled, and the events that happened meanwhile.

A pod that fails must not miss an event that arrived during its attempt. So pods and events share one sequence of
numbers: the events of a pod are those with a later number than its own, and an event is dropped when no pod in flight
is older than it.

Memory and time are bounded: past `limit` events the oldest are dropped, and `events_since` then returns None. Thousands
of pods of one group may be rejected at Permit together, a minute after they were popped; to look at all that happened
meanwhile for each of them would take longer than to try them once more.
"""

from __future__ import annotations

from collections import Counter, deque
from typing import Any, NamedTuple

from bayplan.framework.events import ClusterEvent

__all__ = ["InFlight", "RecordedEvent"]


_MOST_EVENTS = 2_000


class RecordedEvent(NamedTuple):
    number: int
    event: ClusterEvent
    old: Any
    new: Any


class InFlight:
    def __init__(self, *, limit: int = _MOST_EVENTS) -> None:
        self._limit = limit
        self._number = 0
        self._pods: dict[str, int] = {}
        """uid to the number at which it was popped; in that order."""
        self._events: deque[RecordedEvent] = deque()
        self._forgotten = 0
        """Number of the latest event that was dropped although a pod might have needed it."""

    def __len__(self) -> int:
        """How many pods are in flight."""
        return len(self._pods)

    def __contains__(self, uid: str) -> bool:
        return uid in self._pods

    @property
    def recorded(self) -> int:
        """How many events are kept."""
        return len(self._events)

    def count_by_event(self) -> dict[str, int]:
        return dict(Counter(recorded.event.name for recorded in self._events))

    def begin(self, uid: str) -> bool:
        """False when a pod with that uid is in flight already."""
        if uid in self._pods:
            return False
        self._number += 1
        self._pods[uid] = self._number
        return True

    def end(self, uid: str) -> None:
        """The pod is settled; drop the events that no pod in flight is older than."""
        if self._pods.pop(uid, None) is None:
            return
        oldest = next(iter(self._pods.values()), self._number + 1)
        events = self._events
        while events and events[0].number < oldest:
            events.popleft()

    def record(self, event: ClusterEvent, old: Any, new: Any) -> bool:
        """Keep the event for the pods in flight; False when there are none."""
        if not self._pods:
            return False
        self._number += 1
        self._events.append(RecordedEvent(self._number, event, old, new))
        if len(self._events) > self._limit:
            self._forgotten = self._events.popleft().number
        return True

    def events_since(self, uid: str) -> list[RecordedEvent] | None:
        """What happened since the pod was popped, oldest first; None when that is not known any more."""
        popped = self._pods.get(uid)
        if popped is None or popped < self._forgotten:
            return None
        later: list[RecordedEvent] = []
        for recorded in reversed(self._events):
            if recorded.number < popped:
                break
            later.append(recorded)
        later.reverse()
        return later
