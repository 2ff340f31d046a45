"""Pods that failed a moment ago and wait out their back-off.

Two heaps: pods that plugins rejected, which may leave early when nothing else is to be done, and pods that failed with
an error, which never do (early retries would add load to an API server in trouble). Back-off counts in whole seconds: a
pod expires at the start of a second, and counts as waiting through that second.

The first failure costs `initial_seconds`, and each further one twice as much up to `max_seconds`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import floor

from bayplan.framework.queued import QueuedPod
from bayplan.queue.heap import PodHeap, SortKey, by_priority

__all__ = ["BackoffQueue", "BackoffTimes"]

_NANOSECONDS = 1_000_000_000


@dataclass(frozen=True, kw_only=True)
class BackoffTimes:
    """Settings of the configuration (`podInitialBackoffSeconds`, `podMaxBackoffSeconds`) and of the pool's timer."""

    initial_seconds: float = 1.0
    max_seconds: float = 10.0
    """0 turns back-off off."""
    max_in_unschedulable_seconds: float = 300.0
    """A pod that no event woke for longer than this is tried again anyway."""

    def duration_seconds(self, failures: int) -> float:
        """How long a pod waits after that many failures in a row."""
        if failures <= 0 or self.max_seconds <= 0:
            return 0.0
        # Whole nanoseconds, because a shift is what decides where the doubling stops.
        initial, maximum = round(self.initial_seconds * _NANOSECONDS), round(self.max_seconds * _NANOSECONDS)
        shift = failures - 1
        return (maximum if initial > maximum >> shift else initial << shift) / _NANOSECONDS

    def expiration(self, queued: QueuedPod) -> float:
        """The second in which the pod's back-off ends; 0 when it has none. Remembered until the next failure."""
        failures = queued.consecutive_errors or queued.unschedulable_count
        if failures == 0 or self.max_seconds <= 0:
            return 0.0
        if queued.backoff_expiration is None:
            queued.backoff_expiration = float(floor(queued.timestamp + self.duration_seconds(failures)))
        return queued.backoff_expiration

    def is_backing_off(self, queued: QueuedPod, now: float) -> bool:
        return self.expiration(queued) >= floor(now)


class BackoffQueue:
    """Ordered by expiration; among rejected pods of one second, as in the active queue."""

    def __init__(self, times: BackoffTimes, sort_key: SortKey) -> None:
        self._times = times
        expiration = times.expiration
        self._rejected = PodHeap(
            lambda queued: (expiration(queued), sort_key(queued)),
            fallback=lambda queued: (expiration(queued), by_priority(queued)),
        )
        self._failed = PodHeap(expiration, fallback=expiration)

    def __len__(self) -> int:
        return len(self._rejected) + len(self._failed)

    def __iter__(self) -> Iterator[QueuedPod]:
        yield from self._rejected
        yield from self._failed

    def get(self, key: str) -> QueuedPod | None:
        return self._rejected.get(key) or self._failed.get(key)

    def push(self, queued: QueuedPod) -> None:
        """Put the pod in, or move it to its place after it changed."""
        heap = self._rejected if queued.unschedulable_plugins or queued.pending_plugins else self._failed
        heap.push(queued)

    def remove(self, key: str) -> QueuedPod | None:
        return self._rejected.remove(key) or self._failed.remove(key)

    def sort_again(self) -> None:
        """Take over changes of times that leave the order as it is."""
        self._rejected.sort_again()
        self._failed.sort_again()

    def pop_early(self) -> QueuedPod | None:
        """The rejected pod that would leave first, whether or not its time has come."""
        return self._rejected.pop()

    def pop_completed(self, now: float) -> list[QueuedPod]:
        """Every pod whose back-off is over, rejected pods first."""
        completed = []
        for heap in (self._rejected, self._failed):
            while (queued := heap.peek()) is not None and not self._times.is_backing_off(queued, now):
                heap.pop()
                completed.append(queued)
        return completed
