"""Whether the cluster could hold a group at all: the sum over nodes, without the group's own pods.

A sum ignores fragmentation, taints and affinity; it only avoids attempts that cannot succeed.
"""

from __future__ import annotations

import numpy as np

from bayplan.framework import NodeColumns
from bayplan.framework.columns import Int64N, PodSet
from bayplan.framework.objects import Amounts, format_quantity, to_amounts
from bayplan.plugins.community.coscheduling.pod_group import PodGroup

__all__ = ["described_gap", "resource_gap"]

_PODS = "pods"


def resource_gap(group: PodGroup, members: PodSet, nodes: NodeColumns) -> Amounts:
    """What is missing of the group's `minResources`, and of room for its pods; empty when nothing is."""
    needed = to_amounts(group.spec.min_resources)
    needed[_PODS] = needed.get(_PODS, 0) + group.spec.min_member
    gap = {name: amount - _free(name, members, nodes) for name, amount in needed.items()}
    return {name: amount for name, amount in gap.items() if amount > 0}


def _free(name: str, members: PodSet, nodes: NodeColumns) -> int:
    place = nodes.table.resources.find(name)
    if name == _PODS:
        free = nodes.allowed_pods - nodes.pod_count
    elif place is None:
        return 0
    else:
        free = nodes.allocatable(place) - nodes.requested(place)
    _give_back(free, place, members, nodes)
    # An overcommitted node does not reduce the room of the others.
    return int(np.maximum(free, 0).sum())


def _give_back(free: Int64N, place: int | None, members: PodSet, nodes: NodeColumns) -> None:
    rows = nodes.table.row_of
    for pod in members.placed.values():
        row = rows.get(pod.node_name)
        if row is not None:
            free[row] += 1 if place is None else dict(pod.usage.vector).get(place, 0)


def described_gap(gap: Amounts) -> str:
    """As the original prints its map: sorted, in Kubernetes notation."""
    return f"map[{' '.join(f'{name}:{format_quantity(gap[name], name)}' for name in sorted(gap))}]"
