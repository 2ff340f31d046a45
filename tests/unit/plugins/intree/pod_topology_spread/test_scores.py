"""Points for counts: the same number by number, by column, by table, and for a few."""

from __future__ import annotations

from fractions import Fraction
from math import floor, log

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from bayplan.plugins.intree.pod_topology_spread.scores import (
    IGNORED,
    normalize_spread,
    reversed_few,
    round_half_up,
    rounded,
)


@given(st.lists(st.tuples(st.integers(0, 5000), st.integers(1, 5000), st.integers(1, 9)), min_size=1, max_size=3))
@example([(1, 2, 1)])
def test_numbers_are_rounded_halves_up(parts: list[tuple[int, int, int]]) -> None:
    """Of sums of counts times logarithms, and of nothing."""
    number = sum(count * log(domains + 2) + (skew - 1) for count, domains, skew in parts)

    expected = floor(Fraction(number) + Fraction(1, 2))
    assert round_half_up(number) == expected
    assert rounded(np.array([number, 0.0, 2.5])).tolist() == [expected, 0, 3]


def test_fewer_are_worth_more() -> None:
    assert normalize_spread(None, None, np.array([0, 5, 10])).tolist() == [100, 50, 0]
    assert normalize_spread(None, None, np.array([4, 6])).tolist() == [100, 66]


def test_nodes_without_a_key_get_nothing_and_are_not_compared_with() -> None:
    assert normalize_spread(None, None, np.array([IGNORED, 4, 6])).tolist() == [0, 100, 66]
    assert normalize_spread(None, None, np.array([IGNORED, 0])).tolist() == [0, 100]
    assert normalize_spread(None, None, np.array([IGNORED, IGNORED])).tolist() == [0, 0]


@given(
    st.integers(0, 2000).flatmap(lambda low: st.lists(st.integers(low, low + 40), min_size=1, max_size=9)),
    st.booleans(),
    st.integers(1, 7),
)
@example([0], True, 2)
@example([32], False, 1)
@example([0, 32], True, 1)
@example([0, 33], True, 1)
def test_what_is_looked_up_is_what_is_computed(raw: list[int], has_ignored: bool, weight: int) -> None:
    scores = np.array((raw + [IGNORED] * has_ignored) * 300)
    bounds = normalize_spread.bounds(scores)

    found = normalize_spread.weighted(scores, bounds, weight, np.int16)

    assert found.dtype == np.int16
    assert found.tolist() == (normalize_spread.apply(scores, bounds) * weight).tolist()


@given(st.lists(st.integers(0, 400), min_size=1, max_size=9), st.data())
def test_a_few_scores_are_turned_over_as_a_column_is(raw: list[int], data: st.DataObject) -> None:
    places = data.draw(st.lists(st.integers(0, len(raw) - 1), min_size=1, unique=True))

    few = reversed_few(raw, places)

    whole = normalize_spread(None, None, np.array([raw[place] for place in places]))
    assert [few[place] for place in places] == whole.tolist()
    assert all(few[place] == 0 for place in range(len(raw)) if place not in places)
