"""NodeResourcesBalancedAllocation: prefer nodes on which the pod evens out the use of resources."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from math import sqrt

import msgspec
import numpy as np
import numpy.typing as npt

from bayplan.framework import SKIP, CycleState, Depends, NodeColumns, NodeInfo, Plugin, PluginArgs, PodInfo, Status
from bayplan.framework.columns import BoolN, FloatRN, Int64N
from bayplan.plugins.intree.dynamic_resources.totals import DeviceTotals
from bayplan.plugins.resource_scoring import (
    CpuMemoryFacts,
    ResourceWeight,
    ScoreTerms,
    balance_of,
    default_resources,
    duplicates,
    skips_scalar,
)

__all__ = ["NodeResourcesBalancedAllocation"]

_Fractions = npt.NDArray[np.float64]


class NodeResourcesBalancedAllocation(Plugin):
    """Scores how evenly the configured resources would be used with the pod, against without it.

    *What it does*: compares the spread of the used fractions (standard deviation) before and after.
    *Rejects when*: never.
    *Scores by*: 50 + (50 + balance with the pod - balance without it) / 2, so 75 is neutral. Skipped for pods that
    request none of the resources. On a node that offers none of a resource for which a device class stands, the devices
    of the class count instead.
    *Retries on*: nothing.
    *Arguments*: resources (names; weights must be 1).
    *Differs from kube-scheduler*: version 1.36.4 ends with a nil pointer where a device class with selectors stands for
    one of the resources.
    """

    default_weight = 1
    score_depends = Depends.USE
    settles_by_kind = True
    is_within_bounds = True

    class Args(PluginArgs):
        resources: list[ResourceWeight] = msgspec.field(default_factory=default_resources)

        def validate(self) -> list[str]:
            problems = [
                f"resources[{i}].weight: must be 1, got {r.weight}"
                for i, r in enumerate(self.resources)
                if r.weight not in (0, 1)
            ]
            return problems + [f"resources: `{name}` is listed twice" for name in duplicates(self.resources)]

    def setup(self) -> None:
        self._names = [r.name for r in self.args.resources or default_resources()]
        self._terms_key = (self, "terms")
        self._device_totals = DeviceTotals(self.handle.cluster, self._names)
        if self._device_totals.resources:
            vars(self).update(score_depends=Depends.CLUSTER)

    @property
    def is_cpu_and_memory(self) -> bool:
        """Whether the resources are cpu and memory, in this order, and no others."""
        return self._names == ["cpu", "memory"]

    def sign(self, pod: PodInfo) -> Hashable:
        return self._terms(pod).items

    def _terms(self, pod: PodInfo) -> ScoreTerms:
        """The resources that take part in the score; their weights have no effect."""
        return pod.shape.note(self._terms_key, lambda: self._make_terms(pod))

    def _make_terms(self, pod: PodInfo) -> ScoreTerms:
        resources, requests = self.handle.cluster.resources, pod.shape.status_requests
        terms = []
        for name in self._names:
            place, amount = resources.find(name), requests.get(name, 0)
            if place is not None and not skips_scalar(name, amount):
                terms.append((place, amount, 1))
        return ScoreTerms(terms)

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Status | None:
        requests = pod.shape.status_requests
        return None if any(requests.get(name, 0) for name in self._names) else SKIP

    def score_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Int64N:
        if self._device_totals.concerns(pod.shape.status_requests):
            return np.array([0 if each is None else self.score(state, pod, each) for each in nodes.infos()], np.int64)
        terms = self._terms(pod)
        facts = terms.cpu_memory_facts(nodes)
        if facts is not None:
            return _cpu_memory_scores(facts, terms)
        allocatable = [nodes.allocatable(place).astype(np.float64) for place, _, _ in terms.items]
        before = [nodes.requested(place) for place, _, _ in terms.items]
        after = [used + amount for used, (_, amount, _) in zip(before, terms.items, strict=True)]
        counted = [capacity != 0 for capacity in allocatable]
        with np.errstate(divide="ignore", invalid="ignore"):
            balance_after = _balance_column(after, allocatable, counted)
            balance_before = _balance_column(before, allocatable, counted)
        return 50 + (50 + balance_after - balance_before) // 2

    def _uses(self, pod: PodInfo, node: NodeInfo) -> Iterator[tuple[int, int, int]]:
        """(amount of the node, amount in use, amount of the pod) of each resource that counts there."""
        for place, amount, _ in self._terms(pod).items:
            capacity = node.allocatable[place] if place < len(node.allocatable) else 0
            if capacity:
                yield capacity, node.requested[place], amount
        if self._device_totals.resources:
            requests = pod.shape.status_requests
            for name, (total, taken) in self._device_totals.on(node, requests).items():
                yield total, taken, requests[name]

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        before: list[float] = []
        after: list[float] = []
        for capacity, used, amount in self._uses(pod, node):
            before.append(used / capacity if used < capacity else 1.0)
            used += amount
            after.append(used / capacity if used < capacity else 1.0)
        return 50 + (50 + _balance(after) - _balance(before)) // 2


def _balance(fractions: list[float]) -> int:
    if len(fractions) == 2:
        deviation = abs((fractions[0] - fractions[1]) / 2)
    elif len(fractions) > 2:
        mean = _sum(fractions) / len(fractions)
        deviation = sqrt(_sum([(f - mean) * (f - mean) for f in fractions]) / len(fractions))
    else:
        deviation = 0.0
    return int((1 - deviation) * 100.0)


def _sum(numbers: list[float]) -> float:
    """The sum from left to right: `sum` of newer Pythons compensates rounding, which would give other results."""
    total = 0.0
    for number in numbers:
        total += number
    return total


def _cpu_memory_scores(facts: FloatRN, terms: ScoreTerms) -> Int64N:
    """The scores where cpu and memory are the resources and every node has both; the balance before is known."""
    halves = facts[CpuMemoryFacts.HALF_USED] + terms.amounts[::-1] * 0.5
    halves /= facts[CpuMemoryFacts.OF_USED]
    balance = balance_of(halves * 2.0)
    balance += facts[CpuMemoryFacts.LEAN]
    scores: Int64N = balance.astype(np.int64)
    scores >>= 1
    return scores


def _balance_column(used: list[Int64N], allocatable: list[_Fractions], counted: list[BoolN]) -> Int64N:
    fractions = [np.minimum(u / a, 1.0) for u, a in zip(used, allocatable, strict=True)]
    if len(fractions) == 2:
        deviation = np.abs((fractions[0] - fractions[1]) / 2)
        deviation[~(counted[0] & counted[1])] = 0.0
    elif len(fractions) > 2:
        deviation = _deviation_column(fractions, counted)
    else:
        deviation = np.zeros(len(used[0]) if used else 0)
    return ((1 - deviation) * 100.0).astype(np.int64)


def _deviation_column(fractions: list[_Fractions], counted: list[BoolN]) -> _Fractions:
    """Population deviation over the resources a node has; nodes may lack some."""
    kept = [np.where(c, f, 0.0) for f, c in zip(fractions, counted, strict=True)]
    count = np.sum(counted, axis=0)
    total = np.zeros_like(kept[0])
    for fraction in kept:
        total += fraction
    mean = total / np.maximum(count, 1)
    squares = np.zeros_like(mean)
    for fraction, has in zip(kept, counted, strict=True):
        squares += np.where(has, (fraction - mean) * (fraction - mean), 0.0)
    deviation = np.sqrt(squares / np.maximum(count, 1))
    highest = np.max([np.where(c, f, -np.inf) for f, c in zip(fractions, counted, strict=True)], axis=0)
    lowest = np.min([np.where(c, f, np.inf) for f, c in zip(fractions, counted, strict=True)], axis=0)
    pair = np.where(count == 2, (highest - lowest) / 2, 0.0)
    result: _Fractions = np.where(count > 2, deviation, pair)
    return result
