"""Nodes and node selectors, as far as scheduling reads them."""

from __future__ import annotations

import msgspec

from bayplan.api.meta import KubeObject, Struct
from bayplan.api.quantity import Quantity

__all__ = [
    "Node",
    "NodeCondition",
    "NodeImage",
    "NodeSelector",
    "NodeSelectorRequirement",
    "NodeSelectorTerm",
    "NodeSpec",
    "NodeStatus",
    "Taint",
    "normalized_image_name",
]


class NodeSelectorRequirement(Struct):
    key: str = ""
    operator: str = ""
    values: list[str] | None = None


class NodeSelectorTerm(Struct):
    match_expressions: list[NodeSelectorRequirement] | None = None
    match_fields: list[NodeSelectorRequirement] | None = None


class NodeSelector(Struct):
    node_selector_terms: list[NodeSelectorTerm] | None = None


class Taint(Struct):
    key: str = ""
    value: str = ""
    effect: str = ""


class NodeImage(Struct):
    names: list[str] | None = None
    size_bytes: int = 0


class NodeCondition(Struct):
    type: str = ""
    status: str = ""


class NodeSpec(Struct):
    unschedulable: bool = False
    taints: list[Taint] | None = None
    provider_id: str = msgspec.field(default="", name="providerID")


class NodeStatus(Struct):
    allocatable: dict[str, Quantity] | None = None
    capacity: dict[str, Quantity] | None = None
    images: list[NodeImage] | None = None
    conditions: list[NodeCondition] | None = None
    declared_features: list[str] | None = None


class Node(KubeObject):
    spec: NodeSpec = msgspec.field(default_factory=NodeSpec)
    status: NodeStatus = msgspec.field(default_factory=NodeStatus)


def normalized_image_name(name: str) -> str:
    """The name with `:latest` if it has no tag, as nodes report it; a colon before the last slash is a port."""
    return name if name.rfind(":") > name.rfind("/") else f"{name}:latest"
