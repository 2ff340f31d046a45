"""Candidates: nodes on which the pod fits once their victims are evicted; and which of them costs least."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from bayplan.cluster.pod_info import PodInfo
from bayplan.framework.cycle import CycleState
from bayplan.framework.diagnosis import Diagnosis
from bayplan.framework.handle import Candidate

__all__ = [
    "Candidate",
    "CandidateKeys",
    "Candidates",
    "Preemptor",
    "compared",
    "importance",
    "pick_cheapest",
    "price",
    "remaining",
]

_PRIORITY_SHIFT = 1 << 31
_NEVER_STARTED = float("inf")


CandidateKeys = tuple[tuple[str, float, int], ...]
"""(criterion, value of the chosen candidate, candidates that have the same), in the order of `price`."""

_CRITERIA = (
    "disruption budgets broken",
    "highest priority of a victim",
    "sum of the victims' priorities",
    "number of victims",
    "start of the most important victim",
)


class Candidates(NamedTuple):
    """All candidates of a search, and those of them that tie for the lowest price."""

    all: list[Candidate]
    cheapest: list[Candidate]


@runtime_checkable
class Preemptor(Protocol):
    """A plugin whose PostFilter evicts pods, and that can name its choices without acting on them."""

    def find_candidates(self, state: CycleState, pod: PodInfo, diagnosis: Diagnosis) -> Candidates:
        """What PostFilter chooses from, for a pod that it would evict others for."""


def importance(pod: PodInfo) -> tuple[int, float]:
    """Sorts the most important pod first: higher priority, then longer running."""
    return -pod.shape.priority, _NEVER_STARTED if pod.start_time is None else pod.start_time


def price(candidate: Candidate) -> tuple[float, ...]:
    """Smaller is cheaper, compared in this order: budgets broken, the highest priority of a victim, the sum of
    priorities, the number of victims, how long the most important victims have been running."""
    victims = candidate.victims
    highest = victims[0].priority
    earliest = min(_started(v) for v in victims if v.priority == highest)
    total = sum(v.priority + _PRIORITY_SHIFT for v in victims)
    return candidate.violations, highest, total, len(victims), -earliest


def _started(pod: PodInfo) -> float:
    return _NEVER_STARTED if pod.start_time is None else pod.start_time


def pick_cheapest(candidates: Sequence[Candidate]) -> list[Candidate]:
    """The candidates that tie on every criterion."""
    if len(candidates) < 2:
        return list(candidates)
    prices = [price(candidate) for candidate in candidates]
    lowest = min(prices)
    return [candidate for candidate, cost in zip(candidates, prices, strict=True) if cost == lowest]


def remaining(prices: npt.NDArray[np.float64]) -> list[int]:
    """How many candidates each criterion left, up to the one that left a single candidate.

    `prices` has a row for each criterion in the order of `price`, a column for each candidate.
    """
    left, counts = np.arange(prices.shape[1]), []
    for row in prices:
        left = left[row[left] == row[left].min()]
        counts.append(len(left))
        if len(left) == 1:
            break
    return counts


def compared(chosen: Candidate, left: Sequence[int]) -> CandidateKeys:
    """The criteria with their values for the chosen candidate, and how many candidates each left."""
    victims = chosen.victims
    if not victims:
        return ()
    highest, total, starts = victims[0].priority, 0, []
    for victim in victims:
        priority = victim.priority
        total += priority
        if priority == highest and victim.start_time is not None:
            starts.append(victim.start_time)
    values = (chosen.violations, highest, total, len(victims), min(starts, default=0.0))
    return tuple(
        [(criterion, float(value), count) for criterion, value, count in zip(_CRITERIA, values, left, strict=False)]
    )
