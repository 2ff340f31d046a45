"""Counts for inter-pod affinity: running pods by topology value, as far as they matter to an incoming pod.

Two directions: the incoming pod's terms against running pods (counters by row that are kept up to date), and running
pods' terms against the incoming pod (term groups, compared once per shape). Both result in counts per value of a
topology key.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

import numpy as np

from bayplan.framework import NodeInfo, PodInfo
from bayplan.framework.columns import (
    ClusterState,
    DomainCounts,
    PodQuery,
    PodTerm,
    PodTerms,
    RowCounts,
    SelectedNamespaces,
    TermGroup,
    TermKind,
    TermView,
)
from bayplan.framework.objects import Namespace

__all__ = [
    "PairCounts",
    "TermQueries",
    "groups_keeping_away",
    "kept_sums",
    "matching_groups",
    "selected_namespaces",
    "term_queries",
]

_FEW_GROUPS = 4
"""Up to so many terms of running pods are summed for each decision; to look for kept sums costs as much."""
_FEW_ROWS = 16
"""A term on so many rows is added row by row: a column of its own takes more time, and memory for every node."""


class PairCounts:
    """Counts per (topology key, value). A key is present once something is counted under it.

    A key with a single source shares the read-only sums of that source; they are copied before they are changed.
    """

    __slots__ = ("_cluster", "_is_moved", "by_key")

    def __init__(self, cluster: ClusterState, by_key: dict[str, DomainCounts] | None = None) -> None:
        self._cluster = cluster
        self.by_key: dict[str, DomainCounts] = {} if by_key is None else by_key
        self._is_moved = False

    def __bool__(self) -> bool:
        """Whether anything is counted. Keys have counts above zero, unless a dry run removed pods."""
        return any(counts.any() for counts in self.by_key.values()) if self._is_moved else bool(self.by_key)

    def copy(self) -> PairCounts:
        twin = PairCounts(self._cluster, {key: counts.copy() for key, counts in self.by_key.items()})
        twin._is_moved = self._is_moved
        return twin

    def add(self, key: str, source: RowCounts, weight: int = 1) -> None:
        """Add the counts of a source, by value, times `weight`."""
        column = self._cluster.nodes.label(key)
        sums = source.by_domain(column.bins(), column.domains)
        if not sums.total:
            return
        known = self.by_key.get(key)
        counts = sums.shown if weight == 1 else sums.shown * weight
        self.by_key[key] = counts if known is None else known + counts

    def add_rows(self, key: str, amounts: Mapping[int, int]) -> None:
        """Add amounts by row, by value."""
        column = self._cluster.nodes.label(key)
        places = column.bins()[np.fromiter(amounts, dtype=np.intp, count=len(amounts))]
        if (places == column.domains).all():
            return
        weights = np.fromiter(amounts.values(), dtype=np.float64, count=len(amounts))
        counts: DomainCounts = np.bincount(places, weights=weights, minlength=column.domains + 1).astype(np.float64)
        counts[column.domains] = 0.0
        known = self.by_key.get(key)
        self.by_key[key] = counts if known is None else known + counts

    def move(self, key: str, node: NodeInfo, by: int) -> None:
        """Add `by` pods on one node, if the node has the key."""
        self._is_moved = True
        value = node.labels.get(key)
        if value is None:
            return
        column = self._cluster.nodes.label(key)
        counts = self.by_key.get(key)
        if counts is None:
            counts = self.by_key[key] = np.zeros(column.domains + 1, dtype=np.float64)
        elif not counts.flags.writeable:
            counts = self.by_key[key] = counts.copy()
        counts[column.id_of(value)] += by

    def at(self, key: str, node: NodeInfo) -> float:
        counts, value = self.by_key.get(key), node.labels.get(key)
        if counts is None or value is None:
            return 0.0
        number = self._cluster.nodes.label(key).id_of(value)
        return float(counts[number]) if 0 <= number < len(counts) else 0.0


def selected_namespaces(term: PodTerm, cluster: ClusterState) -> frozenset[str] | SelectedNamespaces | None:
    """The namespaces that a term of an incoming pod selects; None for all.

    kube-scheduler lists the namespaces that match the selector, and also matches the selector with empty labels: one
    that accepts those (NotIn, DoesNotExist) selects every namespace.
    """
    selector = term.namespace_selector
    if selector.matches({}):
        return None
    return cluster.namespaces.select(term.namespaces, selector)


class TermQueries:
    """The terms of a pod as queries over running pods; valid until a namespace changes its labels."""

    __slots__ = ("anti", "near", "version", "weighted")

    def __init__(self) -> None:
        self.version = -1
        self.near: PodQuery | None = None
        """Pods that match every required affinity term."""
        self.anti: list[tuple[str, PodQuery]] = []
        """Topology key and matching pods of each required anti-affinity term."""
        self.weighted: list[tuple[str, PodQuery, int]] = []
        """The same for preferred terms, with the weight; negative for anti-affinity."""

    def fill(self, terms: PodTerms, cluster: ClusterState) -> None:
        near = terms.required_affinity
        self.near = _query_of(near, cluster) if near else None
        self.anti = [(term.topology_key, _query_of((term,), cluster)) for term in terms.required_anti_affinity]
        signed = [(1, terms.preferred_affinity), (-1, terms.preferred_anti_affinity)]
        self.weighted = [
            (w.term.topology_key, _query_of((w.term,), cluster), sign * w.weight) for sign, some in signed for w in some
        ]


def term_queries(pod: PodInfo, cluster: ClusterState) -> TermQueries:
    """The queries of the pod's shape, kept with the shape."""
    queries = pod.shape.note(TermQueries, TermQueries)
    version = cluster.objects.version(Namespace)
    if queries.version != version:
        queries.fill(pod.shape.pod_terms, cluster)
        queries.version = version
    return queries


