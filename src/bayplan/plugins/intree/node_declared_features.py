"""NodeDeclaredFeatures: a pod that uses a kubelet feature needs a node that declares it."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from bayplan.framework import (
    SKIP,
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
    Resource,
    Status,
    Unresolvable,
    Verdicts,
    by_shape,
)
from bayplan.framework.columns import BoolN
from bayplan.framework.objects import Node

__all__ = ["NodeDeclaredFeatures"]

_LACKING = Unresolvable("node(s) didn't match Pod's required features")
_NONE: frozenset[str] = frozenset()


class NodeDeclaredFeatures(Plugin):
    """Leave out nodes that do not declare what the pod needs.

    *What it does*: infers features from the pod: `RestartAllContainersOnContainerExits` from a restart policy rule
    with the action RestartAllContainers, `UserNamespacesHostNetworkSupport` from the host's network without the
    host's users. Most pods need none.
    *Rejects when*: `status.declaredFeatures` of the node lacks one of them.
    *Scores by*: nothing.
    *Retries on*: a node being added, any change of a node's declared features, an update of the pod that changes what
    it needs.
    *Arguments*: none.
    *Differs from kube-scheduler*: nowhere.
    """

    default_weight = 0
    depends = Depends.NODE
    settles_by_kind = True
    signs_by_kind = True
    reasons = _LACKING.reasons

    def sign(self, pod: PodInfo) -> Hashable:
        return _required_features(pod)

    def is_relevant(self, pod: PodInfo) -> bool:
        return bool(_required_features(pod))

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Status | None:
        return None if _required_features(pod) else SKIP

    def filter_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Verdicts:
        required = _required_features(pod)
        lacking: BoolN = np.zeros(len(nodes), dtype=np.bool_)
        if required:
            for position in np.flatnonzero(nodes.valid).tolist():
                lacking[position] = not _declares(nodes.info(position).node, required)
        return Verdicts.reject(lacking, _LACKING)

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        return None if _declares(node.node, _required_features(pod)) else _LACKING

    def events_to_register(self) -> list[EventHint]:
        features = ActionType.ADD | ActionType.UPDATE_NODE_DECLARED_FEATURE
        return [
            EventHint(ClusterEvent(Resource.NODE, features), self._after_node_change),
            EventHint(ClusterEvent(Resource.POD, ActionType.UPDATE), self._after_pod_update),
        ]

    @by_shape
    def _after_node_change(self, pod: PodInfo, old: Node | None, new: Node) -> Hint:
        is_news = old is None or (old.status.declared_features or []) != (new.status.declared_features or [])
        return Hint.QUEUE if is_news else Hint.SKIP

    @by_shape
    def _after_pod_update(self, pod: PodInfo, old: PodInfo | None, new: PodInfo) -> Hint:
        if new.uid != pod.uid:
            return Hint.SKIP
        is_news = old is None or _required_features(old) != _required_features(new)
        return Hint.QUEUE if is_news else Hint.SKIP


def _required_features(pod: PodInfo) -> frozenset[str]:
    return pod.shape.note(NodeDeclaredFeatures, lambda: _infer_features(pod))


def _infer_features(pod: PodInfo) -> frozenset[str]:
    spec = pod.shape.spec
    rules = [
        rule for c in [*(spec.init_containers or ()), *(spec.containers or ())] for rule in c.restart_policy_rules or ()
    ]
    features = set()
    if any(rule.action == "RestartAllContainers" for rule in rules):
        features.add("RestartAllContainersOnContainerExits")
    if spec.host_network and spec.host_users is False:
        features.add("UserNamespacesHostNetworkSupport")
    return frozenset(features) if features else _NONE


def _declares(node: Node, required: frozenset[str]) -> bool:
    return required.issubset(node.status.declared_features or ())
