"""Normalisers: how raw scores become 0 to 100.

Assign one in the class body (`normalize = normalize_highest`) or write a method with the same parameters. The ready
ones are objects, so that the engine can tell which numbers (largest, smallest) a result depends on and leave a column
alone while those stay the same.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from bayplan.cluster.axes import Int64N

__all__ = ["MAX_NODE_SCORE", "Normalizer", "normalize_highest", "normalize_lowest", "normalize_range", "stretched"]

MAX_NODE_SCORE = 100
_FEW_STEPS = 256


class Normalizer:
    """Scores are a function of the raw score and of `bounds` over the feasible nodes."""

    takes_negative: ClassVar[bool] = False
    """Whether raw scores below zero also end within 0 to 100, so that the engine need not check for them."""

    def __get__(self, instance: object, owner: type | None = None) -> Normalizer:
        return self

    def __call__(self, state: Any, pod: Any, scores: Int64N) -> Int64N:
        return self.apply(scores, self.bounds(scores)) if len(scores) else scores

    def bounds(self, scores: Int64N) -> tuple[int, int]:
        """What the result depends on besides the score itself: by default (smallest, largest)."""
        return int(scores.min()), int(scores.max())

    def apply(self, scores: Int64N, bounds: tuple[int, int]) -> Int64N:
        raise TypeError(f"{type(self).__name__} does not say how to apply bounds")

    def weighted(self, scores: Int64N, bounds: tuple[int, int], weight: int, dtype: Any) -> Any:
        """The result times a weight, as wide as totals are."""
        return (self.apply(scores, bounds) * weight).astype(dtype)

    def apply_one(self, score: int, bounds: tuple[int, int]) -> int:
        return int(self.apply(np.array([score], dtype=np.int64), bounds)[0])


class _Highest(Normalizer):
    def bounds(self, scores: Int64N) -> tuple[int, int]:
        return 0, int(scores.max())

    def apply(self, scores: Int64N, bounds: tuple[int, int]) -> Int64N:
        largest = bounds[1]
        if largest == 0:
            return scores
        return _truncated(scores * MAX_NODE_SCORE, largest)


class _Lowest(Normalizer):
    def bounds(self, scores: Int64N) -> tuple[int, int]:
        return 0, int(scores.max())

    def apply(self, scores: Int64N, bounds: tuple[int, int]) -> Int64N:
        largest = bounds[1]
        if largest == 0:
            return np.full(len(scores), MAX_NODE_SCORE, dtype=np.int64)
        return MAX_NODE_SCORE - _truncated(scores * MAX_NODE_SCORE, largest)


class _Range(Normalizer):
    takes_negative = True

    def apply(self, scores: Int64N, bounds: tuple[int, int]) -> Int64N:
        smallest, largest = bounds
        return _stretched(scores - smallest, largest - smallest)

    def weighted(self, scores: Int64N, bounds: tuple[int, int], weight: int, dtype: Any) -> Any:
        smallest, largest = bounds
        if largest - smallest > _FEW_STEPS or len(scores) <= _FEW_STEPS:
            return super().weighted(scores, bounds, weight, dtype)
        return _steps(largest - smallest, weight, dtype).take(scores - smallest if smallest else scores)


def stretched(scores: list[int], places: list[int]) -> list[int]:
    """What `normalize_range` makes of a few scores, over those of some places; 0 elsewhere."""
    result = [0] * len(scores)
    some = [scores[place] for place in places]
    smallest = min(some)
    span = float(max(some) - smallest)
    if span:
        for place, score in zip(places, some, strict=True):
            result[place] = int(MAX_NODE_SCORE * ((score - smallest) / span))
    return result


def _stretched(above: Int64N, span: int) -> Int64N:
    if not span:
        return np.zeros(len(above), dtype=np.int64)
    stretched = above.astype(np.float64)
    stretched /= float(span)
    stretched *= MAX_NODE_SCORE
    return stretched.astype(np.int64)


@lru_cache(maxsize=_FEW_STEPS)
def _steps(span: int, weight: int, dtype: Any) -> Any:
    """What each whole number from 0 to `span` becomes: looking it up is sooner done than dividing thousands."""
    return (_stretched(np.arange(span + 1), span) * weight).astype(dtype)


def _truncated(numerator: Int64N, denominator: int) -> Int64N:
    """Division that truncates toward zero, as Go's does."""
    quotient: Int64N = np.abs(numerator) // abs(denominator)
    return np.where((numerator < 0) != (denominator < 0), -quotient, quotient)


normalize_highest = _Highest()
"""The largest raw score becomes 100, the others in proportion; all stay 0 when the largest is 0."""

normalize_lowest = _Lowest()
"""The largest raw score becomes 0 and 0 becomes 100."""

normalize_range = _Range()
"""The smallest raw score becomes 0, the largest 100; all 0 when they are equal."""
