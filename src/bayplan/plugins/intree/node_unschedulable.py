"""NodeUnschedulable: keep pods off cordoned nodes."""

from __future__ import annotations

from collections.abc import Hashable

from bayplan.framework import (
    ActionType,
    ClusterEvent,
    CycleState,
    Depends,
    EventHint,
    Hint,
    NodeColumns,
    NodeInfo,
    Plugin,
    PodInfo,
    Remedy,
    Resource,
    Status,
    Unresolvable,
    Verdicts,
    by_shape,
)
from bayplan.framework.objects import UNSCHEDULABLE_TAINT, Node, is_tolerated

__all__ = ["NodeUnschedulable"]

_CORDONED = Unresolvable("node(s) were unschedulable")


class NodeUnschedulable(Plugin):
    """Leave out nodes with `spec.unschedulable`, unless the pod tolerates that.

    *What it does*: treats a cordoned node as if it had the taint `node.kubernetes.io/unschedulable:NoSchedule`.
    *Rejects when*: the node is cordoned and no toleration of the pod lets that taint through.
    *Scores by*: nothing.
    *Retries on*: a schedulable node being added, a node being uncordoned, the pod gaining the toleration.
    *Arguments*: none.
    *Differs from kube-scheduler*: nowhere.
    """

    default_weight = 0
    remedies = (Remedy.UNCORDON,)
    depends = Depends.NODE
    settles_by_kind = True
    signs_by_kind = True
    reasons = _CORDONED.reasons

    def sign(self, pod: PodInfo) -> Hashable:
        return _tolerates_cordon(pod)

    def is_relevant(self, pod: PodInfo) -> bool:
        return not _tolerates_cordon(pod)

    def filter_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Verdicts:
        if _tolerates_cordon(pod):
            return Verdicts.accept(len(nodes))
        return Verdicts.reject(nodes.unschedulable, _CORDONED)

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        return _CORDONED if node.unschedulable and not _tolerates_cordon(pod) else None

    def events_to_register(self) -> list[EventHint]:
        return [
            EventHint(
                ClusterEvent(Resource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_TAINT), self._after_node_change
            ),
            EventHint(ClusterEvent(Resource.POD, ActionType.UPDATE_POD_TOLERATION), self._after_toleration_change),
        ]

    @by_shape
    def _after_node_change(self, pod: PodInfo, old: Node | None, new: Node) -> Hint:
        was_closed = old is None or old.spec.unschedulable
        return Hint.QUEUE if was_closed and not new.spec.unschedulable else Hint.SKIP

    @by_shape
    def _after_toleration_change(self, pod: PodInfo, old: PodInfo | None, new: PodInfo) -> Hint:
        return Hint.QUEUE if new.uid == pod.uid and _tolerates_cordon(new) else Hint.SKIP


def _tolerates_cordon(pod: PodInfo) -> bool:
    return is_tolerated(UNSCHEDULABLE_TAINT, pod.shape.tolerations)
