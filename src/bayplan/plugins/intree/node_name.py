"""NodeName: a pod that names its node fits there and nowhere else."""

from __future__ import annotations

import numpy as np

from bayplan.framework import (
    ActionType,
    ClusterEvent,
    CycleState,
    EventHint,
    NodeColumns,
    NodeInfo,
    Plugin,
    PodInfo,
    Remedy,
    Resource,
    Status,
    Unresolvable,
    Verdicts,
)

__all__ = ["NodeName"]

_ANOTHER_NODE = Unresolvable("node(s) didn't match the requested node name")


class NodeName(Plugin):
    """Keep a pod with `spec.nodeName` to that node.

    *What it does*: compares the name in the pod with the name of the node. Pods that
    wait for a scheduler rarely have one; running pods in what-if questions do.
    *Rejects when*: the pod names another node.
    *Scores by*: nothing.
    *Retries on*: any node being added.
    *Arguments*: none.
    *Differs from kube-scheduler*: nowhere.
    """

    default_weight = 0
    remedies = (Remedy.NODE_NAME,)

    # The name is not part of a pod's shape, so answers are not kept; the comparison is one number per node.
    settles_by_kind = True
    reasons = _ANOTHER_NODE.reasons

    def is_relevant(self, pod: PodInfo) -> bool:
        return bool(pod.node_name)

    def filter_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Verdicts:
        if not pod.node_name:
            return Verdicts.accept(len(nodes))
        elsewhere = nodes.rows != nodes.table.row_of.get(pod.node_name, -1)
        return Verdicts.reject(np.asarray(elsewhere, dtype=np.bool_), _ANOTHER_NODE)

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        return _ANOTHER_NODE if pod.node_name and pod.node_name != node.name else None

    def events_to_register(self) -> list[EventHint]:
        return [EventHint(ClusterEvent(Resource.NODE, ActionType.ADD))]
