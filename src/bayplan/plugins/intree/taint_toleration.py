"""TaintToleration: keep pods off nodes whose taints they do not tolerate, and prefer nodes without soft ones."""

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
    normalize_lowest,
)
from bayplan.framework.columns import Int64N, by_taint_set, has_untolerated_taint
from bayplan.framework.objects import Node, Taint, Toleration, first_untolerated, is_tolerated

__all__ = ["TaintToleration"]

_TAINTED = Unresolvable("node(s) had untolerated taint(s)")
_SOFT = "PreferNoSchedule"


class TaintToleration(Plugin):
    """Match the taints of nodes with the tolerations of the pod.

    *What it does*: compares tolerations once per distinct set of taints, however many nodes share it.
    *Rejects when*: the node has a NoSchedule or NoExecute taint that no toleration lets through.
    *Scores by*: the number of PreferNoSchedule taints that no toleration lets through; the fewer, the better. A
    toleration counts here when its effect is empty or PreferNoSchedule.
    *Retries on*: a node being added whose taints are tolerated, a node's taints becoming tolerated, a change of the
    pod's own tolerations.
    *Arguments*: none.
    *Differs from kube-scheduler*: nowhere (the toleration operators Lt and Gt belong to a gate that is off).
    """

    default_weight = 3
    remedies = (Remedy.TOLERATIONS,)
    depends = Depends.NODE
    settles_by_kind = True
    signs_by_kind = True
    reasons = _TAINTED.reasons
    normalize = normalize_lowest

    def sign(self, pod: PodInfo) -> Hashable:
        return frozenset((t.key, t.operator, t.value, t.effect) for t in pod.shape.tolerations)

    def filter_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Verdicts:
        return Verdicts.reject(has_untolerated_taint(pod.shape.tolerations, nodes), _TAINTED)

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        taints = node.taints
        return _TAINTED if taints and first_untolerated(taints, pod.shape.tolerations) is not None else None

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Status | None:
        """Never skips: where no node has a soft taint every node gets the full score, which counts in the total."""
        return None

    def score_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Int64N:
        soft = _soft_tolerations(pod)
        return by_taint_set(nodes, lambda taints: _count_untolerated(taints, soft))

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return _count_untolerated(node.taints, _soft_tolerations(pod))

    def events_to_register(self) -> list[EventHint]:
        return [
            EventHint(
                ClusterEvent(Resource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_TAINT), self._after_node_change
            ),
            EventHint(ClusterEvent(Resource.POD, ActionType.UPDATE_POD_TOLERATION), self._after_toleration_change),
        ]

    @by_shape
    def _after_node_change(self, pod: PodInfo, old: Node | None, new: Node) -> Hint:
        was_closed = old is None or _is_closed(old, pod)
        return Hint.QUEUE if was_closed and not _is_closed(new, pod) else Hint.SKIP

    @by_shape
    def _after_toleration_change(self, pod: PodInfo, old: PodInfo | None, new: PodInfo) -> Hint:
        return Hint.QUEUE if new.uid == pod.uid else Hint.SKIP


def _is_closed(node: Node, pod: PodInfo) -> bool:
    return first_untolerated(node.spec.taints or (), pod.shape.tolerations) is not None


def _soft_tolerations(pod: PodInfo) -> list[Toleration]:
    return [toleration for toleration in pod.shape.tolerations if toleration.effect in ("", _SOFT)]


def _count_untolerated(taints: list[Taint], tolerations: list[Toleration]) -> int:
    return sum(taint.effect == _SOFT and not is_tolerated(taint, tolerations) for taint in taints)
