"""Choosing among the best nodes, and the size and order of a sample of nodes where one is configured."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bayplan.cluster.axes import Int64N, Rows

__all__ = ["TieBreak", "nodes_to_find", "sample_rows", "seeded_tie_break"]

TieBreak = Callable[[Rows], int]
"""Rows that tie for the highest total -> the row to take."""

_MIN_TO_FIND = 100
_MIN_PERCENTAGE = 5


def seeded_tie_break(seed: int) -> TieBreak:
    """Deterministic for a seed, spread evenly over ties: a multiplicative congruential step per decision."""
    state = (seed * 2 + 1) & 0xFFFFFFFFFFFFFFFF

    def choose(ties: Rows) -> int:
        nonlocal state
        state = (state * 6364136223846793005 + 1442695040888963407) & 0xFFFFFFFFFFFFFFFF
        return int(ties[(state >> 33) % len(ties)])

    return choose


def nodes_to_find(count: int, percentage: int) -> int:
    """How many feasible nodes are enough among `count`; a percentage of 0 adapts to the size of the cluster."""
    if count < _MIN_TO_FIND or percentage >= 100:
        return count
    if percentage == 0:
        percentage = max(_MIN_PERCENTAGE, 50 - count // 125)
    return max(count * percentage // 100, _MIN_TO_FIND)


def sample_rows(order: Rows, is_feasible: Int64N, *, start: int, enough: int) -> tuple[Rows, int]:
    """The first `enough` feasible rows from `start` on, in visiting order, and how many nodes were visited."""
    turned = np.concatenate([order[start:], order[:start]]) if start else order
    places = np.flatnonzero(is_feasible[turned])
    if len(places) <= enough:
        return turned[places], len(order)
    return turned[places[:enough]], int(places[enough])
