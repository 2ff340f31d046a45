"""All pods of the cluster: filtered, counted by namespace and state, and one page of them; and search as one types.

Read from the copy of the API server's objects at each question, in turns with the scheduling: nothing is kept, so
nothing is stale. Pods that finished are not in that copy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import starmap
from math import inf
from typing import NamedTuple

import msgspec

from bayplan.api.pod import Pod
from bayplan.app.live import LiveScheduler
from bayplan.explain.pages.nodes import ZONE_LABEL
from bayplan.observe.time_slices import Work

__all__ = ["ListedNode", "ListedPod", "PodFilter", "PodPage", "SearchResult", "find_by_name", "list_pods", "state_of"]

PLACED = "placed"
BINDING = "binding"
HELD = "held"
UNSERVED = "unserved"
"""Waits for a scheduler that is not one of ours and may not be running."""
BEING_SCHEDULED = "being scheduled"
_AT_ONCE = 512
_MOST_OFFSET = 10_000
"""Further pages are reached by filters: each row before a page has to be sorted."""
_MOST_NAMESPACES = 200
_MOST_REASONS = 50


class PodFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which pods; empty means all."""

    text: str = ""
    """Part of `namespace/name`."""
    namespace: str = ""
    states: frozenset[str] = frozenset()
    node: str = ""
    reason: str = ""
    """One of those that hold the pod back."""
    sort: str = "name"
    """name; age: the newest first; waiting: those that have waited longest first"""
    offset: int = 0
    limit: int = 50


