"""The free amounts of a node's cells if some of its pods were evicted; for dry runs of preemption."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bayplan.framework import PodInfo
from bayplan.framework.objects import Amounts
from bayplan.plugins.community.node_resource_topology_match.placement import ContainerName
from bayplan.plugins.community.node_resource_topology_match.requests import exclusive_requests, requests_of
from bayplan.plugins.community.node_resource_topology_match.topology import NumaTopology

__all__ = ["EXCEEDS", "Victims", "exclusive_containers", "held_by_cell", "released"]

EXCEEDS = "resource release request exceeds NUMA allocatable"


class Victims:
    """Pods that a dry run removed from the node, by uid."""

    def __init__(self, pods: Mapping[str, PodInfo] | None = None) -> None:
        self.pods = dict(pods or {})

    def clone(self) -> Victims:
        return Victims(self.pods)


def exclusive_containers(pod: PodInfo, listed: frozenset[str]) -> dict[ContainerName, Amounts]:
    """The containers with exclusive resources on the node, and those resources."""
    asked = requests_of(pod)
    held = {
        (pod.namespace, pod.name, each.name): exclusive_requests(each, listed, is_guaranteed=asked.is_guaranteed)
        for each in asked.containers
    }
    return {name: amounts for name, amounts in held.items() if amounts}


def held_by_cell(pod: PodInfo, where: Mapping[ContainerName, int], listed: frozenset[str]) -> dict[int, Amounts]:
    """The exclusive resources of the pod on each cell, as far as the cells of its containers are known."""
    held: dict[int, Amounts] = {}
    for name, amounts in exclusive_containers(pod, listed).items():
        if name in where:
            cell = held.setdefault(where[name], {})
            for resource, amount in amounts.items():
                cell[resource] = cell.get(resource, 0) + amount
    return held


def released(
    topology: NumaTopology, victims: Iterable[PodInfo], where: Mapping[ContainerName, int], listed: frozenset[str]
) -> NumaTopology | None:
    """The cells with what the victims hold on them; None if a cell would have more free than it has."""
    back: dict[int, Amounts] = {}
    for victim in victims:
        for number, amounts in held_by_cell(victim, where, listed).items():
            cell = back.setdefault(number, {})
            for resource, amount in amounts.items():
                cell[resource] = cell.get(resource, 0) + amount
    cells = []
    for cell_now in topology.cells:
        more = back.get(cell_now.number, {})
        available = {name: amount + more.get(name, 0) for name, amount in cell_now.available.items()}
        if any(available[name] > cell_now.allocatable[name] for name in more if name in available):
            return None
        cells.append(cell_now._replace(available=available))
    return topology._replace(cells=tuple(cells))
