"""The events of a simulation in the order of their times; of those at one time, in the order in which they were added.

Sources are iterators that are read one entry ahead, so a month of arrivals is never in memory at once.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from typing import Any

__all__ = ["Action", "EventTimeline"]

Action = Callable[[], None]
Entry = tuple[float, Action]


class EventTimeline:
    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Action, Iterator[Entry] | None]] = []
        self._order = count()

    def __len__(self) -> int:
        return len(self._heap)

    def at(self, time: float, action: Action) -> None:
        """Have something done at a time, in seconds since the start."""
        heapq.heappush(self._heap, (time, next(self._order), action, None))

    def follow(self, entries: Iterable[Entry]) -> None:
        """Do what an iterator yields, in the order of its times."""
        self._read_next(iter(entries))

    def _read_next(self, source: Iterator[Any]) -> None:
        entry = next(source, None)
        if entry is not None:
            time, action = entry
            heapq.heappush(self._heap, (time, next(self._order), action, source))

    def next_time(self) -> float | None:
        return self._heap[0][0] if self._heap else None

    def run_due(self, now: float) -> int:
        """Do everything whose time has come; how much that was."""
        done = 0
        while self._heap and self._heap[0][0] <= now:
            _, _, action, source = heapq.heappop(self._heap)
            if source is not None:
                self._read_next(source)
            action()
            done += 1
        return done
