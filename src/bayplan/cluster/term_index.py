"""The affinity terms of pods that already run, counted by row.

Required anti-affinity of existing pods keeps others away, their preferences attract them. Pods of one template have the
same terms, so terms are grouped: a group has the rows of its pods. An incoming pod is
compared with each distinct term once per shape, not with each pod.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple

from bayplan.cluster.affinity_terms import PodTerm, PodTerms
from bayplan.cluster.axes import Int32N
from bayplan.cluster.pod_info import PodInfo
from bayplan.cluster.row_counts import RowCounts

__all__ = ["TermGroup", "TermIndex", "TermKind", "TermRule"]


class TermKind(IntEnum):
    REQUIRED_AFFINITY = 0
    REQUIRED_ANTI_AFFINITY = 1
    PREFERRED_AFFINITY = 2
    PREFERRED_ANTI_AFFINITY = 3


class TermRule(NamedTuple):
    """What pods of a group state. Weight is 0 for required terms."""

    kind: TermKind
    weight: int
    term: PodTerm


class TermGroup:
    """Running pods that state the same term: how many on each row."""

    __slots__ = ("_column", "counts", "number", "rule")

    def __init__(self, rule: TermRule, number: int) -> None:
        self.rule = rule
        self.number = number
        self.counts: dict[int, int] = {}
        self._column: RowCounts | None = None

    def column(self, capacity: int) -> RowCounts:
        """The counts as a column; kept up to date once it was read."""
        if self._column is None or len(self._column.rows) != capacity:
            self._column = RowCounts(capacity)
            for row, count in self.counts.items():
                self._column.rows[row] = count
        return self._column

    def rows(self, capacity: int) -> Int32N:
        return self.column(capacity).rows

    def move(self, row: int, by: int) -> None:
        count = self.counts.get(row, 0) + by
        if count:
            self.counts[row] = count
        else:
            del self.counts[row]
        if self._column is None:
            return
        if row < len(self._column.rows):
            self._column.move(row, by)
        else:
            self._column = None


class TermIndex:
    def __init__(self) -> None:
        self._groups: dict[TermRule, TermGroup] = {}
        self._made = 0
        self.additions: list[TermGroup] = []
        """Groups in order of making, dead ones included until the next compaction."""
        self.compactions = 0
        self.generation = 0
        """Grows whenever a pod with terms comes or goes."""

    def __len__(self) -> int:
        return len(self._groups)

    def groups(self) -> Iterator[TermGroup]:
        return iter(self._groups.values())

    # Written by the cache alone.

    def add(self, pod: PodInfo, row: int) -> None:
        self.generation += 1
        for rule in rules_of(pod):
            group = self._groups.get(rule)
            if group is None:
                self._made += 1
                group = self._groups[rule] = TermGroup(rule, self._made)
                self.additions.append(group)
            group.move(row, 1)

    def remove(self, pod: PodInfo, row: int) -> None:
        self.generation += 1
        for rule in rules_of(pod):
            group = self._groups[rule]
            group.move(row, -1)
            if not group.counts:
                del self._groups[rule]
                self._compact_if_due()

    def _compact_if_due(self) -> None:
        if len(self.additions) > 64 + 2 * len(self._groups):
            self.additions = list(self._groups.values())
            self.compactions += 1


def rules_of(pod: PodInfo) -> tuple[TermRule, ...]:
    """Every term a pod states, one entry a term: equal terms of one pod count twice."""
    return pod.shape.note(TermRule, lambda: _rules(pod.shape.readable_terms))


def _rules(terms: PodTerms) -> tuple[TermRule, ...]:
    return (
        *(TermRule(TermKind.REQUIRED_AFFINITY, 0, term) for term in terms.required_affinity),
        *(TermRule(TermKind.REQUIRED_ANTI_AFFINITY, 0, term) for term in terms.required_anti_affinity),
        *(TermRule(TermKind.PREFERRED_AFFINITY, w.weight, w.term) for w in terms.preferred_affinity),
        *(TermRule(TermKind.PREFERRED_ANTI_AFFINITY, w.weight, w.term) for w in terms.preferred_anti_affinity),
    )
