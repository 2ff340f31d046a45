"""The NodeResourceTopology custom resource: what each NUMA cell of a node has free, as reported by an agent on the
node.

The object has the node's name. It is read, never written; `topology` converts it to numbers.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from bayplan.framework import CustomResource, ResourcePart
from bayplan.framework.objects import Quantity

__all__ = ["NodeResourceTopology", "TopologyAttribute", "TopologyResource", "Zone", "ZoneCost"]


class TopologyAttribute(ResourcePart):
    """A name with a value."""

    name: str
    value: str


class ZoneCost(ResourcePart):
    """How far away another zone is."""

    name: str
    value: int


class TopologyResource(ResourcePart):
    """What a zone has of one resource."""

    name: str
    capacity: Quantity
    allocatable: Quantity
    available: Annotated[Quantity, Meta(description="What is free.")]


class Zone(ResourcePart):
    """A part of the node; NUMA cells have the type `Node` and are named `node-0`, `node-1` and so on."""

    name: str
    type: str
    parent: str | None = None
    costs: list[ZoneCost] | None = None
    attributes: list[TopologyAttribute] | None = None
    resources: list[TopologyResource] | None = None


class NodeResourceTopology(
    CustomResource,
    group="topology.node.k8s.io",
    version="v1alpha2",
    plural="noderesourcetopologies",
    scope="Cluster",
    short_names=("node-res-topo",),
    approved_by="https://github.com/kubernetes/enhancements/pull/1870",
    kw_only=True,
):
    """The zones of the node of the same name."""

    zones: list[Zone]
    topology_policies: Annotated[list[str] | None, Meta(description="Deprecated; attributes take precedence.")] = None
    attributes: list[TopologyAttribute] | None = None

    def attribute(self, name: str) -> str:
        """The value of an attribute of the whole node; empty when there is none."""
        return next((each.value for each in self.attributes or () if each.name == name), "")
