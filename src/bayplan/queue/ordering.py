"""The order of the active queue, as its one queue-sort plugin says it.

A plugin says it with `sort_key` (one tuple a pod, compared in C) or with `less` (asked for every comparison). Both
become a key function here, so that the heaps know one form only.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cmp_to_key
from typing import Any

from bayplan.framework.queued import QueuedPod

__all__ = ["SortKey", "by_priority", "key_from_less", "sort_key_of"]

SortKey = Callable[[QueuedPod], Any]
"""Smaller goes first. Keys of any two pods must be comparable."""


def by_priority(queued: QueuedPod) -> tuple[int, float]:
    """Higher priority first, then who came first; what a queue falls back to when its plugin fails."""
    return -queued.priority, queued.timestamp


def key_from_less(less: Callable[[QueuedPod, QueuedPod], bool]) -> SortKey:
    def compare(first: QueuedPod, second: QueuedPod) -> int:
        if less(first, second):
            return -1
        return 1 if less(second, first) else 0

    return cmp_to_key(compare)


def sort_key_of(plugin: Any) -> SortKey:
    """The key function of a queue-sort plugin, by its `sort_key` where it has one, else by its `less`."""
    sort_key: SortKey | None = getattr(plugin, "sort_key", None)
    return sort_key if sort_key is not None else key_from_less(plugin.less)
