"""Counts of the pods that match a selector, on every row, kept as pods come and go.

Assigned pods that no selector distinguishes (same namespace, same labels, terminating or not) form a class. A counter
holds how many pods of a query are on each row; it is computed once from the classes, and from then on every pod that
joins or leaves a matching class changes one number. A counter that changed often, or that was asked about new classes
often, and was not read meanwhile is dropped: a pod with a thousand terms costs others nothing once it has its node.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from bayplan.api.selectors import Selector
from bayplan.cluster.namespace_index import SelectedNamespaces
from bayplan.cluster.pod_info import PodInfo
from bayplan.cluster.row_counts import RowCounts

__all__ = ["PodClass", "PodIndex", "PodQuery", "RowCounter"]


class PodQuery(NamedTuple):
    """Pods that every part means. A part without namespaces (None) means pods of all namespaces."""

    parts: tuple[tuple[frozenset[str] | SelectedNamespaces | None, Selector], ...]
    counts_terminating: bool = True

    def matches(self, namespace: str, labels: Mapping[str, str], *, is_terminating: bool) -> bool:
        if is_terminating and not self.counts_terminating:
            return False
        return all((ns is None or namespace in ns) and selector.matches(labels) for ns, selector in self.parts)

    @property
    def namespaces(self) -> frozenset[str] | None:
        """Where a match can be at all; None for anywhere, or in namespaces that are not listed."""
        found: frozenset[str] | None = None
        for namespaces, _ in self.parts:
            if isinstance(namespaces, frozenset):
                found = namespaces if found is None else found & namespaces
        return found

    @property
    def is_current(self) -> bool:
        """Whether it means the same pods as when it was made: no namespace changed since that a selector may mean."""
        return all(not isinstance(ns, SelectedNamespaces) or ns.is_current for ns, _ in self.parts)


class RowCounter(RowCounts):
    """The answer to one query: matching pods on each row."""

    __slots__ = ("_known", "_named", "is_read", "query", "unread_moves")

    def __init__(self, query: PodQuery, capacity: int) -> None:
        super().__init__(capacity)
        self.query = query
        self.unread_moves = 0
        """Changes, and new classes that were compared with it, since it was last read."""
        self.is_read = True
        """Since the index last looked for counters that nobody reads."""
        self._known: dict[tuple[str, bool, frozenset[tuple[str, str | None]]], bool] = {}
        self._named: dict[str, set[str]] = {}

    def means(self, pod_class: PodClass) -> bool:
        """Whether the query means the pods of a class. A query may have a thousand parts: classes that differ in labels
        which none of them names are compared once."""
        if len(self.query.parts) <= _FEW_PARTS:
            return pod_class.is_meant_by(self.query)
        if not self._named:
            for _, selector in self.query.parts:
                for requirement in selector.requirements:
                    self._named.setdefault(requirement.key, set()).update(requirement.values)
        named = self._named
        seen = frozenset((k, v if v in named[k] else None) for k, v in pod_class.labels.items() if k in named)
        place = (pod_class.namespace, pod_class.is_terminating, seen)
        known = self._known.get(place)
        if known is None:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            known = self._known[place] = pod_class.is_meant_by(self.query)
        return known


class PodClass:
    """Assigned pods that no selector distinguishes."""

    __slots__ = ("counters", "is_terminating", "labels", "namespace", "rows")

    def __init__(self, namespace: str, labels: Mapping[str, str], is_terminating: bool) -> None:
        self.namespace = namespace
        self.labels = labels
        self.is_terminating = is_terminating
        self.rows: dict[int, int] = {}
        self.counters: list[RowCounter] = []

    def is_meant_by(self, query: PodQuery) -> bool:
        return query.matches(self.namespace, self.labels, is_terminating=self.is_terminating)


_ClassKey = tuple[str, frozenset[tuple[str, str]], bool]
_Place = tuple[str, str, str]
"""(namespace, label, value): where to look for counters that may mean a class. Label and value are empty when the query
requires no single value."""
_ANYWHERE: _Place = ("", "", "")
_MOST_INDEXED_LABELS = 64
"""A class with more labels is found by its namespace alone, so that no pod's labels fill the index."""
_MOST_UNREAD_MOVES = 4096
"""Of all counters of one class together."""
_SWEEP_EVERY = 256
_FEW_PARTS = 8
_MOST_KNOWN = 1024
_MOST_NAMESPACES = 64
"""A query for more of them is found by classes of every namespace, so that no pod's terms fill the index."""


