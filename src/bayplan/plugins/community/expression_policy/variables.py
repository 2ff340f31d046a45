"""`pod` and `node` as expressions see them: which fields there are, their types, and their values.

Only the fields that an expression reads are made, and what follows from a pod's shape or a node's object is made once.
Amounts are quantities, so `pod.requests["cpu"].isLessThan(node.allocatable["cpu"])` compares what it says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from bayplan.cel import Environment
from bayplan.cel.library import KUBERNETES
from bayplan.cel.library.quantity import QUANTITY, Quantity, parse_quantity
from bayplan.cel.types import BOOL, INT, STRING, Type, list_of, map_of, object_type
from bayplan.cel.values import Map, Value
from bayplan.framework import NodeInfo, PodInfo

__all__ = ["BEYOND_NODE_OBJECT", "BEYOND_SHAPE", "ENVIRONMENT", "node_variable", "pod_variable"]

T = TypeVar("T")

_MAX_COST = 1_000_000
"""What evaluating an expression for one node may cost."""

_TEXTS, _AMOUNTS = map_of(STRING, STRING), map_of(STRING, QUANTITY)
_POD, _NODE = object_type("Pod"), object_type("Node")
_TAINT, _TOLERATION = object_type("Taint"), object_type("Toleration")
_FIELDS: dict[str, dict[str, Type]] = {
    "Pod": {
        "name": STRING,
        "namespace": STRING,
        "labels": _TEXTS,
        "annotations": _TEXTS,
        "nodeSelector": _TEXTS,
        "ownerKind": STRING,
        "ownerName": STRING,
        "priority": INT,
        "priorityClassName": STRING,
        "requests": _AMOUNTS,
        "schedulerName": STRING,
        "tolerations": list_of(_TOLERATION),
    },
    "Node": {
        "name": STRING,
        "labels": _TEXTS,
        "annotations": _TEXTS,
        "allocatable": _AMOUNTS,
        "pods": INT,
        "requested": _AMOUNTS,
        "taints": list_of(_TAINT),
        "unschedulable": BOOL,
    },
    "Taint": {"key": STRING, "value": STRING, "effect": STRING},
    "Toleration": {"key": STRING, "operator": STRING, "value": STRING, "effect": STRING},
}

BEYOND_SHAPE = frozenset({"name", "annotations"})
"""Fields of a pod that differ between pods of one shape."""
BEYOND_NODE_OBJECT = frozenset({"pods", "requested"})
"""Fields of a node that follow from the pods on it."""


ENVIRONMENT = Environment(
    {"pod": _POD, "node": _NODE}, KUBERNETES, fields=_FIELDS, cost_limit=_MAX_COST, is_trusted=True
)
"""What expressions of policies are compiled against."""


def pod_variable(pod: PodInfo, fields: frozenset[str]) -> Map:
    """The fields of a pod that are read."""
    made: Map = pod.shape.note((pod_variable, fields), lambda: _made(_OF_SHAPE, pod, fields))
    return made | _made(_OF_POD, pod, fields) if fields & BEYOND_SHAPE else made


def node_variable(node: NodeInfo, fields: frozenset[str]) -> Map:
    """The fields of a node that are read."""
    return _made(_OF_NODE, node, fields)


def _made(makers: Mapping[str, Callable[[T], Value]], of: T, fields: frozenset[str]) -> Map:
    return {name: make(of) for name, make in makers.items() if name in fields}


def _amounts(amounts: Mapping[str, int]) -> Value:
    return {name: Quantity(amount, -3 if name == "cpu" else 0) for name, amount in amounts.items()}


def _tolerations(pod: PodInfo) -> Value:
    return [
        {"key": each.key, "operator": each.operator or "Equal", "value": each.value, "effect": each.effect}
        for each in pod.shape.spec.tolerations or ()
    ]


def _allocatable(node: NodeInfo) -> Value:
    return {name: parse_quantity(str(amount)) for name, amount in (node.node.status.allocatable or {}).items()}


def _requested(node: NodeInfo) -> Value:
    return _amounts({name: node.requested_of(name) for name in node.resources.names})


_OF_SHAPE: dict[str, Callable[[PodInfo], Value]] = {
    "namespace": lambda pod: pod.namespace,
    "labels": lambda pod: dict(pod.labels),
    "nodeSelector": lambda pod: dict(pod.shape.spec.node_selector or {}),
    "ownerKind": lambda pod: pod.shape.controller.kind if pod.shape.controller else "",
    "ownerName": lambda pod: pod.shape.controller.name if pod.shape.controller else "",
    "priority": lambda pod: pod.priority,
    "priorityClassName": lambda pod: pod.shape.spec.priority_class_name,
    "requests": lambda pod: _amounts(pod.shape.amounts),
    "schedulerName": lambda pod: pod.scheduler_name,
    "tolerations": _tolerations,
}
_OF_POD: dict[str, Callable[[PodInfo], Value]] = {
    "name": lambda pod: pod.name,
    "annotations": lambda pod: dict(pod.annotations),
}
_OF_NODE: dict[str, Callable[[NodeInfo], Value]] = {
    "name": lambda node: node.name,
    "labels": lambda node: dict(node.labels),
    "annotations": lambda node: dict(node.annotations),
    "allocatable": _allocatable,
    "pods": lambda node: len(node.pods),
    "requested": _requested,
    "taints": lambda node: [{"key": each.key, "value": each.value, "effect": each.effect} for each in node.taints],
    "unschedulable": lambda node: node.unschedulable,
}
