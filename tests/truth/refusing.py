"""A plugin of a user's own that refuses every pod at the extension point of its arguments, or fails there."""

from __future__ import annotations

from bayplan.framework import CycleState, EventHint, NodeInfo, Plugin, PluginArgs, PodInfo, Status, Unschedulable

REASON = "the licence is used up"


class Refusing(Plugin):
    """Refuse the pod labelled `app=refused`.

    *What it does*: refuses at one extension point, or raises there.
    *Rejects when*: the pod has the label.
    *Scores by*: nothing.
    *Retries on*: nothing.
    *Arguments*: point, fails.
    """

    reasons = (REASON,)

    class Args(PluginArgs):
        point: str = "filter"
        fails: bool = False

    def _answer(self, pod: PodInfo, point: str) -> Status | None:
        if pod.labels.get("app") != "refused" or self.args.point != point:
            return None
        if self.args.fails:
            raise RuntimeError(REASON)
        return Unschedulable(REASON)

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
