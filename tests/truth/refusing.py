"""A plugin of a user's own that refuses every pod at the extension point of its arguments."""

from __future__ import annotations

from bayplan.framework import CycleState, EventHint, NodeInfo, Plugin, PluginArgs, PodInfo, Status, Unschedulable

REASON = "the licence is used up"


class Refusing(Plugin):
    """Refuse the pod labelled `app=refused`.

    *What it does*: refuses at one extension point.
    *Rejects when*: the pod has the label.
    *Scores by*: nothing.
    *Retries on*: nothing.
    *Arguments*: point.
    """

    reasons = (REASON,)

    class Args(PluginArgs):
        point: str = "filter"

    def _answer(self, pod: PodInfo, point: str) -> Status | None:
        return Unschedulable(REASON) if pod.labels.get("app") == "refused" and self.args.point == point else None

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        return self._answer(pod, "filter")

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        return self._answer(pod, "reserve")

    def permit(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        return self._answer(pod, "permit")

    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        return self._answer(pod, "preBind")

    def events_to_register(self) -> list[EventHint]:
        return []