def _query_of(terms: Iterable[PodTerm], cluster: ClusterState) -> PodQuery:
    """A query for the running pods that match every one of the terms."""
    return PodQuery(tuple((selected_namespaces(term, cluster), term.selector) for term in terms))


class _Matched:
    __slots__ = ("as_of", "compactions", "generation", "groups", "keeping_away", "present", "seen", "version")

    def __init__(self) -> None:
        self.as_of = -1
        """The generation of objects at the last look."""
        self.compactions = -1
        self.version = -1
        self.seen = 0
        self.groups: list[TermGroup] = []
        self.generation = -1
        self.present: list[TermGroup] = []
        """Of the groups, those that have pods, as of the generation."""
        self.keeping_away: list[TermGroup] = []
        """Of these, the required anti-affinity."""


def matching_groups(pod: PodInfo, cluster: ClusterState) -> list[TermGroup]:
    """Terms of running pods that match this pod. Each distinct term is compared once with all pods alike."""
    return _matched(pod, cluster).present if len(cluster.terms) else []


def groups_keeping_away(pod: PodInfo, cluster: ClusterState) -> list[TermGroup]:
    """Of these, the required anti-affinity."""
    return _matched(pod, cluster).keeping_away if len(cluster.terms) else []


def _matched(pod: PodInfo, cluster: ClusterState) -> _Matched:
    terms, objects = cluster.terms, cluster.objects
    view = _view_of(pod, cluster)
    matched = view.note(_Matched, _Matched)
    if matched.generation == terms.generation and matched.as_of == objects.generation:
        return matched
    matched.as_of, version = objects.generation, objects.version(Namespace)
    if matched.compactions != terms.compactions or matched.version != version:
        matched.compactions, matched.version, matched.seen, matched.groups = terms.compactions, version, 0, []
        matched.generation = -1
    if matched.seen < len(terms.additions):
        labels = cluster.namespace_labels(pod.namespace)
        fresh = terms.additions[matched.seen :]
        matched.groups += [g for g in fresh if g.rule.term.matches(view.namespace, view.labels, labels)]
        matched.seen = len(terms.additions)
    if matched.generation != terms.generation:
        # Pods without terms come and go without this: thousands of terms cost them nothing.
        matched.generation = terms.generation
        present = [group for group in matched.groups if group.counts]
        if present != matched.present:
            matched.present = present
            matched.keeping_away = [each for each in present if each.rule.kind is TermKind.REQUIRED_ANTI_AFFINITY]
    return matched


class _Viewed:
    """Noted at a shape: how terms of running pods see its pods."""

    __slots__ = ("as_of", "view")

    def __init__(self) -> None:
        self.as_of = -1
        self.view: TermView | None = None


def _view_of(pod: PodInfo, cluster: ClusterState) -> TermView:
    terms, viewed = cluster.terms, pod.shape.note(_Viewed, _Viewed)
    view = viewed.view
    if view is None or viewed.as_of != terms.naming:
        view = viewed.view = terms.view(pod.namespace, pod.labels)
        viewed.as_of = terms.naming
    return view


class _Sums:
    """Noted at a view: what terms of running pods count for, by key and value."""

    __slots__ = ("as_of", "by_key", "groups")

    def __init__(self) -> None:
        self.as_of: tuple[int, ...] = ()
        self.by_key: dict[str, DomainCounts] = {}
        self.groups: Sequence[TermGroup] = ()
        """Kept, so that no other list has its identity."""


def kept_sums(
    name: Hashable, pod: PodInfo, groups: Sequence[TermGroup], weigh: Callable[[TermGroup], int], cluster: ClusterState
) -> dict[str, DomainCounts]:
    """The weighted counts of these groups, which match the pod. Where they are many, summed once for all pods alike,
    until a pod with terms comes or goes or a node changes; `name` says what the weights are."""
    if len(groups) <= _FEW_GROUPS:
        return _summed(groups, weigh, cluster, is_for_once=False)
    table, kept = cluster.nodes, _view_of(pod, cluster).note(name, _Sums)
    as_of = (cluster.terms.generation, table.node_changes.position, table.layout, id(groups))
    if kept.as_of != as_of:
        kept.as_of, kept.groups = as_of, groups
        kept.by_key = _summed(groups, weigh, cluster, is_for_once=True)
        for counts in kept.by_key.values():
            counts.flags.writeable = False
    return dict(kept.by_key)


def _summed(
    groups: Sequence[TermGroup], weigh: Callable[[TermGroup], int], cluster: ClusterState, *, is_for_once: bool
) -> dict[str, DomainCounts]:
    total, capacity = PairCounts(cluster), cluster.nodes.capacity
    by_row: dict[str, dict[int, int]] = {}
    for group in groups:
        weight, key = weigh(group), group.rule.term.topology_key
        if not weight:
            continue
        if not is_for_once or len(group.counts) > _FEW_ROWS:
            total.add(key, group.column(capacity), weight)
            continue
        amounts = by_row.setdefault(key, {})
        for row, count in group.counts.items():
            amounts[row] = amounts.get(row, 0) + weight * count
    for key, amounts in by_row.items():
        total.add_rows(key, amounts)
    return total.by_key
