"""A heap of pods with a name for each: push, pop the first, remove any.

The dictionary is the truth and the list only the order: an entry that was removed or replaced stays in the list until
it surfaces, or until the list is twice as long as it needs to be. Pods that tie leave in order of arrival.

The order comes from a plugin, and a plugin may fail. Then nothing is lost: the heap says so once, falls back to an
order that cannot fail, and is built anew from the dictionary.
"""

from __future__ import annotations

import heapq
import itertools
import logging
from collections.abc import Iterator
from typing import Any

from bayplan.framework.queued import QueuedPod
from bayplan.queue.ordering import SortKey

__all__ = ["PodHeap"]

_log = logging.getLogger(__name__)
_STALE_ALLOWANCE = 64

Entry = tuple[Any, int, int, str, QueuedPod]
"""(sort key, arrival, serial, `namespace/name`, pod). The serial keeps ties from ever comparing pods."""


class PodHeap:
    """Keyed by `namespace/name`. A pod in the heap must not change: push a changed copy in its place."""

    __slots__ = ("_entries", "_fallback", "_heap", "_numbers", "_sort_key")

    def __init__(self, sort_key: SortKey, *, fallback: SortKey) -> None:
        self._sort_key = sort_key
        self._fallback = fallback
        self._entries: dict[str, Entry] = {}
        self._heap: list[Entry] = []
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
            heapq.heappush(self._heap, entry)
        except Exception:
            self._entries[key] = (None, arrival, serial, key, queued)
            self._fall_back()
        if len(self._heap) > 2 * len(self._entries) + _STALE_ALLOWANCE:
            self._rebuild()

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
        heap, entries = self._heap, self._entries
        while heap:
            entry = heap[0]
            if entries.get(entry[3]) is entry:
                return entry
            try:
                heapq.heappop(heap)
            except Exception:
                self._fall_back()
                return self._first()
        return None

    def _fall_back(self) -> None:
        _log.exception("the queue-sort plugin failed; pods are ordered by priority and time until it is replaced")
        self._sort_key = self._fallback
        self._entries = {
            key: (self._fallback(queued), arrival, serial, key, queued)
            for key, (_, arrival, serial, _, queued) in self._entries.items()
        }
        self._rebuild()

    def _rebuild(self) -> None:
        self._heap = list(self._entries.values())
        heapq.heapify(self._heap)
