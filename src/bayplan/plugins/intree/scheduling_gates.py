"""SchedulingGates: hold a pod back while it has scheduling gates."""

from __future__ import annotations

from bayplan.framework import ActionType, ClusterEvent, EventHint, Hint, Plugin, PodInfo, Resource, Status, Unresolvable

__all__ = ["SchedulingGates"]


class SchedulingGates(Plugin):
    """Keep pods with `spec.schedulingGates` out of the queue.

    *What it does*: lets a pod into the queue once its list of gates is empty.
    *Rejects when*: the pod still names a gate. The pod then waits without an event and without a condition.
    *Scores by*: nothing.
    *Retries on*: the last gate of the pod itself being removed.
    *Arguments*: none.
    *Differs from kube-scheduler*: nowhere.
    """

    default_weight = 0
    reasons = ("waiting for scheduling gates: [<gates>]",)

    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        gates = pod.spec.scheduling_gates
        if not gates:
            return None
        return Unresolvable(f"waiting for scheduling gates: [{' '.join(gate.name for gate in gates)}]")

    def events_to_register(self) -> list[EventHint]:
        event = ClusterEvent(Resource.POD, ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
        return [EventHint(event, self._after_gates_gone)]

    def _after_gates_gone(self, pod: PodInfo, old: PodInfo | None, new: PodInfo) -> Hint:
        return Hint.QUEUE if new.uid == pod.uid else Hint.SKIP
