"""Counting for inter-pod affinity: which running pods matter to an incoming pod, by topology value.

Two directions: the incoming pod's terms against running pods (standing counters by row), and running pods' terms
against the incoming pod (term groups, compared once per shape). Both end as counts per value of a topology key.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from bayplan.api.workload import Namespace
from bayplan.framework import NodeInfo, PodInfo
from bayplan.snapshot.affinity_terms import PodTerm
from bayplan.snapshot.pod_index import PodQuery
from bayplan.snapshot.snapshot import Snapshot
from bayplan.snapshot.term_index import TermGroup

__all__ = ["Counts", "PairCounts", "matching_groups", "meant_namespaces", "query_of"]

Counts = npt.NDArray[np.float64]
"""By value id of one topology key. Floats because NumPy's weighted bincount gives them; always whole."""


class PairCounts:
    """Counts per (topology key, value). Keys appear when something is counted under them."""

    __slots__ = ("_snapshot", "by_key")

    def __init__(self, snapshot: Snapshot, by_key: dict[str, Counts] | None = None) -> None:
        self._snapshot = snapshot
        self.by_key: dict[str, Counts] = {} if by_key is None else by_key

    def __bool__(self) -> bool:
        return any(counts.any() for counts in self.by_key.values())

    def copy(self) -> PairCounts:
        return PairCounts(self._snapshot, {key: counts.copy() for key, counts in self.by_key.items()})

    def add_rows(self, key: str, rows: npt.NDArray[np.number], weight: int = 1) -> None:
        """Count what a column over all rows holds."""
        counts = self._snapshot.nodes.label(key).count(rows)
        if weight != 1:
            counts *= weight
        known = self.by_key.get(key)
        self.by_key[key] = counts if known is None else known + counts

    def move(self, key: str, node: NodeInfo, by: int) -> None:
        """Count one pod on one node, if the node has the key."""
        value = node.labels.get(key)
        if value is None:
            return
        column = self._snapshot.nodes.label(key)
        counts = self.by_key.get(key)
        if counts is None:
            counts = self.by_key[key] = np.zeros(column.domains, dtype=np.float64)
        counts[column.id_of(value)] += by

    def at(self, key: str, node: NodeInfo) -> float:
        counts, value = self.by_key.get(key), node.labels.get(key)
        if counts is None or value is None:
            return 0.0
        number = self._snapshot.nodes.label(key).id_of(value)
        return float(counts[number]) if 0 <= number < len(counts) else 0.0


def meant_namespaces(term: PodTerm, snapshot: Snapshot) -> frozenset[str] | None:
    """The namespaces an incoming pod's term means; None for all.

    kube-scheduler lists the namespaces that match the selector, and then asks the selector about empty labels as well:
    a selector that accepts those (NotIn, DoesNotExist) means every namespace.
    """
    selector = term.namespace_selector
    if selector.matches({}):
        return None
    if selector.is_nothing:
        return term.namespaces
    found = {item.name for item in snapshot.objects.list(Namespace) if selector.matches(item.labels)}
    return term.namespaces | found


def query_of(terms: Iterable[PodTerm], snapshot: Snapshot) -> PodQuery:
    """Running pods that every one of the terms means."""
    return PodQuery(tuple((meant_namespaces(term, snapshot), term.selector) for term in terms))


class _Matched:
    __slots__ = ("compactions", "groups", "seen")

    def __init__(self) -> None:
        self.compactions = -1
        self.seen = 0
        self.groups: list[TermGroup] = []


def matching_groups(pod: PodInfo, snapshot: Snapshot) -> list[TermGroup]:
    """Terms of running pods that mean this pod. Each distinct term is compared with a shape once."""
    terms = snapshot.terms
    if not len(terms):
        return []
    matched = pod.shape.note(("matching terms", snapshot.objects.version(Namespace)), _Matched)
    if matched.compactions != terms.compactions:
        matched.compactions, matched.seen, matched.groups = terms.compactions, 0, []
    if matched.seen < len(terms.additions):
        labels = snapshot.namespace_labels(pod.namespace)
        fresh = terms.additions[matched.seen :]
        matched.groups += [g for g in fresh if g.rule.term.matches(pod.namespace, pod.labels, labels)]
        matched.seen = len(terms.additions)
    return [group for group in matched.groups if group.counts]
