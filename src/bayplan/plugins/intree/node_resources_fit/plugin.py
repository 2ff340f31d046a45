"""NodeResourcesFit: filter nodes by free resources, and score them by how full they would be."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Self

import msgspec
import numpy as np

from bayplan.framework import (
    ActionType,
    ClusterEvent,
    CycleState,
    Depends,
    EventHint,
    Hint,
    NodeColumns,
    NodeInfo,
    Plugin,
    PluginArgs,
    PodInfo,
    Remedy,
    Resource,
    Status,
    Verdicts,
    by_shape,
)
from bayplan.framework.columns import CPU, MEMORY, FloatRN, Int64N, PodShape
from bayplan.framework.devices import DeviceClass
from bayplan.framework.objects import Amounts, Node, is_extended_resource, pod_requests, to_amounts
from bayplan.framework.promises import CombinedScore
from bayplan.plugins.intree.dynamic_resources.totals import DeviceTotals
from bayplan.plugins.intree.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from bayplan.plugins.intree.node_resources_fit.checks import (
    BEYOND_ALLOCATABLE,
    FIRST_RESOURCE,
    MOST_BITS,
    TOO_MANY_PODS,
    RequestChecks,
    cpu_memory_verdicts,
    verdicts_by_combination,
)
from bayplan.plugins.intree.node_resources_fit.combined_scores import CpuMemoryScores, note_amounts
from bayplan.plugins.resource_scoring import (
    CpuMemoryFacts,
    ResourceWeight,
    ScoreTerms,
    cpu_memory_source,
    default_resources,
    duplicates,
    percent,
    percent_of,
    skips_scalar,
)

__all__ = ["NodeResourcesFit"]

_MOST_WEIGHT = 1 << 32
"""Weighted scores are summed as floats below this total weight."""


class UtilizationShapePoint(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    utilization: int = 0
    score: int = 0


class RequestedToCapacityRatio(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    shape: list[UtilizationShapePoint] = msgspec.field(default_factory=list)


class ScoringStrategy(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    type: str = ""
    resources: list[ResourceWeight] | None = None
    requested_to_capacity_ratio: RequestedToCapacityRatio | None = None


_STRATEGIES = ("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio")


class NodeResourcesFit(Plugin):
    """Keeps pods off nodes without room for their requests; prefers by a scoring strategy.

    *What it does*: compares requests with allocatable minus what the node's pods request, and counts pods.
    *Rejects when*: `Too many pods`, or `Insufficient <resource>` for every resource that falls short; unresolvable
    when a request exceeds the node's allocatable, because no preemption would help. An extended resource that a device
    class stands for is left to DynamicResources on nodes that do not offer it themselves.
    *Scores by*: LeastAllocated (default), MostAllocated or RequestedToCapacityRatio over the configured resources.
    Containers without a cpu or memory request count as 100m and 200Mi here. On a node that offers none of a resource
    for which a device class stands, the devices of the class count instead.
    *Retries on*: pods deleted or scaled down, nodes added or with more allocatable, device classes.
    *Arguments*: ignoredResources, ignoredResourceGroups, scoringStrategy.
    *Differs from kube-scheduler*: nowhere.
    """

    default_weight = 1
    remedies = (Remedy.REQUESTS,)
    filter_depends = Depends.USE
    score_depends = Depends.USE
    filter_reads_counts_only = True
    settles_by_kind = True
    is_within_bounds = True
    reasons = ("Too many pods", "Insufficient <resource>")

    class Args(PluginArgs):
        ignored_resources: list[str] = msgspec.field(default_factory=list)
        ignored_resource_groups: list[str] = msgspec.field(default_factory=list)
        scoring_strategy: ScoringStrategy | None = None

        def validate(self) -> list[str]:
            return [*_validate_ignored(self), *_validate_strategy(self.scoring_strategy)]

        def ignoring(self, resources: Sequence[str]) -> Self:
            return msgspec.structs.replace(self, ignored_resources=list(resources))

    def setup(self) -> None:
        strategy = self.args.scoring_strategy or ScoringStrategy(type="LeastAllocated")
        self._strategy = strategy.type
        weights = strategy.resources or default_resources()
        self._weights = [(r.name, r.effective_weight) for r in weights]
        self._ignored = frozenset(self.args.ignored_resources)
        self._ignored_groups = frozenset(self.args.ignored_resource_groups)
        ratio = strategy.requested_to_capacity_ratio
        self._curve = _curve(ratio.shape) if ratio is not None else [0] * 101
        self._curve_column = np.array(self._curve, dtype=np.int64)
        self._resources = self.handle.cluster.resources
        self._classes = self.handle.cluster.device_classes
        self._terms_key = (self, "terms")
        self._device_totals = DeviceTotals(self.handle.cluster, [name for name, _ in self._weights])
        if self._device_totals.resources:
            vars(self).update(score_depends=Depends.CLUSTER)
        self._class_changed(None, None)
        self.handle.cluster.objects.on_change(DeviceClass, self._class_changed)
        self.handle.cluster.shapes.on_new(self._prepare)

    def _class_changed(self, old: DeviceClass | None, new: DeviceClass | None) -> None:
        """Which resources are left to DynamicResources is part of what is compared."""
        self._checks_key = (self, "checks", self._classes.version)
        self.version += 1

    def sign(self, pod: PodInfo) -> Hashable:
        shape = pod.shape
        return shape.requests, shape.unplaced, tuple(sorted(shape.scoring_requests.items()))

    # Filter

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> None:
        """Prepares nothing; the shape holds the requests."""

    def _prepare(self, shape: PodShape) -> None:
        self._checks(shape)
        note_amounts(shape)

    def _checks(self, shape: PodShape) -> RequestChecks:
        """The requests to compare, in the order in which reasons are listed."""
        return shape.note_on_amounts(self._checks_key, self._wanted)

    def _wanted(self, shape: PodShape) -> RequestChecks:
        names, unplaced = self._resources.names, shape.unplaced
        pairs = tuple([pair for pair in shape.requests if pair[1] > 0])
        if self._ignored or self._ignored_groups:
            pairs = tuple([(place, amount) for place, amount in pairs if not self._is_ignored(names[place])])
            unplaced = tuple([name for name in unplaced if not self._is_ignored(name)])
        delegated = frozenset(place for place, _ in pairs if self._is_delegated(names[place]))
        unplaced = tuple([name for name in unplaced if not self._is_delegated(name)]) if unplaced else unplaced
        return RequestChecks(pairs, tuple([names[place] for place, _ in pairs]), unplaced, delegated)

    def _is_delegated(self, name: str) -> bool:
        """Whether DynamicResources allocates devices for it, on nodes that do not offer the resource itself."""
        return self._classes.class_for(name) is not None

    def _is_ignored(self, name: str) -> bool:
        if not is_extended_resource(name):
            return False
        return name in self._ignored or name.split("/", 1)[0] in self._ignored_groups

    def accepts_all(self, pod: PodInfo, nodes: NodeColumns) -> bool:
        """Whether every node has room, by the minimum of each resource over all nodes."""
        needs = self._checks(pod.shape).needs
        facts = None if needs is None else cpu_memory_source(nodes)
        return facts is not None and needs is not None and facts.has_everywhere(needs)

    def filter_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Verdicts:
        checks = self._checks(pod.shape)
        if len(checks.pairs) > MOST_BITS:
            return verdicts_by_combination(checks, nodes)
        facts = None if checks.needs is None else cpu_memory_source(nodes)
        if facts is not None:
            return cpu_memory_verdicts(checks, facts, None if nodes.is_all else nodes.rows)
        mask = (nodes.pod_count >= nodes.allowed_pods).astype(np.int32)
        mask |= np.int32(checks.lacking)
        bit = FIRST_RESOURCE
        for place, amount in checks.pairs:
            offered = nodes.allocatable(place)
            short = nodes.requested(place) > offered - amount
            if place in checks.delegated:
                short &= offered != 0
            if np.count_nonzero(short):
                mask |= short * np.int32(bit)
                beyond = offered < amount
                if np.count_nonzero(beyond):
                    mask[short & beyond] |= BEYOND_ALLOCATABLE
            bit <<= 1
        return Verdicts(mask, checks.status)

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        checks = pod.shape.note_on_amounts(self._checks_key, self._wanted)
        mask = checks.lacking | (TOO_MANY_PODS if len(node.pods) >= node.allowed_pods else 0)
        bit = FIRST_RESOURCE
        allocatable, requested = node.allocatable, node.requested
        for place, amount in checks.pairs:
            capacity = allocatable[place] if place < len(allocatable) else 0
            used = requested[place] if place < len(requested) else 0
            if amount > capacity - used and (capacity or place not in checks.delegated):
                mask |= bit | (BEYOND_ALLOCATABLE if amount > capacity else 0)
            bit <<= 1
        return checks.status(mask) if mask else None

    # Score

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> None:
        """Never skips."""

    def _terms(self, pod: PodInfo) -> ScoreTerms:
        """The resources that take part in the score."""
        return pod.shape.note(self._terms_key, lambda: self._make_terms(pod.shape.scoring_requests))

    def _make_terms(self, requests: Amounts) -> ScoreTerms:
        resources = self.handle.cluster.resources
        terms = []
        for name, weight in self._weights:
            amount = requests.get(name, 0)
            place = resources.find(name)
            if place is not None and not skips_scalar(name, amount):
                terms.append((place, amount, weight))
        return ScoreTerms(terms)

    def score_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Int64N:
        if self._device_totals.concerns(pod.shape.scoring_requests):
            return np.array([0 if each is None else self.score(state, pod, each) for each in nodes.infos()], np.int64)
        terms = self._terms(pod)
        facts = terms.cpu_memory_facts(nodes) if self._strategy == "LeastAllocated" else None
        if facts is not None:
            return _least_allocated(facts, terms)
        total = np.zeros(len(nodes), dtype=np.int64)
        weights: Int64N | int = 0
        for place, amount, weight in terms.items:
            allocatable = nodes.allocatable(place)
            share = self._share_column(allocatable, _used_column(nodes, place) + amount, nodes)
            counts = allocatable != 0
            if self._strategy == "RequestedToCapacityRatio":
                counts &= share > 0
            total += np.where(counts, share, 0) * weight
            weights = weights + counts * weight
        if isinstance(weights, int):
            return total
        return self._average_column(total, weights)

    def _share_column(self, allocatable: Int64N, used: Int64N, nodes: NodeColumns) -> Int64N:
        if self._strategy == "LeastAllocated":
            return percent(np.maximum(allocatable - used, 0), allocatable, nodes)
        full = percent(np.minimum(used, allocatable), allocatable, nodes)
        return full if self._strategy == "MostAllocated" else self._curve_column[np.clip(full, 0, 100)]

    def _average_column(self, total: Int64N, weights: Int64N) -> Int64N:
        safe = np.maximum(weights, 1)
        if self._strategy == "RequestedToCapacityRatio":
            return np.floor(total / safe + 0.5).astype(np.int64)
        return (total / safe).astype(np.int64)

    def _uses(self, pod: PodInfo, node: NodeInfo) -> Iterator[tuple[int, int, int]]:
        """(amount of the node, amount in use with the pod, weight) of each resource that counts there."""
        for place, amount, weight in self._terms(pod).items:
            capacity = node.allocatable[place] if place < len(node.allocatable) else 0
            if capacity:
                yield capacity, _used(node, place) + amount, weight
        if self._device_totals.resources:
            requests = pod.shape.scoring_requests
            for name, (total, taken) in self._device_totals.on(node, requests).items():
                yield total, taken + requests[name], dict(self._weights)[name]

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        total = weights = 0
        strategy = self._strategy
        for capacity, used, weight in self._uses(pod, node):
            if strategy == "LeastAllocated":
                share = percent_of(capacity - used, capacity) if used < capacity else 0
            else:
                share = percent_of(used if used < capacity else capacity, capacity)
                if strategy == "RequestedToCapacityRatio":
                    share = self._curve[min(max(share, 0), 100)]
                    if share <= 0:
                        continue
            total += share * weight
            weights += weight
        if not weights:
            return 0
        if strategy == "RequestedToCapacityRatio":
            return (2 * total + weights) // (2 * weights)
        return total // weights if total >= 0 else -(-total // weights)

    def combine_scores(self, scores: Mapping[str, tuple[Plugin, int]]) -> CombinedScore | None:
        """The combined score with NodeResourcesBalancedAllocation, where both score cpu and memory as they do by
        default."""
        other, balance_weight = scores.get("NodeResourcesBalancedAllocation", (None, 0))
        fit_weight = scores[self.name][1]
        if type(self) is not NodeResourcesFit or type(other) is not NodeResourcesBalancedAllocation:
            return None
        is_even = self._weights == [("cpu", self._weights[0][1]), ("memory", self._weights[0][1])]
        if self._strategy != "LeastAllocated" or not is_even or not other.is_cpu_and_memory:
            return None
        if max(fit_weight, balance_weight) > _MOST_WEIGHT:
            return None
        return CpuMemoryScores(fit_weight=fit_weight, balance_weight=balance_weight)

    # Requeueing

    def events_to_register(self) -> list[EventHint]:
        pod = ClusterEvent(Resource.POD, ActionType.DELETE | ActionType.UPDATE_POD_SCALE_DOWN)
        node = ClusterEvent(Resource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE)
        classes = ClusterEvent(Resource.DEVICE_CLASS, ActionType.ADD | ActionType.UPDATE)
        return [
            EventHint(pod, self._pod_hint),
            EventHint(node, self._node_hint),
            EventHint(classes, self._class_hint),
        ]

    @by_shape
    def _pod_hint(self, pod: PodInfo, old: PodInfo | None, new: PodInfo | None) -> Hint:
        if new is None:
            freed = old is not None and bool(old.node_name or old.nominated_node_name)
            return Hint.QUEUE if freed else Hint.SKIP
        if old is None or new.uid == pod.uid:
            return Hint.QUEUE
        if not new.node_name:
            return Hint.SKIP
        before, after = pod_requests(old.pod, status=True), pod_requests(new.pod, status=True)
        wanted = [name for name, amount in pod.shape.amounts.items() if amount > 0]
        less = any(after.get(name, 0) < before.get(name, 0) for name in wanted)
        return Hint.QUEUE if less else Hint.SKIP

    @by_shape
    def _node_hint(self, pod: PodInfo, old: Node | None, new: Node | None) -> Hint:
        if new is None or not self._fits_empty(pod, new):
            return Hint.SKIP
        if old is None:
            return Hint.QUEUE
        before, after = to_amounts(old.status.allocatable), to_amounts(new.status.allocatable)
        wanted = ["pods", *(name for name, amount in pod.shape.amounts.items() if amount > 0)]
        more = any(after.get(name, 0) > before.get(name, 0) or self._is_delegated(name) for name in wanted)
        return Hint.QUEUE if more else Hint.SKIP

    def _fits_empty(self, pod: PodInfo, node: Node) -> bool:
        offered = to_amounts(node.status.allocatable)
        wanted = {
            name: amount
            for name, amount in pod.shape.amounts.items()
            if amount > 0 and not self._is_ignored(name) and (offered.get(name, 0) or not self._is_delegated(name))
        }
        return offered.get("pods", 0) >= 1 and all(offered.get(n, 0) >= a for n, a in wanted.items())

    @by_shape
    def _class_hint(self, pod: PodInfo, old: DeviceClass | None, new: DeviceClass | None) -> Hint:
        if new is None:
            return Hint.SKIP
        name = new.spec.extended_resource_name
        if name and name in pod.shape.amounts and (old is None or old.spec.extended_resource_name != name):
            return Hint.QUEUE
        implicit = f"deviceclass.resource.kubernetes.io/{new.name}"
        return Hint.QUEUE if old is None and implicit in pod.shape.amounts else Hint.SKIP


def _used(node: NodeInfo, place: int) -> int:
    if place == CPU:
        return node.nonzero_cpu
    if place == MEMORY:
        return node.nonzero_memory
    return node.requested[place] if place < len(node.requested) else 0


def _used_column(nodes: NodeColumns, place: int) -> Int64N:
    if place == CPU:
        return nodes.nonzero_cpu
    return nodes.nonzero_memory if place == MEMORY else nodes.requested(place)


def _least_allocated(facts: FloatRN, terms: ScoreTerms) -> Int64N:
    """The weighted mean of the free shares, where cpu and memory are the resources and every node has both."""
    shares = facts[CpuMemoryFacts.SPARE] - terms.amounts * 100.0
    shares /= facts[CpuMemoryFacts.OF_SPARE]
    np.maximum(shares, 0.0, out=shares)
    np.floor(shares, out=shares)
    (_, _, first), (_, _, second) = terms.items
    total, other = shares
    if first != second:
        total *= first
        other *= second
        total += other
        scores: Int64N = total.astype(np.int64) // (first + second)
        return scores
    total += other
    total *= 0.5
    mean: Int64N = total.astype(np.int64)
    return mean


def _curve(points: Iterable[UtilizationShapePoint]) -> list[int]:
    """The score at each whole percentage of utilization; between two points integer steps truncate toward zero."""
    shape = [(point.utilization, point.score * 10) for point in points]
    return [_at(shape, utilization) for utilization in range(101)]


def _at(shape: list[tuple[int, int]], utilization: int) -> int:
    if utilization <= shape[0][0]:
        return shape[0][1]
    for (x1, y1), (x2, y2) in pairwise(shape):
        if utilization <= x2:
            rise = (y2 - y1) * (utilization - x1)
            return y1 + (abs(rise) // (x2 - x1)) * (1 if rise >= 0 else -1)
    return shape[-1][1]


def _validate_ignored(args: NodeResourcesFit.Args) -> list[str]:
    return [
        f"ignoredResourceGroups[{i}]: resource group name can't contain '/', got `{group}`"
        for i, group in enumerate(args.ignored_resource_groups)
        if "/" in group
    ]


def _validate_strategy(strategy: ScoringStrategy | None) -> list[str]:
    if strategy is None:
        return []
    problems = []
    if strategy.type not in _STRATEGIES:
        problems.append(f"scoringStrategy.type: `{strategy.type}` is not one of {', '.join(_STRATEGIES)}")
    for i, resource in enumerate(strategy.resources or ()):
        if not 0 <= resource.weight <= 100:
            problems.append(f"scoringStrategy.resources[{i}].weight: must be 1 to 100, got {resource.weight}")
    twice = duplicates(strategy.resources or [])
    problems += [f"scoringStrategy.resources: `{name}` is listed twice" for name in twice]
    ratio = strategy.requested_to_capacity_ratio
    if strategy.type == "RequestedToCapacityRatio":
        problems += _validate_shape(ratio.shape if ratio else [])
    elif ratio is not None:
        problems.append("scoringStrategy.requestedToCapacityRatio: goes with type RequestedToCapacityRatio only")
    return problems


def _validate_shape(shape: list[UtilizationShapePoint]) -> list[str]:
    path = "scoringStrategy.requestedToCapacityRatio.shape"
    if not shape:
        return [f"{path}: at least one point must be specified"]
    problems = []
    for i, point in enumerate(shape):
        if not 0 <= point.utilization <= 100:
            problems.append(f"{path}[{i}].utilization: must be 0 to 100, got {point.utilization}")
        if not 0 <= point.score <= 10:
            problems.append(f"{path}[{i}].score: must be 0 to 10, got {point.score}")
        if i and point.utilization <= shape[i - 1].utilization:
            problems.append(f"{path}[{i}].utilization: utilization values must be sorted in increasing order")
    return problems
