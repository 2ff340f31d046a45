"""Requests of a pod compared with what nodes have, as bit masks: one bit for each resource that is insufficient."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from bayplan.framework import Code, NodeColumns, Status, Verdicts
from bayplan.framework.columns import CPU, MEMORY, FloatRN, Rows, Vector
from bayplan.plugins.resource_scoring import NO_NEED, CpuMemoryFacts, Needs

__all__ = [
    "BEYOND_ALLOCATABLE",
    "FIRST_RESOURCE",
    "MOST_BITS",
    "TOO_MANY_PODS",
    "RequestChecks",
    "cpu_memory_verdicts",
    "verdicts_by_combination",
]

TOO_MANY_PODS = 1
BEYOND_ALLOCATABLE = 2
FIRST_RESOURCE = 4
MOST_BITS = 28
"""The number of resources that fit into the bit mask of a verdict beside the two bits before them."""


class RequestChecks:
    """The requests of a pod, prepared for comparison."""

    __slots__ = ("_amounts", "delegated", "lacking", "needs", "pairs", "status")

    def __init__(
        self, pairs: Vector, names: tuple[str, ...], unplaced: tuple[str, ...], delegated: frozenset[int]
    ) -> None:
        self.pairs = pairs
        """(place, amount) of every request that counts and that some node offers."""
        self.lacking = (FIRST_RESOURCE << len(pairs)) | BEYOND_ALLOCATABLE if unplaced else 0
        """The part of the mask that is the same on every node: one bit for all resources that no node offers."""
        self.delegated = delegated
        """Places of resources that devices stand for where a node offers none."""
        is_cpu_and_memory = len(pairs) == 2 and pairs[0][0] == CPU and pairs[1][0] == MEMORY and not unplaced
        self.needs: Needs | None = (NO_NEED, NO_NEED, pairs[0][1], pairs[1][1], 1.0) if is_cpu_and_memory else None
        """What every node must have so that none is rejected, for pods that request cpu and memory only."""
        self.status = _statuses(names, unplaced) if unplaced else _shared_statuses(names, ())
        """From a bit mask of shortages to a Status."""
        self._amounts: FloatRN | None = None

    @property
    def amounts(self) -> FloatRN:
        """Cpu, memory and one pod, one row each, for pods that request only these."""
        if self._amounts is None:
            self._amounts = np.array([[float(amount)] for _, amount in self.pairs] + [[1.0]])
        return self._amounts


def cpu_memory_verdicts(checks: RequestChecks, facts: CpuMemoryFacts, rows: Rows | None) -> Verdicts:
    """Verdicts for a pod that requests cpu and memory only, from the facts about what is free."""
    amounts = checks.amounts
    short = facts.room(rows) < amounts
    if not np.count_nonzero(short):
        return Verdicts(np.zeros(short.shape[1], dtype=np.int32), checks.status)
    bits = short.view(np.uint8)
    # Products, because NumPy shifts slowly; pods come last, as TOO_MANY_PODS is the lowest bit.
    mask = bits[0] * np.uint8(FIRST_RESOURCE)
    mask |= bits[1] * np.uint8(2 * FIRST_RESOURCE)
    mask |= bits[2]
    beyond = facts.cut(rows)[CpuMemoryFacts.OF_SPARE] < amounts[:2]
    if np.count_nonzero(beyond):
        # A request above the allocatable amount is insufficient as well.
        mask |= (beyond[0] | beyond[1]).view(np.uint8) * np.uint8(BEYOND_ALLOCATABLE)
    return Verdicts(mask.astype(np.int32), checks.status)


def verdicts_by_combination(checks: RequestChecks, nodes: NodeColumns) -> Verdicts:
    """For a pod that names more resources than a mask has bits: a number for each combination of shortages."""
    amounts = [(nodes.allocatable(place), nodes.requested(place), amount) for place, amount in checks.pairs]
    short = np.array([requested > offered - amount for offered, requested, amount in amounts])
    for number, (place, _) in enumerate(checks.pairs):
        if place in checks.delegated:
            short[number] &= amounts[number][0] != 0
    beyond = short & np.array([offered < amount for offered, _, amount in amounts])
    lacking = np.full((1, len(nodes)), checks.lacking != 0)
    bits = np.vstack([nodes.pod_count >= nodes.allowed_pods, beyond.any(axis=0) | lacking[0], short, lacking])
    distinct, found = np.unique(bits, axis=1, return_inverse=True)
    masks = [sum(1 << place for place, is_set in enumerate(column) if is_set) for column in distinct.T.tolist()]
    numbers = np.array([number + 1 if mask else 0 for number, mask in enumerate(masks)], dtype=np.int32)
    return Verdicts.of(numbers[found.reshape(-1)], [checks.status(0), *(checks.status(mask) for mask in masks)])


def _statuses(names: tuple[str, ...], unplaced: tuple[str, ...]) -> Callable[[int], Status]:
    """One Status object per mask of shortages."""
    groups = [*((name,) for name in names), *([unplaced] if unplaced else ())]

    @lru_cache(maxsize=4096)
    def status(mask: int) -> Status:
        short = [group for i, group in enumerate(groups) if mask & (FIRST_RESOURCE << i)]
        found = ["Too many pods"] if mask & TOO_MANY_PODS else []
        found += [f"Insufficient {name}" for group in short for name in group]
        code = Code.UNRESOLVABLE if mask & BEYOND_ALLOCATABLE else Code.UNSCHEDULABLE
        return Status(code, tuple(found), plugin="NodeResourcesFit")

    return status


_shared_statuses = lru_cache(maxsize=4096)(_statuses)
