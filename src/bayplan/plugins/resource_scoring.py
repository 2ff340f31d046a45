"""Amounts of resources for scoring, shared by NodeResourcesFit and NodeResourcesBalancedAllocation.

Integer quotients are computed in float64 where that is exact (numbers below 2^46 times 100), which is several times
faster than NumPy's integer division; larger amounts fall back to integers.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from operator import gt
from typing import NamedTuple

import msgspec
import numpy as np

from bayplan.framework import NodeColumns
from bayplan.framework.columns import CPU, MEMORY, DerivedColumns, FloatRN, Int64N, NodeTable, Rows
from bayplan.framework.objects import is_scalar_resource

__all__ = [
    "EXACT_BELOW",
    "NO_NEED",
    "CpuMemoryFacts",
    "Needs",
    "ResourceWeight",
    "ScoreTerms",
    "balance_of",
    "cpu_memory_facts",
    "cpu_memory_source",
    "default_resources",
    "duplicates",
    "percent",
    "percent_of",
    "skips_scalar",
]

Needs = tuple[float, float, float, float, float]
"""Amounts of cpu and memory in hundredths, of cpu and memory, and of pods; see `CpuMemoryFacts.FLOORED`."""
NO_NEED = -inf

EXACT_BELOW = 1 << 46
"""Smaller amounts, and a hundred times as much, are exact as floats, and so is the floor of a quotient of them."""
_INVERTED_UP_TO = 1 << 42
"""Up to this amount, a share of at most a hundred may be computed as a product with the inverse, which takes a third of
the time of a division. The inverse is chosen too large by three to five parts in 2^52, so products are too large by two
to six: a whole number does not fall short, and a number that is not whole misses the next one by at least 1 / 2^42,
which is more than six parts in 2^52 of a hundred.
"""
_LARGER = 1.0 + 4 * 2.0**-52
_EVEN = 150
_NOTHING_KNOWN = (-inf,) * 5
_NO_NODE = np.array([0, 0, *[2.0**53] * 5, 0, 0, 50, *[2.0**53] * 3])[:, None]
_INT64_MAX = 2**63 - 1
_Narrow = np.ndarray[tuple[int], np.dtype[np.int16]]


class ResourceWeight(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """A resource and its share of the score; weight 0 means 1."""

    name: str = ""
    weight: int = 0

    @property
    def effective_weight(self) -> int:
        return self.weight or 1


def default_resources() -> list[ResourceWeight]:
    return [ResourceWeight(name="cpu", weight=1), ResourceWeight(name="memory", weight=1)]


def duplicates(resources: list[ResourceWeight]) -> list[str]:
    seen: set[str] = set()
    return [r.name for r in resources if r.name in seen or seen.add(r.name)]  # type: ignore[func-returns-value]


def skips_scalar(name: str, requested: int) -> bool:
    """Whether a scalar resource is left out of the score because the pod does not request it."""
    return requested == 0 and is_scalar_resource(name)


class ScoreTerms:
    """The resources that take part in a pod's score: (place, the pod's amount, weight)."""

    __slots__ = ("_amounts", "_is_cpu_and_memory", "items")

    def __init__(self, terms: Iterable[tuple[int, int, int]]) -> None:
        self.items = tuple(terms)
        self._amounts: FloatRN | None = None
        self._is_cpu_and_memory = [place for place, _, _ in self.items] == [CPU, MEMORY]

    @property
    def amounts(self) -> FloatRN:
        """One row per resource, one column. Floats like `CpuMemoryFacts`: mixing them with integers is slow."""
        if self._amounts is None:
            self._amounts = np.array([amount for _, amount, _ in self.items], dtype=np.float64)[:, None]
        return self._amounts

    def cpu_memory_facts(self, nodes: NodeColumns) -> FloatRN | None:
        """The `CpuMemoryFacts`, if the score is about cpu and memory only."""
        return cpu_memory_facts(nodes) if self._is_cpu_and_memory else None


class ScoredParts(NamedTuple):
    """Parts of the `CpuMemoryFacts` of some nodes; see there."""

    summands: FloatRN
    of_used: FloatRN
    of_spare: FloatRN
    lean: _Narrow


class CpuMemoryFacts(DerivedColumns):
    """Cpu and memory of every node as floats, prepared for filtering and scoring: two rows each unless stated
    otherwise.

    Every number is whole and below 2^53 (or half of such a number), so float arithmetic gives the same as integers. A
    row without a node has unlimited room, so that it never affects a minimum.
    """

    HEIGHT = 13
    HANDED_OUT = 10
    IS_ABOUT_USE = True
    HALF_USED, SPARE, LEAN, FREE, PLACES = slice(0, 2), slice(2, 4), 9, slice(10, 12), 12
    """Half of what is requested, memory before cpu; a hundred times (allocatable less requested with scoring defaults);
    (one row) 150 less the balance of both; allocatable less requested; (one row) the number of further pods allowed."""
    OF_USED, OF_SPARE, INVERSE = slice(4, 6), slice(5, 7), slice(7, 9)
    """Allocatable, as divisor of HALF_USED and of SPARE: memory, cpu, and memory again; and the factor that replaces
    the division of SPARE while no node has more than _INVERTED_UP_TO."""
    SUMMANDS = slice(0, 4)
    """HALF_USED and SPARE: the rows that amounts are added to before division. Cpu used and cpu spare are neighbours,
    so that both results can be processed as one row."""
    FLOORED = (2, 3, 10, 11, 12)
    """SPARE, FREE and PLACES: the rows that `has_everywhere` compares."""

    def __init__(self, table: NodeTable) -> None:
        super().__init__(table)
        self._lowest: tuple[float, ...] = _NOTHING_KNOWN
        """A lower bound of FLOORED over all nodes; nodes may have more since pods left."""
        self._poorest: list[int] = [0] * len(_NOTHING_KNOWN)
        """For each of FLOORED, a row that had the minimum at the last full scan."""
        self._is_exact = False
        self._is_exact_as_of = -1
        self._spare_row = self.OF_SPARE
        self.share: np.ufunc = np.divide
        """How a share of SPARE is computed: (SPARE, `ScoredParts.of_spare`) -> hundredths, not yet rounded down."""
        self._lean: _Narrow = np.zeros(0, dtype=np.int16)
        """LEAN by row in 16 bits, a quarter of a float to read."""
        self._all_parts: ScoredParts | None = None

    @property
    def is_exact(self) -> bool:
        """Whether every node has cpu and memory, and amounts are small enough for floats."""
        table = self._table
        if self._is_exact_as_of != table.node_changes.position:
            self._is_exact_as_of = table.node_changes.position
            is_scarce = table.is_scarce(CPU) or table.is_scarce(MEMORY)
            self._is_exact = table.largest_amount < EXACT_BELOW and not is_scarce
            is_inverted = table.largest_amount <= _INVERTED_UP_TO
            self.share, self._spare_row = (np.multiply, self.INVERSE) if is_inverted else (np.divide, self.OF_SPARE)
            self._all_parts = None
        return self._is_exact

    def has_everywhere(self, needs: Needs) -> bool:
        """Whether every node has at least these amounts of FLOORED. Valid after `refreshed`."""
        if not any(map(gt, needs, self._lowest)):
            return True
        columns, size = self._columns, self._table.size
        for which, need in enumerate(needs):
            if need > self._lowest[which] and need > columns[self.FLOORED[which], self._poorest[which]]:
                return False
        self._poorest = [int(columns[place, :size].argmin()) for place in self.FLOORED]
        places = zip(self.FLOORED, self._poorest, strict=True)
        self._lowest = tuple([float(columns[place, row]) for place, row in places])
        return not any(map(gt, needs, self._lowest))

    def parts(self, rows: Rows | None) -> ScoredParts:
        """What `CpuMemoryScores` reads, of some rows or of all. Valid after `refreshed`."""
        if rows is not None:
            picked = self._columns[: self.LEAN].take(rows, axis=1)
            # `take` makes rows contiguous, and one row is divided faster than two.
            used, spare = picked[self.OF_USED].reshape(-1), picked[self._spare_row].reshape(-1)
            return ScoredParts(picked[self.SUMMANDS], used, spare, self._lean.take(rows))
        size, known = self._table.size, self._all_parts
        if known is None or known.lean.base is not self._lean or len(known.lean) != size:
            columns = self._columns[:, :size]
            summands, used, spare = columns[self.SUMMANDS], columns[self.OF_USED], columns[self._spare_row]
            known = self._all_parts = ScoredParts(summands, used, spare, self._lean[:size])
        return known

    def room(self, rows: Rows | None) -> FloatRN:
        """FREE and PLACES of some rows, or of all. Valid after `refreshed`."""
        columns = self._columns[self.FREE.start : self.PLACES + 1]
        return columns[:, : self._table.size] if rows is None else columns.take(rows, axis=1)

    def write_all(self, columns: FloatRN) -> None:
        table = self._table
        size = columns.shape[1]
        used, allocatable = table.requested[:2, :size], table.allocatable[:2, :size]
        columns[self.HALF_USED] = used[::-1] * 0.5
        columns[self.SPARE] = (allocatable - table.nonzero[:, :size]) * 100.0
        columns[self.OF_USED] = table.divisor[:2, :size][::-1]
        columns[self.OF_SPARE] = table.divisor[:2, :size]
        columns[self.INVERSE] = 1.0 / table.divisor[:2, :size] * _LARGER
        columns[self.LEAN] = _EVEN - balance_of(used / table.divisor[:2, :size])
        columns[self.FREE] = allocatable - used
        columns[self.PLACES] = table.allowed_pods[:size] - table.pod_count[:size]
        if len(table) != size:
            columns[:, ~table.valid[:size]] = _NO_NODE
        self._lean = np.empty(table.capacity, dtype=np.int16)
        self._lean[:size] = columns[self.LEAN]
        self._lowest, self._poorest = _NOTHING_KNOWN, [0] * len(_NOTHING_KNOWN)

    def write_row(self, columns: FloatRN, row: int) -> None:
        info = self._table.infos[row]
        if info is None:
            columns[:, row : row + 1] = _NO_NODE
            self._lean[row] = columns[self.LEAN, row]
            return
        allocatable, requested = info.allocatable, info.requested
        cpu, memory, used_cpu, used_memory = allocatable[CPU], allocatable[MEMORY], requested[CPU], requested[MEMORY]
        spare_cpu, spare_memory = (cpu - info.nonzero_cpu) * 100, (memory - info.nonzero_memory) * 100
        free_cpu, free_memory, places = cpu - used_cpu, memory - used_memory, info.allowed_pods - len(info.pods)
        divisor_cpu, divisor_memory = cpu or 1, memory or 1
        share_of_cpu = used_cpu / divisor_cpu if used_cpu < divisor_cpu else 1.0
        share_of_memory = used_memory / divisor_memory if used_memory < divisor_memory else 1.0
        lean = self._lean[row] = _EVEN - int((1 - abs((share_of_cpu - share_of_memory) / 2)) * 100.0)
        columns[:, row] = (
            used_memory * 0.5,
            used_cpu * 0.5,
            spare_cpu,
            spare_memory,
            divisor_memory,
            divisor_cpu,
            divisor_memory,
            1.0 / divisor_cpu * _LARGER,
            1.0 / divisor_memory * _LARGER,
            lean,
            free_cpu,
            free_memory,
            places,
        )
        a, b, c, d, e = lowest = self._lowest
        if spare_cpu < a or spare_memory < b or free_cpu < c or free_memory < d or places < e:
            self._lowest = tuple(map(min, lowest, (spare_cpu, spare_memory, free_cpu, free_memory, places)))


def balance_of(fractions: FloatRN) -> FloatRN:
    """The balance of cpu and memory (the two rows): 100 when both are used alike, down to 50 when one is full and the
    other empty; whole numbers. Changes its argument."""
    np.minimum(fractions, 1.0, out=fractions)
    deviation: FloatRN = fractions[0]
    deviation -= fractions[1]
    np.abs(deviation, out=deviation)
    deviation *= 0.5
    np.subtract(1.0, deviation, out=deviation)
    deviation *= 100.0
    return np.trunc(deviation, out=deviation)


def cpu_memory_source(nodes: NodeColumns) -> CpuMemoryFacts | None:
    """The source of the facts, if every node has cpu and memory and amounts are small enough; None in dry runs."""
    source = nodes.derivation(CpuMemoryFacts)
    return source if source is not None and source.is_exact else None


def cpu_memory_facts(nodes: NodeColumns) -> FloatRN | None:
    """The facts of these nodes; None where `cpu_memory_source` is."""
    return None if cpu_memory_source(nodes) is None else nodes.derived(CpuMemoryFacts)


def percent(part: Int64N, whole: Int64N, nodes: NodeColumns) -> Int64N:
    """part * 100 / whole, truncated, in 64 bits as in Go; 0 where whole is 0. Neither may be negative."""
    if nodes.table.largest_amount < EXACT_BELOW:
        with np.errstate(divide="ignore", invalid="ignore"):
            quotient = (part * 100.0) / whole
        quotient[whole == 0] = 0.0
        return quotient.astype(np.int64)
    product = part * 100  # wraps around on overflow, as in Go
    quotient64: Int64N = np.abs(product) // np.where(whole == 0, 1, whole)
    return np.where(whole == 0, 0, np.where(product < 0, -quotient64, quotient64))


def percent_of(part: int, whole: int) -> int:
    """As `percent`, for one node; `whole` is not 0."""
    product = part * 100
    if product <= _INT64_MAX:
        return product // whole
    product = (product + 2**63) % 2**64 - 2**63
    return product // whole if product >= 0 else -(-product // whole)
