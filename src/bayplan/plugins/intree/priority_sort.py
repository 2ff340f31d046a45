"""PrioritySort: the order of the active queue."""

from __future__ import annotations

from bayplan.framework import Plugin, QueuedPod

__all__ = ["PrioritySort"]


class PrioritySort(Plugin):
    """Take pods of higher priority first, and of equal priority the one that waits longest.

    *What it does*: orders the active queue by priority, then by the time at which the pod entered or came back.
    *Rejects when*: never.
    *Scores by*: nothing.
    *Retries on*: nothing; it rejects nothing.
    *Arguments*: none.
    *Differs from kube-scheduler*: nowhere.
    """

    default_weight = 0

    def sort_key(self, queued: QueuedPod) -> tuple[int, float]:
        return (-queued.priority, queued.timestamp)
