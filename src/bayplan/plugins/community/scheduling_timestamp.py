"""SchedulingTimestamp: annotate each pod with the time of its scheduling, in nanoseconds."""

from __future__ import annotations

from bayplan.framework import CycleState, EventHint, NodeColumns, Plugin, PluginArgs, PodInfo, Status
from bayplan.plugins.timestamps import PATCH_PODS, take_time, write_time

__all__ = ["SchedulingTimestamp"]


class SchedulingTimestamp(Plugin):
    """Annotate every pod with the time at which its scoring began, in Unix nanoseconds.

    *What it does*: takes the time at PreScore, or after it for a pod that only one node fits, and patches the pod once,
    before it is bound.
    *Rejects when*: never; if the patch fails, the attempt fails and the pod is tried again.
    *Scores by*: nothing.
    *Retries on*: nothing; errors are retried after back-off.
    *Arguments*: annotation (`scheduler-timestamp`).
    *Differs from the original*: one patch a pod instead of one a scored node; pods that only one node fits are
    annotated too; it does not score (the original was a copy of NodeResourcesAllocatable, which can be enabled beside
    it). The permission to patch pods is part of the rendered manifests.
    """

    class Args(PluginArgs):
        annotation: str = "scheduler-timestamp"

        def validate(self) -> list[str]:
            return [] if self.annotation else ["annotation: must not be empty; leave it out for `scheduler-timestamp`"]

    permissions = (PATCH_PODS,)

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Status | None:
        take_time(self.handle, state)
        return None

    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        return await write_time(self.handle, state, pod, annotation=self.args.annotation)

    def events_to_register(self) -> list[EventHint]:
        return []
