"""Counting for topology spread: matching pods per domain, over the nodes that a constraint includes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bayplan.api.tolerations import first_untolerated
from bayplan.framework import NodeInfo, PodInfo
from bayplan.plugins.intree.spread_constraints import Constraint
from bayplan.snapshot.axes import ABSENT, BoolN, Rows
from bayplan.snapshot.columns import NodeColumns
from bayplan.snapshot.label_columns import LabelColumn
from bayplan.snapshot.node_matching import has_untolerated_taint, match_required
from bayplan.snapshot.node_table import NodeTable
from bayplan.snapshot.pod_index import PodQuery, RowCounter
from bayplan.snapshot.snapshot import Snapshot

__all__ = ["Counts", "Inclusion", "InclusionColumns", "count_domains", "counter_of", "is_included"]

Counts = npt.NDArray[np.float64]
"""Matching pods by domain id. Floats, because that is what NumPy's weighted bincount gives; always whole."""


class Inclusion(NamedTuple):
    """Which nodes count for one constraint, and under which domain."""

    column: LabelColumn
    bins: Rows
    """For each row its domain, or `trash` where the node does not count."""
    trash: int
    registered: BoolN
    """Domains with at least one node that counts."""
    domains: int


class InclusionColumns:
    """The inclusions of some constraints for pods of one shape; worked out anew when a node object changes."""

    def __init__(self, constraints: tuple[Constraint, ...], *, needs_all_keys: bool) -> None:
        self.constraints = constraints
        self._needs_all_keys = needs_all_keys
        self._position = -1
        self._layout = -1
        self._inclusions: list[Inclusion] = []

    def refreshed(self, pod: PodInfo, table: NodeTable) -> list[Inclusion]:
        if self._position != table.node_changes.position or self._layout != table.layout:
            self._inclusions = self._compute(pod, NodeColumns(table))
            self._position, self._layout = table.node_changes.position, table.layout
        return self._inclusions

    def _compute(self, pod: PodInfo, nodes: NodeColumns) -> list[Inclusion]:
        counted = nodes.valid
        if self._needs_all_keys:
            for constraint in self.constraints:
                counted = counted & (nodes.label_values(constraint.topology_key) != ABSENT)
        return [self._include(constraint, pod, nodes, counted) for constraint in self.constraints]

    def _include(self, constraint: Constraint, pod: PodInfo, nodes: NodeColumns, counted: BoolN) -> Inclusion:
        column = nodes.label(constraint.topology_key)
        values = nodes.label_values(constraint.topology_key)
        counted = counted & (values != ABSENT)
        if constraint.honors_affinity and not pod.shape.required_nodes.is_anything:
            counted = counted & match_required(pod.shape.required_nodes, nodes)
        if constraint.honors_taints:
            counted = counted & ~has_untolerated_taint(pod.shape.tolerations, nodes)
        trash = column.domains
        bins = np.where(counted, values, trash).astype(np.intp)
        registered = np.zeros(trash + 1, dtype=np.bool_)
        registered[bins] = True
        registered = registered[:trash]
        return Inclusion(column, bins, trash, registered, int(registered.sum()))


def is_included(constraint: Constraint, pod: PodInfo, node: NodeInfo) -> bool:
    """The inclusion policies for one node."""
    if constraint.honors_affinity and not pod.shape.required_nodes.matches(node.labels, node.name):
        return False
    return not constraint.honors_taints or first_untolerated(node.taints, pod.shape.tolerations) is None


def counter_of(constraint: Constraint, pod: PodInfo, snapshot: Snapshot) -> RowCounter | None:
    """Matching pods on each row. None for the empty selector, which counts nobody."""
    if not constraint.selector.requirements:
        return None
    namespaces = frozenset((pod.namespace,))
    return snapshot.pods.counter(PodQuery(((namespaces, constraint.selector),), counts_terminating=False))


def count_domains(inclusion: Inclusion, counter: RowCounter | None) -> Counts:
    if counter is None:
        return np.zeros(inclusion.trash, dtype=np.float64)
    bins = inclusion.bins
    weights: Counts = counter.rows[: len(bins)].astype(np.float64)
    counts = np.bincount(bins, weights=weights, minlength=inclusion.trash + 1)
    return counts[: inclusion.trash].astype(np.float64, copy=False)
