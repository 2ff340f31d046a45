"""The scores of NodeResourcesFit and NodeResourcesBalancedAllocation in one pass, for their default arguments.

Both divide amounts of cpu and memory by what a node offers, and both score every pod. Combined, they read
`CpuMemoryFacts` once and take about half the NumPy calls. Every step is one that the plugins take themselves, in the
same order, on whole numbers that floats hold exactly: halves are exact, and a product with a power of two rounds as the
number itself does. Where a node lacks cpu or memory, or offers so much that floats would round, there is no combined
score.
"""

from __future__ import annotations

import numpy as np

from bayplan.framework import NodeColumns, NodeInfo, PodInfo
from bayplan.framework.columns import CPU, MEMORY, FloatRN, PodShape
from bayplan.framework.promises import Shares, Totals
from bayplan.plugins.resource_scoring import EXACT_BELOW, NO_NEED, Needs, cpu_memory_source

__all__ = ["CpuMemoryScores", "note_amounts"]

_MOST_SCRATCHES = 512

Amounts = tuple[int, int, int, int]
"""Requested cpu and memory of a pod, then the same with the defaults for scoring."""


class CpuMemoryScores:
    """The combined score. `members` have their default arguments as far as scores are concerned."""

    members = ("NodeResourcesFit", "NodeResourcesBalancedAllocation")

    def __init__(self, *, fit_weight: int, balance_weight: int) -> None:
        self._fit_weight = fit_weight
        self._balance_weight = balance_weight
        is_weighted = fit_weight != 1 or balance_weight != 1
        self._weights = (balance_weight, fit_weight) if is_weighted else None
        self._room: FloatRN = np.empty(0)
        self._whole_room: Totals = np.empty(0, dtype=np.int16)
        self._scratches: dict[int, _Scratch] = {}
        """By number of nodes, which is mostly the same from pod to pod."""

    def sign(self, pod: PodInfo) -> Amounts:
        return note_amounts(pod.shape).amounts

    def totals(self, pod: PodInfo, nodes: NodeColumns, out: Totals, first: Shares | None) -> bool:
        source = cpu_memory_source(nodes)
        if source is None:
            return False
        rows = None if nodes.is_all else nodes.rows
        parts = source.parts(rows)
        asked, count = note_amounts(pod.shape), len(out)
        scratch = self._scratches.get(count) or self._make_scratch(count)
        balance = scratch.balance
        np.add(parts.summands, asked.column, scratch.all)
        used, free = (scratch.used_rows, scratch.free_rows) if rows is None else (scratch.used, scratch.free)
        np.divide(used, parts.of_used, used)
        source.share(free, parts.of_spare, free)
        if not source.has_everywhere(asked.needs):
            np.minimum(used, 0.5, out=used)
            np.maximum(free, 0.0, out=free)
        balance -= scratch.used_memory
        np.abs(balance, balance)
        np.subtract(1.0, balance, balance)
        balance *= 100.0
        # No share is negative, so conversion to integers rounds down.
        np.copyto(scratch.whole, scratch.shares, casting="unsafe")
        self._add_up(scratch, parts.lean, out)
        if first is not None:
            np.copyto(first, scratch.whole_fit, casting="unsafe")
        return True

    def _add_up(self, scratch: _Scratch, lean: Totals, out: Totals) -> None:
        """The weighted sum of both scores, from shares that are whole numbers."""
        balance, fit, both = scratch.whole_balance, scratch.whole_fit, scratch.whole_both
        balance += lean
        fit += scratch.whole_free_memory
        both >>= 1
        if self._weights is None:
            np.add(balance, fit, out)
        else:
            np.multiply(balance, self._weights[0], out, dtype=out.dtype)
            out += np.multiply(fit, self._weights[1], dtype=out.dtype)

    def _make_scratch(self, count: int) -> _Scratch:
        size = 4 * count
        if len(self._room) < size or len(self._scratches) >= _MOST_SCRATCHES:
            self._scratches.clear()
        if len(self._room) < size:
            self._room, self._whole_room = np.empty(2 * size), np.empty(2 * size, dtype=np.int16)
        scratch = self._scratches[count] = _Scratch(self._room[:size], self._whole_room[: 3 * count], count)
        return scratch

    def total(self, pod: PodInfo, node: NodeInfo) -> tuple[int, int] | None:
        cpu, memory = node.allocatable[CPU], node.allocatable[MEMORY]
        if not (0 < cpu < EXACT_BELOW and 0 < memory < EXACT_BELOW):
            return None
        asked = pod.shape.note_on_amounts(_ScoredRequest, _ScoredRequest)
        more_cpu, more_memory, scored_cpu, scored_memory = asked.amounts
        free_cpu = cpu - node.nonzero_cpu - scored_cpu
        free_memory = memory - node.nonzero_memory - scored_memory
        fit = (free_cpu * 100 // cpu if free_cpu > 0 else 0) + (free_memory * 100 // memory if free_memory > 0 else 0)
        used_cpu, used_memory = node.requested[CPU], node.requested[MEMORY]
        before = _balance(used_cpu, cpu, used_memory, memory)
        after = _balance(used_cpu + more_cpu, cpu, used_memory + more_memory, memory)
        fit //= 2
        return fit * self._fit_weight + (50 + (50 + after - before) // 2) * self._balance_weight, fit


def _balance(used_cpu: int, cpu: int, used_memory: int, memory: int) -> int:
    share_of_cpu = used_cpu / cpu if used_cpu < cpu else 1.0
    share_of_memory = used_memory / memory if used_memory < memory else 1.0
    return int((1 - abs((share_of_cpu - share_of_memory) / 2)) * 100.0)


class _Scratch:
    """Buffers for the shares of some nodes, with views of their parts: slicing arrays costs as much as small sums do.

    Rows that are contiguous are processed as one long row. Whole-number shares are below 300, so they are kept in 16
    bits, a quarter of a float.
    """

    __slots__ = (
        "all",
        "balance",
        "free",
        "free_rows",
        "shares",
        "used",
        "used_memory",
        "used_rows",
        "whole",
        "whole_balance",
        "whole_both",
        "whole_fit",
        "whole_free_memory",
    )

    def __init__(self, room: FloatRN, whole: Totals, count: int) -> None:
        self.all = room.reshape(4, count)
        self.used_memory, self.balance, _, _ = self.all
        self.used_rows, self.free_rows = self.all[:2], self.all[2:]
        self.used, self.free, self.shares = room[: 2 * count], room[2 * count :], room[count:]
        self.whole, self.whole_both = whole, whole[: 2 * count]
        self.whole_balance, self.whole_fit, self.whole_free_memory = whole.reshape(3, count)


class _ScoredRequest:
    """What a shape adds to the facts, as arrays."""

    __slots__ = ("amounts", "column", "needs")

    def __init__(self, shape: PodShape) -> None:
        requests, scored = shape.status_requests, shape.scoring_requests
        cpu, memory = requests.get("cpu", 0), requests.get("memory", 0)
        scored_cpu, scored_memory = scored.get("cpu", 0), scored.get("memory", 0)
        self.amounts = (cpu, memory, scored_cpu, scored_memory)
        self.column = np.array((memory * 0.5, cpu * 0.5, scored_cpu * -100.0, scored_memory * -100.0)).reshape(4, 1)
        """One row for each of `CpuMemoryFacts.SUMMANDS`."""
        self.needs: Needs = (scored_cpu * 100.0, scored_memory * 100.0, cpu, memory, NO_NEED)
        """Amounts such that, where every node has as much, no share has to be clipped at full or at zero."""


def note_amounts(shape: PodShape) -> _ScoredRequest:
    return shape.note_on_amounts(_ScoredRequest, _ScoredRequest)
