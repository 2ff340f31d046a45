"""Candidates: nodes on which the pod fits once their victims are evicted; and which of them costs least."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bayplan.cluster.pod_info import PodInfo

__all__ = ["Candidate", "importance", "pick_cheapest"]

_PRIORITY_SHIFT = 1 << 31
_NEVER_STARTED = float("inf")


class Candidate(NamedTuple):
    """A node and the pods to evict from it."""

    row: int
    node_name: str
    victims: tuple[PodInfo, ...]
    """Most important first."""
    violations: int
    """How many victims break a disruption budget."""


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
