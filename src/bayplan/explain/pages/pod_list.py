"""All pods of the cluster: filtered, counted by namespace and state, and one page of them; and search as one types.

Read from the copy of the API server's objects at each question, in turns with the scheduling: nothing is kept, so
nothing is stale. Pods that finished are not in that copy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from math import inf
from typing import NamedTuple

import msgspec

from bayplan.api.pod import Pod
from bayplan.app.live import LiveScheduler
from bayplan.explain.explaining_nodes import ZONE_LABEL
from bayplan.explain.time_slices import Work

__all__ = ["ListedNode", "ListedPod", "PodFilter", "PodPage", "SearchResult", "find_by_name", "list_pods", "state_of"]

PLACED = "placed"
BINDING = "binding"
HELD = "held"
UNSERVED = "unserved"
"""Waits for a scheduler that is none of ours; perhaps nobody runs it."""
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
    """Ordered by what is asked for, then by name; no two have one name."""

    order: str | float
    key: str
    pod: Pod
    state: str
    reasons: tuple[str, ...]


def list_pods(live: LiveScheduler, query: PodFilter) -> Work[PodPage]:
    states: Counter[str] = Counter()
    namespaces: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    first: list[_Row] = []
    """The rows of this page and of those before it, as far as they are known."""
    total = matching = 0
    text, most = query.text.lower(), min(query.offset, _MOST_OFFSET) + query.limit
    for pods in _batches(live):
        total += len(pods)
        namespaces.update([pod.metadata.namespace for _, pod in pods])
        run: list[_Row] = []
        for key, pod in pods:
            if text not in key or not _is_there(pod, query):
                continue
            state, why = (PLACED, ()) if pod.spec.node_name else state_of(live, pod)
            has_reason = not query.reason or query.reason in why
            if has_reason:
                states[state] += 1
            if query.states and state not in query.states:
                continue
            if why:
                reasons.update(why)
            if has_reason:
                matching += 1
                row = _Row(_order(live, pod, query.sort), key, pod, state, why)
                if len(first) < most or row < first[-1]:
                    run.append(row)
        if run:
            first = sorted([*first, *run])[:most]
        yield
    offset = min(query.offset, max(0, (matching - 1) // query.limit * query.limit), _MOST_OFFSET)
    return PodPage(
        total=total,
        matching=matching,
        offset=offset,
        pods=[_listed(live, row) for row in first[offset : offset + query.limit]],
        states=dict(states.most_common()),
        namespaces=dict(sorted(namespaces.most_common(_MOST_NAMESPACES))),
        reasons=dict(reasons.most_common(_MOST_REASONS)),
    )


def _batches(live: LiveScheduler) -> Iterator[Sequence[tuple[str, Pod]]]:
    pods = list(live.watching.pods_by_key().items())
    for start in range(0, len(pods), _AT_ONCE):
        yield pods[start : start + _AT_ONCE]


def _is_there(pod: Pod, query: PodFilter) -> bool:
    if query.namespace and pod.metadata.namespace != query.namespace:
        return False
    return not query.node or pod.spec.node_name == query.node


def state_of(live: LiveScheduler, pod: Pod) -> tuple[str, tuple[str, ...]]:
    """Where the pod is on its way, and who holds it back."""
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
        # The newest first: every digit of a timestamp is turned around.
        return (pod.metadata.creation_timestamp or "").translate(_TURNED)
    if sort == "waiting":
        queued = live.queue.get(pod.key)
        return queued.timestamp if queued is not None else inf
    return ""


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
