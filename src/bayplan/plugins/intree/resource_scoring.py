"""Resources in scoring, shared by NodeResourcesFit and NodeResourcesBalancedAllocation: which amounts to compare.

Integer quotients are computed in float64 where that is exact (numbers below 2^46 times 100) because it is several times
faster than NumPy's integer division; larger clusters of bytes fall back to integers.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import numpy as np

from bayplan.api.requests import is_scalar_resource
from bayplan.framework import NodeColumns
from bayplan.snapshot.axes import Int64N
from bayplan.snapshot.resources import CPU, MEMORY

__all__ = ["ResourceWeight", "ScoreTerms", "default_resources", "duplicates", "percent", "skips_scalar"]

_EXACT_BELOW = 1 << 46


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
    """A scalar resource that the pod does not ask for has no part in its score."""
    return requested == 0 and is_scalar_resource(name)


class ScoreTerms:
    """The resources that take part in a pod's score: (place, the pod's amount, weight)."""

    __slots__ = ("_is_plain", "amounts", "items")

    def __init__(self, terms: Iterable[tuple[int, int, int]]) -> None:
        self.items = tuple(terms)
        self.amounts = np.array([[amount] for _, amount, _ in self.items], dtype=np.int64)
        """One row a resource, as wide as a single node."""
        self._is_plain = [place for place, _, _ in self.items] == [CPU, MEMORY]

    def is_plain_on(self, nodes: NodeColumns) -> bool:
        """Whether cpu and memory are all there is, every node has both, and float arithmetic on them is exact."""
        table = nodes.table
        if not self._is_plain or table.largest_amount >= _EXACT_BELOW:
            return False
        return not (table.is_scarce(CPU) or table.is_scarce(MEMORY))


def percent(part: Int64N, whole: Int64N, nodes: NodeColumns) -> Int64N:
    """part * 100 / whole, truncated; 0 where whole is 0. Both must not be negative."""
    if nodes.table.largest_amount < _EXACT_BELOW:
        with np.errstate(divide="ignore", invalid="ignore"):
            quotient = (part * 100.0) / whole
        quotient[whole == 0] = 0.0
        return quotient.astype(np.int64)
    safe = np.where(whole == 0, 1, whole)
    result: Int64N = part * 100 // safe
    result[whole == 0] = 0
    return result
