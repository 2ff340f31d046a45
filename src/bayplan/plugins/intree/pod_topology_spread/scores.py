"""From counts to the scores of PodTopologySpread: rounded half up, then reversed, so that fewer pods score higher.

Counts of spread pods take few different values on many nodes. The score of each value is computed once and looked up.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bayplan.framework import MAX_NODE_SCORE, Normalizer
from bayplan.framework.columns import DomainCounts, Int64N

__all__ = ["IGNORED", "normalize_spread", "reversed_few", "round_half_up", "rounded"]

IGNORED = -1
"""Score of a node that lacks a key: it scores 0, and is left out of the bounds for the others."""
_FEW_STEPS = 32


def rounded(numbers: DomainCounts) -> Int64N:
    """Rounded half up to whole numbers. Every number must be 0 or at least a half: adding a half to a number just below
    a half would round up to one."""
    scores: Int64N = (numbers + 0.5).astype(np.int64)
    return scores


def round_half_up(number: float) -> int:
    """As `rounded`, for one number."""
    return int(number + 0.5)


def reversed_few(scores: list[int], places: list[int]) -> list[int]:
    """As `normalize_spread`, for the scores of some places; 0 elsewhere."""
    result = [0] * len(scores)
    some = [scores[place] for place in places]
    if some:
        highest = max(some)
        both = min(some) + highest
        for place, score in zip(places, some, strict=True):
            result[place] = MAX_NODE_SCORE * (both - score) // highest if highest else MAX_NODE_SCORE
    return result


class _Reversed(Normalizer):
    """Ignored nodes score 0; the others score higher the fewer pods they hold."""

    takes_negative = True

    def bounds(self, scores: Int64N) -> tuple[int, int]:
        lowest = int(scores.min())
        if lowest < 0:
            counted = scores[scores >= 0]
            lowest = int(counted.min()) if len(counted) else 0
        return lowest, max(int(scores.max()), 0)

    def apply(self, scores: Int64N, bounds: tuple[int, int]) -> Int64N:
        lowest, highest = bounds
        if highest == 0:
            return np.where(scores < 0, 0, MAX_NODE_SCORE)
        result: Int64N = highest + lowest - scores
        result *= MAX_NODE_SCORE
        result //= highest
        result[scores < 0] = 0
        return result

    def weighted(self, scores: Int64N, bounds: tuple[int, int], weight: int, dtype: Any) -> Any:
        lowest, highest = bounds
        if highest - lowest > _FEW_STEPS or len(scores) <= _FEW_STEPS:
            return super().weighted(scores, bounds, weight, dtype)
        # The first entry is for IGNORED: `clip` maps every score below `lowest` to it.
        worth = [0, weight * MAX_NODE_SCORE]
        if highest:
            parts = range(highest, lowest - 1, -1)
            worth = [0, *[weight * (MAX_NODE_SCORE * part // highest) for part in parts]]
        return np.array(worth, dtype=dtype).take(scores - (lowest - 1), mode="clip")


normalize_spread = _Reversed()
