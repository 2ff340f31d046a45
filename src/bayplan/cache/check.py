"""A check of the cache against its objects: recomputes everything that is kept up to date in steps.

Columns, indexes and counters change by small moves, millions of them. This module recomputes each from the node
objects and the pods and lists every difference as a sentence. It changes nothing. Tests run it after long random
histories; a scheduler can run it on request (it takes time in proportion to the pods, between two decisions).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from bayplan.api.quantity import value
from bayplan.api.requests import Amounts, pod_requests, to_amounts
from bayplan.cache.cache import Cache
from bayplan.cluster.axes import ABSENT
from bayplan.cluster.label_columns import LabelColumn
from bayplan.cluster.node_info import NodeInfo
from bayplan.cluster.pod_index import PodClass
from bayplan.cluster.pod_info import PodInfo
from bayplan.cluster.resources import is_counted
from bayplan.cluster.row_counts import RowCounts
from bayplan.cluster.shapes import usage_of
from bayplan.cluster.state import ClusterState
from bayplan.cluster.term_index import TermRule, rules_of

__all__ = ["check_cache", "check_node"]

_INT64_MAX = 2**63 - 1


def check_cache(cache: Cache) -> list[str]:
    """Every difference between what is kept and what follows from the objects; empty when there is none."""
    cluster = cache.cluster
    return [
        *_places_of_pods(cache),
        *_groups(cache),
        *_rows(cluster),
        *_nodes(cluster),
        *_labels(cluster),
        *_pod_classes(cluster),
        *_counters(cluster),
        *_terms(cluster),
        *_ports(cluster),
        *_claims(cluster),
        *_images(cluster),
        *_namespaces(cache),
    ]


def _nodes_of(cluster: ClusterState) -> list[NodeInfo]:
    return [info for info in cluster.nodes.infos if info is not None]


def _placed(cluster: ClusterState) -> Iterator[tuple[PodInfo, NodeInfo]]:
    for info in _nodes_of(cluster):
        for pod in info.pods.values():
            yield pod, info


# Which pod is where


def _places_of_pods(cache: Cache) -> Iterator[str]:
    on_nodes = {pod.uid: info.name for pod, info in _placed(cache.cluster)}
    orphans = {pod.uid: name for name, pods in cache.orphans().items() for pod in pods}
    known = {pod.uid: pod for pod in cache.pods()}
    for uid, pod in known.items():
        is_node_there = pod.node_name in cache.cluster.nodes.row_of
        where = (on_nodes if is_node_there else orphans).get(uid)
        if where != pod.node_name:
            yield f"pod {pod.key} belongs on node {pod.node_name}, but is counted on {where}"
    for uid, name in {**on_nodes, **orphans}.items():
        if uid not in known:
            yield f"pod {uid} is counted on node {name}, but not known"
    for uid in on_nodes.keys() & orphans.keys():
        yield f"pod {uid} is counted on a node and waits for one"
    for name in cache.orphans().keys() & cache.cluster.nodes.row_of.keys():
        yield f"pods wait for node {name}, which is there"
    for uid in cache.assumed() - known.keys():
        yield f"pod {uid} is assumed, but not known"


def _groups(cache: Cache) -> Iterator[str]:
    for members in cache.cluster.labelled_pods.sets():
        for uid, placed in members.placed.items():
            known = cache.pod(uid)
            if known is None:
                yield f"pod {placed.key} is placed in a group, but not on a node"
            elif known is not placed:
                yield f"pod {placed.key} is placed in a group in another version than on its node"


# Rows and columns of nodes


def _rows(cluster: ClusterState) -> Iterator[str]:
    table = cluster.nodes
    by_name = {info.name: row for row, info in enumerate(table.infos) if info is not None}
    if by_name != table.row_of:
        yield f"rows by name are {table.row_of}, the nodes say {by_name}"
    for row in range(table.capacity):
        info = table.infos[row] if row < table.size else None
        if bool(table.valid[row]) != (info is not None):
            yield f"row {row} is valid: {bool(table.valid[row])}, but holds {info}"
        if info is None:
            kept = [table.requested[:, row], table.nonzero[:, row], table.pod_count[row]]
            if any(np.any(column) for column in kept):
                yield f"row {row} holds no node, but its pods are still counted"
        elif info.row != row:
            yield f"node {info.name} is in row {row} and names row {info.row} as its own"
    listed = sorted(table.order.rows().tolist())
    if listed != sorted(by_name.values()):
        yield f"nodes are visited in rows {listed}, they are in {sorted(by_name.values())}"


def _nodes(cluster: ClusterState) -> Iterator[str]:
    for info in _nodes_of(cluster):
        yield from check_node(cluster, info)


def check_node(cluster: ClusterState, info: NodeInfo) -> list[str]:
    """The differences of one node: short enough to run in a working scheduler, node by node."""
    return [
        f"{what} of node {info.name} is {kept}, its objects say {right}"
        for what, kept, right in _facts(cluster, info)
        if kept != right
    ]


def _facts(cluster: ClusterState, info: NodeInfo) -> Iterator[tuple[str, object, object]]:
    """(what, as kept, as recomputed) of one node, of its columns and of its NodeInfo."""
    table, row, node = cluster.nodes, info.row, info.node
    offered = _counted(cluster, to_amounts(node.status.allocatable))
    usages = [usage_of(pod.pod, cluster.resources) for pod in info.pods.values()]
    requested: Counter[str] = Counter()
    for usage in usages:
        for place, amount in usage.vector:
            requested[cluster.resources.names[place]] += amount
    nonzero = (sum(u.nonzero_cpu for u in usages), sum(u.nonzero_memory for u in usages))
    allowed = value((node.status.allocatable or {}).get("pods", 0))
    taints = [(t.key, t.value, t.effect) for t in node.spec.taints or ()]
    kept_taints = [(t.key, t.value, t.effect) for t in table.taint_sets[int(table.taint_set[row])]]
    yield "allocatable column", _by_name(cluster, table.allocatable[:, row].tolist()), offered
    yield "allocatable", _by_name(cluster, info.allocatable), offered
    yield "requested column", _by_name(cluster, table.requested[:, row].tolist()), _clamped(_nonzero(requested))
    yield "requested", _by_name(cluster, info.requested), _nonzero(requested)
    most = tuple(min(amount, _INT64_MAX) for amount in nonzero)
    yield "non-zero request column", tuple(table.nonzero[:, row].tolist()), most
    yield "non-zero request", (info.nonzero_cpu, info.nonzero_memory), nonzero
    yield "pod count", int(table.pod_count[row]), len(info.pods)
    yield "number of allowed pods", (int(table.allowed_pods[row]), info.allowed_pods), (allowed, allowed)
    yield "unschedulable", bool(table.unschedulable[row]), node.spec.unschedulable
    yield "set of taints", kept_taints, taints
    yield "labels", info.labels, node.labels


def _counted(cluster: ClusterState, amounts: Amounts) -> dict[str, int]:
    return {n: a for n, a in amounts.items() if a and cluster.resources.find(n) is not None}


def _by_name(cluster: ClusterState, amounts: list[int]) -> dict[str, int]:
    names = cluster.resources.names
    found = {names[i] if i < len(names) else f"place {i}": a for i, a in enumerate(amounts)}
    return _nonzero(found)


def _nonzero(amounts: dict[str, int]) -> dict[str, int]:
    return {name: amount for name, amount in amounts.items() if amount}


def _clamped(amounts: dict[str, int]) -> dict[str, int]:
    """As columns of 64 bits hold them."""
    return {name: min(amount, _INT64_MAX) for name, amount in amounts.items()}


def _labels(cluster: ClusterState) -> Iterator[str]:
    for column in cluster.nodes.label_columns():
        found: Counter[str] = Counter()
        for row in range(cluster.nodes.capacity):
            info = cluster.nodes.infos[row] if row < cluster.nodes.size else None
            right = info.labels.get(column.key) if info is not None else None
            if right is not None:
                found[right] += 1
            kept = _value(column, row)
            if kept != right:
                yield f"label {column.key} of row {row} is {kept!r}, the node says {right!r}"
        is_injective = all(count == 1 for count in found.values())
        if column.is_injective != is_injective:
            yield f"label {column.key} has a value of its own on each node: {column.is_injective}, not {is_injective}"


def _value(column: LabelColumn, row: int) -> str | None:
    number = int(column.values[row])
    return None if number == ABSENT else column.names[number]


# Indexes over pods


def _pod_classes(cluster: ClusterState) -> Iterator[str]:
    right: Counter[tuple[object, int]] = Counter()
    for pod, info in _placed(cluster):
        right[(pod.namespace, frozenset(pod.labels.items()), pod.is_terminating), info.row] += 1
    kept: Counter[tuple[object, int]] = Counter()
    for pod_class in cluster.pods.classes():
        for row, count in pod_class.rows.items():
            kept[_class_key(pod_class), row] += count
    for place in kept.keys() | right.keys():
        if kept[place] != right[place]:
            yield f"{kept[place]} pods of class {place[0]} are counted in row {place[1]}, there are {right[place]}"


def _class_key(pod_class: PodClass) -> tuple[str, frozenset[tuple[str, str]], bool]:
    return pod_class.namespace, frozenset(pod_class.labels.items()), pod_class.is_terminating


def _counters(cluster: ClusterState) -> Iterator[str]:
    placed = list(_placed(cluster))
    for counter in cluster.pods.counters():
        if not counter.query.is_current:
            continue  # nothing reads it any more
        right = np.zeros(len(counter.rows), dtype=np.int64)
        for pod, info in placed:
            right[info.row] += counter.query.matches(pod.namespace, pod.labels, is_terminating=pod.is_terminating)
        for row in np.flatnonzero(counter.rows != right).tolist():
            yield f"the counter of {counter.query} counts {counter.rows[row]} pods in row {row}, there are {right[row]}"
        yield from _sums(counter, f"the counter of {counter.query}")


def _sums(counts: RowCounts, name: str) -> Iterator[str]:
    """The sums by topology value that follow a column."""
    for bins, trash, kept in counts.sums():
        right = np.bincount(bins, weights=counts.rows[: len(bins)], minlength=trash + 1)
        right[trash] = 0
        for domain in np.flatnonzero(kept != right).tolist():
            yield f"{name} sums to {kept[domain]} in domain {domain}, not {right[domain]}"


def _terms(cluster: ClusterState) -> Iterator[str]:
    right: Counter[tuple[TermRule, int]] = Counter()
    for pod, info in _placed(cluster):
        for rule in rules_of(pod):
            right[rule, info.row] += 1
    kept: Counter[tuple[TermRule, int]] = Counter()
    for group in cluster.terms.groups():
        kept.update({(group.rule, row): count for row, count in group.counts.items()})
        column = group.rows(cluster.nodes.capacity)
        yield from _sums(group.column(cluster.nodes.capacity), f"term {group.rule}")
        for row in range(len(column)):
            if int(column[row]) != group.counts.get(row, 0):
                yield f"the column of term {group.rule} says {column[row]} in row {row}, not {group.counts.get(row, 0)}"
    for place in kept.keys() | right.keys():
        if kept[place] != right[place]:
            yield f"term {place[0]} is counted {kept[place]} times in row {place[1]}, not {right[place]}"


def _ports(cluster: ClusterState) -> Iterator[str]:
    """Ports are a set on each node: the first pod that leaves frees one that two had. So fewer than stated is right."""
    right: dict[tuple[str, int], set[int]] = {}
    for info in _nodes_of(cluster):
        stated = {(p.protocol or "TCP", p.host_port) for pod in info.pods.values() for p in pod.shape.host_ports}
        for key in set(info.ports.keys()) - stated:
            yield f"port {key} is in use on node {info.name}, but no pod there requests it"
        for key in info.ports.keys():  # noqa: SIM118 - HostPorts is not a mapping
            right.setdefault(key, set()).add(info.row)
    if cluster.port_rows != right:
        yield f"ports in use by row are {cluster.port_rows}, the nodes say {right}"


def _claims(cluster: ClusterState) -> Iterator[str]:
    right = Counter(f"{pod.namespace}/{name}" for pod, _ in _placed(cluster) for name in pod.shape.claim_names)
    if cluster.claims_in_use != dict(right):
        yield f"claims in use are {cluster.claims_in_use}, the pods say {dict(right)}"


def _images(cluster: ClusterState) -> Iterator[str]:
    right: dict[str, set[int]] = {}
    for info in _nodes_of(cluster):
        for image in info.node.status.images or ():
            for name in image.names or ():
                right.setdefault(name, set()).add(info.row)
    kept = {name: set(state.rows) for name, state in cluster.images.items()}
    if kept != right:
        yield f"images by row are {kept}, the nodes say {right}"
    for name, state in cluster.images.items():
        held = set(np.flatnonzero(state.held(cluster.nodes.capacity)).tolist())
        if held != state.rows:
            yield f"the column of image {name} says rows {held}, not {state.rows}"


def _namespaces(cache: Cache) -> Iterator[str]:
    right: dict[str, Counter[str]] = {}
    pods: Counter[str] = Counter()
    for pod in cache.pods():
        pods[pod.namespace] += 1
        for name, amount in pod_requests(pod.pod, status=True).items():
            if amount and is_counted(name):
                right.setdefault(pod.namespace, Counter())[name] += amount
    kept = cache.cluster.namespace_usage.all()
    for name in kept.keys() | pods.keys():
        used = cache.cluster.namespace_usage.of(name)
        amounts = used.amounts
        if (used.pod_count, amounts) != (pods[name], dict(right.get(name, {}))):
            said = f"{pods[name]} pods, {dict(right.get(name, {}))}"
            yield f"namespace {name} uses {used.pod_count} pods, {amounts}; its pods say {said}"
