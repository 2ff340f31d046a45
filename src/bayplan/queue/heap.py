"""A priority queue of pods by name: push, pop the first, remove any. Its order is that of the queue-sort plugin.

The dictionary holds the pods; heap and line hold the order. An entry that was removed or replaced stays in them until
it is first, or until they hold twice as many entries as the dictionary. Pods that tie leave in order of arrival. Most
pods arrive in the order in which they leave: those are appended to a line, and only the others go into the heap.

A plugin states the order by `sort_key` (one tuple a pod, compared in C) or by `less` (called for each comparison). One
that raises loses no pod: the failure is logged once, the order falls back to one that cannot fail, and heap and line
are rebuilt from the dictionary.
"""

from __future__ import annotations

import heapq
import itertools
import logging
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from bayplan.framework.queued import QueuedPod

__all__ = ["PodHeap", "SortKey", "by_priority", "in_order"]

_log = logging.getLogger(__name__)
_STALE_ALLOWANCE = 64

SortKey = Callable[[QueuedPod], Any]
"""Smaller goes first. Keys of any two pods must be comparable."""

Entry = tuple[Any, int, int, str, QueuedPod]
"""(sort key, arrival, serial, `namespace/name`, pod). The serial keeps ties from ever comparing pods."""


def by_priority(queued: QueuedPod) -> tuple[int, float]:
    """Higher priority first, then earlier arrival; the order of a queue whose plugin failed."""
    return -queued.priority, queued.timestamp


def in_order(queued: Sequence[QueuedPod], sort_key: SortKey) -> list[int]:
    """Positions in the order in which the pods would leave a heap, if all were in it; by priority if the key fails."""
    try:
        return sorted(range(len(queued)), key=[sort_key(each) for each in queued].__getitem__)
    except Exception:
        return sorted(range(len(queued)), key=[by_priority(each) for each in queued].__getitem__)


class PodHeap:
    """Keyed by `namespace/name`. A pod in the heap must not change: push a changed copy in its place."""

    __slots__ = ("_entries", "_fallback", "_heap", "_line", "_numbers", "_sort_key")

    def __init__(self, sort_key: SortKey, *, fallback: SortKey) -> None:
        self._sort_key = sort_key
        self._fallback = fallback
        self._entries: dict[str, Entry] = {}
        self._heap: list[Entry] = []
        self._line: deque[Entry] = deque()
        """In order: no entry sorts before an earlier one."""
        self._numbers = itertools.count()

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: str) -> bool:
        return key in self._entries

    def __iter__(self) -> Iterator[QueuedPod]:
        """In order of arrival, not in the order of leaving."""
        return (entry[4] for entry in self._entries.values())

    def get(self, key: str) -> QueuedPod | None:
        entry = self._entries.get(key)
        return None if entry is None else entry[4]

    def push(self, queued: QueuedPod) -> None:
        """Put the pod in, in place of one with its name; then it also takes that one's place among ties."""
        key, serial = queued.key, next(self._numbers)
        old = self._entries.get(key)
        arrival = serial if old is None else old[1]
        try:
            entry = (self._sort_key(queued), arrival, serial, key, queued)
            self._entries[key] = entry
            self._place(entry)
        except Exception:
            self._entries[key] = (None, arrival, serial, key, queued)
            self._fall_back()
        if len(self._heap) + len(self._line) > 2 * len(self._entries) + _STALE_ALLOWANCE:
            self._rebuild()

    def sort_again(self) -> None:
        """Take over changes that leave the order as it is, such as all times moved alike."""
        try:
            self._sort()
        except Exception:
            self._fall_back()

    def _sort(self) -> None:
        self._entries = {
            key: (self._sort_key(queued), arrival, serial, key, queued)
            for key, (_, arrival, serial, _, queued) in self._entries.items()
        }
        self._rebuild()

    def _place(self, entry: Entry) -> None:
        if not self._line or self._line[-1] < entry:
            self._line.append(entry)
        else:
            heapq.heappush(self._heap, entry)

    def peek(self) -> QueuedPod | None:
        entry = self._first()
        return None if entry is None else entry[4]

    def pop(self) -> QueuedPod | None:
        entry = self._first()
        if entry is None:
            return None
        del self._entries[entry[3]]
        return entry[4]

    def remove(self, key: str) -> QueuedPod | None:
        entry = self._entries.pop(key, None)
        return None if entry is None else entry[4]

    def _first(self) -> Entry | None:
        heap, line, entries = self._heap, self._line, self._entries
        while line and entries.get(line[0][3]) is not line[0]:
            line.popleft()
        try:
            while heap and entries.get(heap[0][3]) is not heap[0]:
                heapq.heappop(heap)
            if heap and (not line or heap[0] < line[0]):
                return heap[0]
        except Exception:
            self._fall_back()
            return self._first()
        return line[0] if line else None

    def _fall_back(self) -> None:
        _log.exception("the queue-sort plugin failed; pods are ordered by priority and time until it is replaced")
        self._sort_key = self._fallback
        self._sort()

    def _rebuild(self) -> None:
        self._line = deque(sorted(self._entries.values()))
        self._heap = []
