"""BlockAllScheduler: keeps every pod pending. The smallest plugin there is, and a way to stop a profile."""

from __future__ import annotations

from bayplan.framework import CycleState, EventHint, NodeColumns, Plugin, PodInfo, Status, Unschedulable

__all__ = ["BlockAllScheduler"]


class BlockAllScheduler(Plugin):
    """Reject every pod before any node is filtered.

    *What it does*: rejects at PreFilter, so no filter runs and no node is reported.
    *Rejects when*: always.
    *Scores by*: nothing.
    *Retries on*: nothing; take the plugin out of the profile and reload.
    *Arguments*: none.
    *Differs from the original*: its second version read NetworkMetrics to log them, and crashed when there were none;
    this one reads nothing. The original had its pods tried again on every event.
    """

    reasons = ("Pod <namespace>/<name> blocked by BlockAllScheduler",)

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Status:
        return Unschedulable(f"Pod {pod.key} blocked by {self.name}")

    def events_to_register(self) -> list[EventHint]:
        return []
