"""Choosing among equals, and sampling."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from bayplan.loop.select import nodes_to_find, sample_rows, seeded_tie_break


def test_a_seed_decides_ties_once_and_for_all() -> None:
    ties = np.arange(10)
    first, again, other = (seeded_tie_break(seed) for seed in (3, 3, 4))
    chosen = [first(ties) for _ in range(20)]

    assert chosen == [again(ties) for _ in range(20)]
    assert chosen != [other(ties) for _ in range(20)]


def test_ties_are_spread_evenly() -> None:
    choose = seeded_tie_break(0)
    counts = Counter(choose(np.array([4, 7, 9])) for _ in range(3000))

    assert set(counts) == {4, 7, 9}
    assert min(counts.values()) > 900


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (50, 50),
        (100, 100),
        (125, 100),
        (200, 100),
        (250, 120),
        (500, 230),
        (1000, 420),
        (2000, 680),
        (5000, 500),
        (5600, 336),
        (6000, 300),
        (10000, 500),
        (15000, 750),
    ],
)
def test_the_adaptive_sample_is_that_of_kube_scheduler(count: int, expected: int) -> None:
    """Vector A10."""
    assert nodes_to_find(count, 0) == expected


@pytest.mark.parametrize(("percentage", "expected"), [(100, 5000), (10, 500), (1, 100), (50, 2500)])
def test_a_percentage_is_honoured_but_a_hundred_nodes_are_the_least(percentage: int, expected: int) -> None:
    assert nodes_to_find(5000, percentage) == expected
    assert nodes_to_find(99, percentage) == 99


def test_the_sample_starts_where_the_last_one_ended_and_goes_round() -> None:
    order = np.array([3, 0, 2, 1, 4])
    feasible = np.array([1, 1, 0, 1, 1])

    rows, visited = sample_rows(order, feasible, start=0, enough=2)
    assert (rows.tolist(), visited) == ([3, 0], 3)
    rows, visited = sample_rows(order, feasible, start=3, enough=2)
    assert (rows.tolist(), visited) == ([1, 4], 2)
    rows, visited = sample_rows(order, feasible, start=4, enough=9)
    assert (rows.tolist(), visited) == ([4, 3, 0, 1], 5)