class PodIndex:
    def __init__(self, *, most_counters: int = 1024) -> None:
        self.capacity = 0
        self._most_counters = most_counters
        self._classes: dict[_ClassKey, PodClass] = {}
        self._by_namespace: dict[str, dict[_ClassKey, PodClass]] = {}
        self._by_label: dict[tuple[str, str, str], dict[_ClassKey, PodClass]] = {}
        self._much_labelled: dict[str, dict[_ClassKey, PodClass]] = {}
        self._counters: OrderedDict[PodQuery, RowCounter] = OrderedDict()
        self._counters_at: dict[_Place, dict[PodQuery, RowCounter]] = {}
        self._ruled: dict[PodQuery, RowCounter] = {}
        """Those for namespaces that are not listed, the oldest first: nothing reads them once a namespace changed."""
        self._until_sweep = _SWEEP_EVERY

    def counter(self, query: PodQuery) -> RowCounter:
        """The counter of a query. Counters unused for long are dropped and computed again when read again."""
        counter = self._counters.get(query)
        if counter is None:
            counter = self._start(query)
        else:
            self._counters.move_to_end(query)
            counter.unread_moves = 0
            counter.is_read = True
        return counter

    def classes(self) -> Iterable[PodClass]:
        return self._classes.values()

    def counters(self) -> Iterable[RowCounter]:
        return self._counters.values()

    def _start(self, query: PodQuery) -> RowCounter:
        counter = RowCounter(query, self.capacity)
        for pod_class in self._candidates(query):
            if counter.means(pod_class):
                pod_class.counters.append(counter)
                count = len(pod_class.rows)
                rows = np.fromiter(pod_class.rows.keys(), dtype=np.intp, count=count)
                counter.rows[rows] += np.fromiter(pod_class.rows.values(), dtype=np.int32, count=count)
        self._counters[query] = counter
        if any(isinstance(namespaces, SelectedNamespaces) for namespaces, _ in query.parts):
            self._ruled[query] = counter
        for place in _places_of(query):
            self._counters_at.setdefault(place, {})[query] = counter
        if len(self._counters) > self._most_counters:
            self._stop({next(iter(self._counters.values()))})
        return counter

    def _stop(self, stopped: set[RowCounter]) -> None:
        for counter in stopped:
            del self._counters[counter.query]
            self._ruled.pop(counter.query, None)
            for place in _places_of(counter.query):
                _discard(self._counters_at, place, counter.query)
        if len(stopped) == 1:
            classes = self._candidates(next(iter(stopped)).query)
        else:
            classes = self._classes.values()
        for pod_class in classes:
            if not stopped.isdisjoint(pod_class.counters):
                pod_class.counters = [counter for counter in pod_class.counters if counter not in stopped]

    def _candidates(self, query: PodQuery) -> Iterable[PodClass]:
        """Classes that may match, by the narrowest index that holds every match."""
        namespaces = query.namespaces
        if namespaces is None or len(namespaces) > len(self._classes):
            return self._classes.values()
        return [pod_class for ns in namespaces for pod_class in self._candidates_in(ns, query)]

    def _candidates_in(self, namespace: str, query: PodQuery) -> Iterable[PodClass]:
        best: dict[_ClassKey, PodClass] = self._by_namespace.get(namespace, {})
        for _, selector in query.parts:
            for key, values in selector.equalities():
                if len(values) == 1:
                    found = self._by_label.get((namespace, key, next(iter(values))), {})
                    if len(found) < len(best):
                        best = found
        more = self._much_labelled.get(namespace)
        return [*best.values(), *more.values()] if more else best.values()

    # Written by the cache alone.

    def grow(self, capacity: int) -> None:
        self.capacity = capacity
        for counter in self._counters.values():
            counter.grow(capacity)

    def add(self, pod: PodInfo, row: int) -> None:
        pod_class = self._class_of(pod)
        pod_class.rows[row] = pod_class.rows.get(row, 0) + 1
        if pod_class.counters:
            self._move(pod_class.counters, row, 1)
        if self._ruled and not next(iter(self._ruled)).is_current:
            self._stop({counter for query, counter in self._ruled.items() if not query.is_current})
        self._until_sweep -= 1
        if not self._until_sweep:
            self._sweep()

    def _sweep(self) -> None:
        """Drop the counters that were not read for some hundred pods: some mean no pod, so that they never change."""
        self._until_sweep = _SWEEP_EVERY
        if unread := {counter for counter in self._counters.values() if not counter.is_read}:
            self._stop(unread)
        for counter in self._counters.values():
            counter.is_read = False

    def remove(self, pod: PodInfo, row: int) -> None:
        key = self._key_of(pod)
        pod_class = self._classes[key]
        self._leave(key, pod_class, row)
        if pod_class.counters:
            self._move(pod_class.counters, row, -1)

    def _move(self, counters: list[RowCounter], row: int, by: int) -> None:
        most, longest = _MOST_UNREAD_MOVES // len(counters), 0
        for counter in counters:
            counter.move(row, by)
            counter.unread_moves = unread = counter.unread_moves + 1
            if unread > longest:
                longest = unread
        if longest > most:
            self._stop({counter for counter in counters if counter.unread_moves > most})

    def _ask_counters(self, pod_class: PodClass) -> None:
        """Which counters mean a new class. To ask one costs as much as a change of it."""
        near = self._counters_near(pod_class)
        pod_class.counters = [counter for counter in near if counter.means(pod_class)]
        most = _MOST_UNREAD_MOVES // max(len(near), 1)
        for counter in near:
            counter.unread_moves += 1
        unread = {counter for counter in near if counter.unread_moves > most}
        if unread:
            self._stop(unread)

    def relabel(self, before: PodInfo, after: PodInfo, row: int) -> None:
        """Move a pod to another class on the same row. Counters that match both classes do not change."""
        key = self._key_of(before)
        old, new = self._classes[key], self._class_of(after)
        new.rows[row] = new.rows.get(row, 0) + 1
        self._leave(key, old, row)
        for counter in new.counters:
            if counter not in old.counters:
                counter.move(row, 1)
        for counter in old.counters:
            if counter not in new.counters:
                counter.move(row, -1)

    def _leave(self, key: _ClassKey, pod_class: PodClass, row: int) -> None:
        left = pod_class.rows[row] - 1
        if left:
            pod_class.rows[row] = left
        else:
            del pod_class.rows[row]
            if not pod_class.rows:
                self._drop(key, pod_class)

    def _class_of(self, pod: PodInfo) -> PodClass:
        key = self._key_of(pod)
        pod_class = self._classes.get(key)
        if pod_class is None:
            namespace, labels = pod.namespace, pod.labels
            pod_class = PodClass(namespace, labels, pod.is_terminating)
            self._classes[key] = pod_class
            self._by_namespace.setdefault(namespace, {})[key] = pod_class
            if len(labels) > _MOST_INDEXED_LABELS:
                self._much_labelled.setdefault(namespace, {})[key] = pod_class
            else:
                for name, value in labels.items():
                    self._by_label.setdefault((namespace, name, value), {})[key] = pod_class
            if self._counters_at:
                self._ask_counters(pod_class)
        return pod_class

    def _counters_near(self, pod_class: PodClass) -> list[RowCounter]:
        """Counters that may match a class, by what their queries require at least."""
        namespace, at = pod_class.namespace, self._counters_at
        places = [_ANYWHERE, (namespace, "", ""), *((namespace, key, value) for key, value in pod_class.labels.items())]
        return [counter for place in places if place in at for counter in at[place].values()]

    def _drop(self, key: _ClassKey, pod_class: PodClass) -> None:
        del self._classes[key]
        _discard(self._by_namespace, pod_class.namespace, key)
        if len(pod_class.labels) > _MOST_INDEXED_LABELS:
            _discard(self._much_labelled, pod_class.namespace, key)
            return
        for name, value in pod_class.labels.items():
            _discard(self._by_label, (pod_class.namespace, name, value), key)

    def _key_of(self, pod: PodInfo) -> _ClassKey:
        keys: tuple[_ClassKey, _ClassKey] = pod.shape.note(PodClass, lambda: _class_keys(pod))
        return keys[pod.is_terminating]


def _places_of(query: PodQuery) -> list[_Place]:
    """The narrowest places at which every class that the query means will look."""
    namespaces = query.namespaces
    if namespaces is None or len(namespaces) > _MOST_NAMESPACES:
        return [_ANYWHERE]
    for _, selector in query.parts:
        for key, values in selector.equalities():
            if len(values) == 1:
                return [(namespace, key, value) for namespace in namespaces for value in values]
    return [(namespace, "", "") for namespace in namespaces]


def _class_keys(pod: PodInfo) -> tuple[_ClassKey, _ClassKey]:
    labels = frozenset(pod.labels.items())
    return (pod.namespace, labels, False), (pod.namespace, labels, True)


def _discard(index: dict, outer: object, inner: object) -> None:  # type: ignore[type-arg]
    entries = index[outer]
    del entries[inner]
    if not entries:
        del index[outer]