class ListedPod(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    pod: str
    state: str
    """placed, binding, held, active, backoff, unschedulable, gated, being scheduled, or unserved"""
    node: str = ""
    reasons: list[str] = []
    """Plugins that refused it, the one that holds it back, or the scheduler that it waits for."""
    created: str = ""
    attempts: int = 0
    since: float = 0.0
    """When it entered the place where it waits."""
    priority: int = 0


class PodPage(msgspec.Struct, kw_only=True, rename="camel"):
    total: int
    """Of all pods."""
    matching: int
    offset: int
    pods: list[ListedPod]
    states: dict[str, int]
    """Of the pods that match but for their state."""
    namespaces: dict[str, int]
    """Of all pods, by name."""
    reasons: dict[str, int]
    """Of the pods that match but for their reasons, the most frequent first."""


class _Row(NamedTuple):
    """Ordered as requested, then by name; no two have one name."""

    order: str | float
    key: str
    pod: Pod
    state: str
    reasons: tuple[str, ...]


def list_pods(live: LiveScheduler, query: PodFilter) -> Work[PodPage]:
    found = _Found(live, query)
    for pods in _batches(live):
        found.add(pods)
        yield
    offset = min(query.offset, max(0, (found.matching - 1) // query.limit * query.limit), _MOST_OFFSET)
    return PodPage(
        total=found.total,
        matching=found.matching,
        offset=offset,
        pods=[_listed(live, row) for row in found.first[offset : offset + query.limit]],
        states=dict(found.states.most_common()),
        namespaces=dict(sorted(found.namespaces.most_common(_MOST_NAMESPACES))),
        reasons=dict(found.reasons.most_common(_MOST_REASONS)),
    )


class _Found:
    """Counts of the pods seen so far, and the first of those that match.

    Nearly all pods of a large cluster are placed: they are counted a batch at a time, and only those that come before
    the last row of the page get one.
    """

    def __init__(self, live: LiveScheduler, query: PodFilter) -> None:
        self._live = live
        self._query = query
        self._text = query.text.lower()
        self._most = min(query.offset, _MOST_OFFSET) + query.limit
        self.total = self.matching = 0
        self.states: Counter[str] = Counter()
        self.namespaces: Counter[str] = Counter()
        self.reasons: Counter[str] = Counter()
        self.first: list[_Row] = []
        """The rows of this page and of those before it."""

    def add(self, pods: Sequence[tuple[str, Pod]]) -> None:
        self.total += len(pods)
        self.namespaces.update([pod.metadata.namespace for _, pod in pods])
        there = self._there(pods)
        run = self._placed([entry for entry in there if entry[1].spec.node_name])
        run += self._waiting([entry for entry in there if not entry[1].spec.node_name])
        if run:
            self.first = sorted([*self.first, *run])[: self._most]

    def _there(self, pods: Sequence[tuple[str, Pod]]) -> Sequence[tuple[str, Pod]]:
        """Those with the name, the namespace and the node that are asked for."""
        query = self._query
        if self._text:
            pods = [entry for entry in pods if self._text in entry[0]]
        if query.namespace:
            pods = [entry for entry in pods if entry[1].metadata.namespace == query.namespace]
        if query.node:
            pods = [entry for entry in pods if entry[1].spec.node_name == query.node]
        return pods

    def _placed(self, pods: Sequence[tuple[str, Pod]]) -> list[_Row]:
        """They have no reasons."""
        query = self._query
        if query.reason or not pods:
            return []
        self.states[PLACED] += len(pods)
        if query.states and PLACED not in query.states:
            return []
        self.matching += len(pods)
        rows: list[tuple[str | float, str, Pod, str, tuple[str, ...]]]
        if query.sort == "age":
            rows = [(_newest_first(pod), key, pod, PLACED, ()) for key, pod in pods]
        else:
            same = inf if query.sort == "waiting" else ""
            rows = [(same, key, pod, PLACED, ()) for key, pod in pods]
        if len(self.first) >= self._most:
            last = self.first[-1]
            rows = [row for row in rows if row < last]
        return list(starmap(_Row, rows))

    def _waiting(self, pods: Sequence[tuple[str, Pod]]) -> list[_Row]:
        query, run = self._query, []
        for key, pod in pods:
            state, why = state_of(self._live, pod)
            has_reason = not query.reason or query.reason in why
            if has_reason:
                self.states[state] += 1
            if query.states and state not in query.states:
                continue
            self.reasons.update(why)
            if has_reason:
                self.matching += 1
                run.append(_Row(_order(self._live, pod, query.sort), key, pod, state, why))
        return run


def _batches(live: LiveScheduler) -> Iterator[Sequence[tuple[str, Pod]]]:
    pods = list(live.watching.pods_by_key().items())
    for start in range(0, len(pods), _AT_ONCE):
        yield pods[start : start + _AT_ONCE]


def state_of(live: LiveScheduler, pod: Pod) -> tuple[str, tuple[str, ...]]:
    """The state of the pod, and what holds it back."""
    if pod.spec.node_name:
        return PLACED, ()
    if pod.spec.scheduler_name not in live.profiles:
        return UNSERVED, (pod.spec.scheduler_name,)
    held = live.held_pods.get(pod.uid)
    if held is not None:
        return HELD, tuple(held.pending_plugins())
    if live.cache.is_assumed(pod.uid):
        return BINDING, ()
    queued, place = live.queue.get(pod.key), live.queue.place_of(pod.key)
    if queued is None or place is None:
        return BEING_SCHEDULED, ()
    if queued.gating_plugin:
        return place.value, (queued.gating_plugin,)
    return place.value, tuple(sorted(queued.rejectors))


def _order(live: LiveScheduler, pod: Pod, sort: str) -> str | float:
    if sort == "age":
        return _newest_first(pod)
    if sort == "waiting":
        queued = live.queue.get(pod.key)
        return queued.timestamp if queued is not None else inf
    return ""


def _newest_first(pod: Pod) -> str:
    """Every digit of its timestamp is turned around."""
    return (pod.metadata.creation_timestamp or "").translate(_TURNED)


_TURNED = str.maketrans("0123456789", "9876543210")


def _listed(live: LiveScheduler, row: _Row) -> ListedPod:
    pod = row.pod
    queued = live.queue.get(pod.key) if not pod.spec.node_name else None
    return ListedPod(
        pod=row.key,
        state=row.state,
        node=pod.spec.node_name or pod.status.nominated_node_name,
        reasons=list(row.reasons),
        created=pod.metadata.creation_timestamp or "",
        attempts=queued.attempts if queued is not None else 0,
        since=queued.timestamp if queued is not None else 0.0,
        priority=pod.priority,
    )


class ListedNode(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    node: str
    zone: str = ""


class SearchResult(msgspec.Struct, kw_only=True, rename="camel"):
    """The best matches, and how many there are."""

    pods: list[ListedPod]
    nodes: list[ListedNode]
    pod_count: int
    node_count: int


def find_by_name(live: LiveScheduler, text: str, *, limit: int) -> Work[SearchResult]:
    """Pods and nodes whose names have the text; those that begin with it first."""
    wanted = text.lower()
    pods: list[tuple[int, str, Pod]] = []
    for batch in _batches(live):
        for key, pod in batch:
            if wanted in key:
                pods.append((0 if pod.name.startswith(wanted) or key.startswith(wanted) else 1, key, pod))
        yield
    table = live.cache.cluster.nodes
    names = [(0 if name.startswith(wanted) else 1, name) for name in list(table.row_of) if wanted in name.lower()]
    yield
    best = sorted(pods, key=lambda entry: entry[:2])[:limit] if len(pods) < _MOST_SORTED else pods[:limit]
    return SearchResult(
        pods=[_listed(live, _Row("", key, pod, *state_of(live, pod))) for _, key, pod in best],
        nodes=[
            ListedNode(node=name, zone=info.labels.get(ZONE_LABEL, ""))
            for _, name in sorted(names)[:limit]
            if (info := table.info(name)) is not None
        ],
        pod_count=len(pods),
        node_count=len(names),
    )


_MOST_SORTED = 5_000
"""With more matches than that, the text says too little for an order to help."""
