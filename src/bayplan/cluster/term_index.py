"""The affinity terms of pods that already run, counted by row.

Required anti-affinity of existing pods keeps others away, their preferences attract them. Pods of one template have the
same terms, so terms are grouped: a group has the rows of its pods. An incoming pod is compared with each distinct term,
not with each pod, and pods that no term can tell apart are compared once for all of them (`TermView`): with a thousand
terms about, pods that have labels of their own would cost a thousand comparisons each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping
from enum import IntEnum
from typing import Any, NamedTuple, TypeVar
from weakref import WeakValueDictionary

from bayplan.cluster.affinity_terms import PodTerm, PodTerms
from bayplan.cluster.axes import Int32N
from bayplan.cluster.pod_info import PodInfo
from bayplan.cluster.row_counts import RowCounts

__all__ = ["TermGroup", "TermIndex", "TermKind", "TermRule", "TermView"]

T = TypeVar("T")


class _OtherValue(str):
    """Stands for every value of a label that no term names. Equal to no other string."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return self is not other

    def __hash__(self) -> int:
        return id(self)


_OTHER = _OtherValue("another value")


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


class TermView:
    """Pods that no term tells apart: of one namespace, and alike in what terms name of their labels."""

    __slots__ = ("__weakref__", "_notes", "labels", "namespace")

    def __init__(self, namespace: str, labels: Mapping[str, str]) -> None:
        self.namespace = namespace
        self.labels = labels
        """Those of a pod as terms see them: keys that some term names, values that none names as one and the same."""
        self._notes: dict[Hashable, Any] = {}

    def note(self, key: Hashable, compute: Callable[[], T]) -> T:
        """Something derived for all these pods, kept while one of them is known and there are terms."""
        found: T | None = self._notes.get(key)
        if found is None:
            found = self._notes[key] = compute()
        return found

    def forget(self) -> None:
        self._notes.clear()


class TermIndex:
    def __init__(self) -> None:
        self._groups: dict[TermRule, TermGroup] = {}
        self._named: dict[str, Counter[str]] = {}
        """By key of a label, how many terms name a value of it."""
        self._naming: Counter[str] = Counter()
        """How many terms name a key."""
        self.naming = 0
        """Grows whenever terms name another key or value than before: views that were found earlier may be too wide."""
        self._views: WeakValueDictionary[Hashable, TermView] = WeakValueDictionary()
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

    def view(self, namespace: str, labels: Mapping[str, str]) -> TermView:
        """The view that a pod with these labels belongs to, until `naming` grows. What was compared for a view stays
        right as long as it lives: a value that is named later was another value for nobody who still has the view."""
        named = self._named
        if len(labels) <= len(named):
            seen = {key: value if value in named[key] else _OTHER for key, value in labels.items() if key in named}
        else:
            seen = {
                key: labels[key] if labels[key] in values else _OTHER for key, values in named.items() if key in labels
            }
        place = (namespace, frozenset(seen.items()))
        found = self._views.get(place)
        if found is None:
            found = self._views[place] = TermView(namespace, seen)
        return found

    # Written by the cache alone.

    def add(self, pod: PodInfo, row: int) -> None:
        self.generation += 1
        for rule in rules_of(pod):
            group = self._groups.get(rule)
            if group is None:
                self._made += 1
                group = self._groups[rule] = TermGroup(rule, self._made)
                self.additions.append(group)
                self._name(rule.term)
            group.move(row, 1)

    def remove(self, pod: PodInfo, row: int) -> None:
        self.generation += 1
        for rule in rules_of(pod):
            group = self._groups[rule]
            group.move(row, -1)
            if not group.counts:
                del self._groups[rule]
                self._unname(rule.term)
                self._compact_if_due()
        if not self._groups:
            for view in list(self._views.values()):
                view.forget()

    def _name(self, term: PodTerm) -> None:
        for requirement in term.selector.requirements:
            key = requirement.key
            self._naming[key] += 1
            values = self._named.get(key)
            if values is None:
                values = self._named[key] = Counter()
                self.naming += 1
            if not requirement.values <= values.keys():
                self.naming += 1
            values.update(requirement.values)

    def _unname(self, term: PodTerm) -> None:
        for requirement in term.selector.requirements:
            key, values = requirement.key, self._named[requirement.key]
            for value in requirement.values:
                values[value] -= 1
                if not values[value]:
                    del values[value]
            self._naming[key] -= 1
            if not self._naming[key]:
                del self._naming[key], self._named[key]

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
