"""Counts for topology spread: matching pods per domain, over the nodes that a constraint includes.

Which nodes count, and under which domain, depends on little of a pod: the topology key, and its node affinity and
tolerations where the constraint honours those. So inclusions are kept by these parts and shared by all shapes.
Counts for required constraints can be moved by dry runs (`CountedDomains`).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import NamedTuple

import numpy as np

from bayplan.framework import NodeColumns, NodeInfo, PodInfo
from bayplan.framework.columns import (
    ABSENT,
    BoolN,
    ClusterState,
    DomainCounts,
    LabelColumn,
    NodeTable,
    PodQuery,
    Rows,
    has_untolerated_taint,
    match_required,
)
from bayplan.framework.objects import first_untolerated
from bayplan.plugins.intree.pod_topology_spread.constraints import SpreadConstraint

__all__ = [
    "CountedDomains",
    "HardSpread",
    "Inclusion",
    "Inclusions",
    "count_domains",
    "inclusion_key",
    "is_included",
    "query_of",
]

_MOST_INCLUSIONS = 128


class Inclusion(NamedTuple):
    """Which nodes count for one constraint, and under which domain."""

    column: LabelColumn
    bins: Rows
    """For each row its domain, or `trash` where the node does not count."""
    trash: int
    registered: BoolN
    """Domains with at least one node that counts."""
    domains: int
    """The number of those."""


def inclusion_key(constraint: SpreadConstraint, pod: PodInfo, keys: frozenset[str]) -> Hashable:
    """What an inclusion depends on. Nodes must have all of `keys` besides the constraint's own."""
    shape = pod.shape
    wants_nodes = constraint.honors_affinity and not shape.required_nodes.is_anything
    tolerated = shape.note("tolerated", lambda: _tolerated(pod)) if constraint.honors_taints else None
    required = shape.required_nodes if wants_nodes else None
    return constraint.topology_key, keys, required, tolerated, constraint.lacking_is_empty


def _tolerated(pod: PodInfo) -> frozenset[tuple[str, ...]]:
    return frozenset((t.key, t.operator, t.value, t.effect) for t in pod.shape.tolerations)


class Inclusions:
    """The inclusions in use; recomputed when a node object changes."""

    def __init__(self) -> None:
        self._known: OrderedDict[Hashable, Inclusion] = OrderedDict()
        self._position = -1
        self._layout = -1

    def find(
        self, key: Hashable, constraint: SpreadConstraint, pod: PodInfo, keys: frozenset[str], table: NodeTable
    ) -> Inclusion:
        """The inclusion with this `inclusion_key`."""
        if self._position != table.node_changes.position or self._layout != table.layout:
            self._known.clear()
            self._position, self._layout = table.node_changes.position, table.layout
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = _include(constraint, pod, NodeColumns(table), keys)
            if len(self._known) > _MOST_INCLUSIONS:
                self._known.popitem(last=False)
        return found


def _include(constraint: SpreadConstraint, pod: PodInfo, nodes: NodeColumns, keys: frozenset[str]) -> Inclusion:
    column = nodes.label(constraint.topology_key)
    trash = column.domains
    bins = nodes.label_bins(constraint.topology_key)
    empty = column.id_of("")
    if constraint.lacking_is_empty and empty != ABSENT:
        bins = np.where(nodes.valid & (bins == trash), empty, bins)
    counted: BoolN = bins != trash
    for key in keys - {constraint.topology_key}:
        counted &= nodes.label_bins(key) != nodes.label(key).domains
    if constraint.honors_affinity and not pod.shape.required_nodes.is_anything:
        counted &= match_required(pod.shape.required_nodes, nodes)
    if constraint.honors_taints:
        counted &= ~has_untolerated_taint(pod.shape.tolerations, nodes)
    bins = np.where(counted, bins, trash)
    registered = np.zeros(trash + 1, dtype=np.bool_)
    registered[bins] = True
    registered = registered[:trash]
    return Inclusion(column, bins, trash, registered, int(registered.sum()))


def is_included(constraint: SpreadConstraint, pod: PodInfo, node: NodeInfo) -> bool:
    """The inclusion policies for one node."""
    if constraint.honors_affinity and not pod.shape.required_nodes.matches(node.labels, node.name):
        return False
    return not constraint.honors_taints or first_untolerated(node.taints, pod.shape.tolerations) is None


def query_of(constraint: SpreadConstraint, pod: PodInfo) -> PodQuery | None:
    """A query for the pods that count. None for the empty selector, which counts none."""
    if not constraint.selector.requirements:
        return None
    return PodQuery(((frozenset((pod.namespace,)), constraint.selector),), counts_terminating=False)


def count_domains(inclusion: Inclusion, query: PodQuery | None, cluster: ClusterState) -> DomainCounts:
    """Matching pods by domain, with a last entry, always 0, for nodes without the key. Read-only."""
    if query is None:
        return np.zeros(inclusion.trash + 1, dtype=np.float64)
    return cluster.pods.counter(query).by_domain(inclusion.bins, inclusion.trash).shown


class CountedDomains:
    """Matching pods per domain of one constraint, with the two lowest domains kept as kube-scheduler keeps them.

    After a dry run moved counts, the minimum comes from these two slots alone; that approximation is deliberate.
    """

    __slots__ = ("constraint", "counts", "inclusion", "slots")

    def __init__(self, constraint: SpreadConstraint, inclusion: Inclusion, counts: DomainCounts) -> None:
        self.constraint = constraint
        self.inclusion = inclusion
        self.counts = counts
        self.slots: list[list[float]] | None = None

    def copy(self) -> CountedDomains:
        twin = CountedDomains(self.constraint, self.inclusion, self.counts.copy())
        twin.slots = None if self.slots is None else [list(slot) for slot in self.slots]
        return twin

    def minimum(self) -> float:
        if self.inclusion.domains < self.constraint.min_domains:
            return 0.0
        if self.slots is not None:
            return self.slots[0][1]
        if not self.inclusion.domains:
            return float(2**31 - 1)
        counts = self.counts[: self.inclusion.trash]
        if self.inclusion.domains < self.inclusion.trash:
            counts = counts[self.inclusion.registered]
        return float(counts.min())

    def move(self, domain: int, by: int) -> None:
        if self.slots is None:
            self.slots = self._lowest_two()
        self.counts[domain] += by
        _update(self.slots, domain, float(self.counts[domain]))

    def _lowest_two(self) -> list[list[float]]:
        domains = np.flatnonzero(self.inclusion.registered)
        lowest = domains[np.argsort(self.counts[domains], kind="stable")[:2]]
        slots = [[float(domain), float(self.counts[domain])] for domain in lowest]
        return slots + [[-1.0, float(2**31 - 1)]] * (2 - len(slots))


def _update(slots: list[list[float]], domain: int, count: float) -> None:
    if slots[0][0] == domain:
        slots[0][1] = count
    elif slots[1][0] == domain:
        slots[1][1] = count
    elif count < slots[0][1]:
        slots[1], slots[0] = slots[0], [domain, count]
        return
    elif count < slots[1][1]:
        slots[1] = [domain, count]
        return
    if slots[0][1] > slots[1][1]:
        slots[0], slots[1] = slots[1], slots[0]


class HardSpread:
    __slots__ = ("domains", "lacks_key")

    def __init__(self, domains: list[CountedDomains], *, lacks_key: bool = False) -> None:
        self.domains = domains
        self.lacks_key = lacks_key
        """Whether no node has one of the keys: then no node passes, and nothing is counted."""

    def clone(self) -> HardSpread:
        return HardSpread([domain.copy() for domain in self.domains], lacks_key=self.lacks_key)
