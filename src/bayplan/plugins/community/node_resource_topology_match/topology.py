"""A node's NUMA cells and its kubelet's topology settings, as numbers, from a NodeResourceTopology."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from bayplan.framework.objects import Amounts, QuantityError, to_amounts
from bayplan.plugins.community.node_resource_topology_match.node_resource_topology import NodeResourceTopology, Zone
from bayplan.plugins.community.node_resource_topology_match.placement import (
    METADATA_ATTRIBUTE,
    VECTOR_ATTRIBUTE,
    PlacementText,
)

__all__ = ["CONTAINER_SCOPE", "POD_SCOPE", "SINGLE_NUMA_NODE", "NumaCell", "NumaTopology", "TopologySettings"]

CONTAINER_SCOPE, POD_SCOPE = "container", "pod"
SINGLE_NUMA_NODE = "single-numa-node"
_POLICIES = ("none", "best-effort", "restricted", SINGLE_NUMA_NODE)
_LEGACY = {
    "SingleNUMANode": SINGLE_NUMA_NODE,
    "BestEffort": "best-effort",
    "Restricted": "restricted",
}
_DEFAULT_MAX, _LIMIT_OF_MAX = 8, 1024
_CELL_NAME = re.compile(r"node-(\d{1,4})")
_FINGERPRINT = "nodeTopologyPodsFingerprint"
_FINGERPRINT_METHOD = "nodeTopologyPodsFingerprintMethod"
_FINGERPRINT_ANNOTATION = "topology.node.k8s.io/fingerprint"


class TopologySettings(NamedTuple):
    """The kubelet's topology manager."""

    scope: str = CONTAINER_SCOPE
    policy: str = "none"
    max_numa_nodes: int = _DEFAULT_MAX

    @classmethod
    def of(cls, topology: NodeResourceTopology) -> TopologySettings:
        """Defaults, then the legacy policy, then the attributes; invalid values are ignored."""
        settings = _legacy(cls(), (topology.topology_policies or [""])[0])
        scope = topology.attribute("topologyManagerScope")
        if scope in (CONTAINER_SCOPE, POD_SCOPE):
            settings = settings._replace(scope=scope)
        policy = topology.attribute("topologyManagerPolicy")
        if policy in _POLICIES:
            settings = settings._replace(policy=policy)
        most = topology.attribute("topologyManagerMaxNUMANodes")
        if most.isascii() and most.isdigit() and int(most[:6]) > 1:
            settings = settings._replace(max_numa_nodes=min(int(most[:6]), _LIMIT_OF_MAX))
        return settings


def _legacy(settings: TopologySettings, text: str) -> TopologySettings:
    for suffix, scope in (("ContainerLevel", CONTAINER_SCOPE), ("PodLevel", POD_SCOPE), ("", settings.scope)):
        policy = _LEGACY.get(text.removesuffix(suffix)) if text.endswith(suffix) else None
        if policy is not None and (suffix or policy == SINGLE_NUMA_NODE):
            return settings._replace(policy=policy, scope=scope)
    return settings


class NumaCell(NamedTuple):
    number: int
    available: Amounts
    allocatable: Amounts
    costs: dict[int, int]


class NumaTopology(NamedTuple):
    settings: TopologySettings
    cells: tuple[NumaCell, ...]
    """By number."""
    fingerprint: str
    fingerprint_method: str
    placement: PlacementText = PlacementText()
    """The cells of the containers, as the object states them."""

    @classmethod
    def of(cls, topology: NodeResourceTopology) -> NumaTopology:
        cells = [cell for cell in map(_cell, topology.zones or ()) if cell is not None]
        annotation = topology.annotations.get(_FINGERPRINT_ANNOTATION, "")
        return cls(
            TopologySettings.of(topology),
            tuple(sorted(cells, key=lambda cell: cell.number)),
            topology.attribute(_FINGERPRINT) or annotation,
            topology.attribute(_FINGERPRINT_METHOD),
            _placement_text(topology),
        )

    @property
    def is_single_numa(self) -> bool:
        return self.settings.policy == SINGLE_NUMA_NODE

    def without(self, amounts: Amounts) -> NumaTopology:
        """The topology with the amounts subtracted from every cell that has the resource: the cell is not known yet."""
        cells = tuple(cell._replace(available=_reduced(cell.available, amounts)) for cell in self.cells)
        return self._replace(cells=cells)

    def with_more(self, given_back: Iterable[Mapping[int, Amounts]]) -> NumaTopology:
        """The topology with the amounts added on each cell, as far as the cell has the resource."""
        cells = self.cells
        for by_cell in given_back:
            cells = tuple(
                cell._replace(available=_increased(cell, by_cell[cell.number])) if cell.number in by_cell else cell
                for cell in cells
            )
        return self._replace(cells=cells)


def _increased(cell: NumaCell, more: Amounts) -> Amounts:
    return {
        name: min(amount + more.get(name, 0), max(cell.allocatable[name], amount))
        for name, amount in cell.available.items()
    }


def _reduced(available: Amounts, amounts: Amounts) -> Amounts:
    return {name: max(amount - amounts.get(name, 0), 0) for name, amount in available.items()}


def _placement_text(topology: NodeResourceTopology) -> PlacementText:
    vectors = [
        (number, attribute.value)
        for zone in topology.zones or ()
        for attribute in zone.attributes or ()
        if attribute.name == VECTOR_ATTRIBUTE and zone.type == "Node" and (number := _number(zone.name)) is not None
    ]
    return PlacementText(topology.attribute(METADATA_ATTRIBUTE), tuple(vectors))


def _cell(zone: Zone) -> NumaCell | None:
    number = _number(zone.name)
    if zone.type != "Node" or number is None:
        return None
    try:
        available = to_amounts({each.name: each.available for each in zone.resources or ()})
        allocatable = to_amounts({each.name: each.allocatable for each in zone.resources or ()})
    except QuantityError:
        return None
    costs = {other: cost.value for cost in zone.costs or () if (other := _number(cost.name)) is not None}
    return NumaCell(number, available, allocatable, costs)


def _number(name: str) -> int | None:
    found = _CELL_NAME.fullmatch(name)
    return int(found[1]) if found else None
