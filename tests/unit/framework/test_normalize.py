"""Normalisers, with the integer arithmetic of Go."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.framework.normalize import Normalizer, normalize_highest, normalize_lowest, normalize_range, stretched

READY = [normalize_highest, normalize_lowest, normalize_range]


def normalized(normalizer: Normalizer, raw: list[int]) -> list[int]:
    scores: list[int] = normalizer(None, None, np.array(raw, dtype=np.int64)).tolist()
    return scores


@pytest.mark.parametrize(
    ("raw", "expected"), [([0, 0], [0, 0]), ([1, 5, 10], [10, 50, 100]), ([1, 3], [33, 100]), ([-1, 2], [-50, 100])]
)
def test_the_largest_becomes_100_and_the_others_in_proportion(raw: list[int], expected: list[int]) -> None:
    assert normalized(normalize_highest, raw) == expected


@pytest.mark.parametrize(("raw", "expected"), [([0, 0], [100, 100]), ([0, 1, 3], [100, 67, 0]), ([2, 2], [0, 0])])
def test_the_largest_becomes_0_and_zero_100(raw: list[int], expected: list[int]) -> None:
    """Vector A11."""
    assert normalized(normalize_lowest, raw) == expected


@pytest.mark.parametrize(
    ("raw", "expected"), [([0, 5, 7], [0, 71, 100]), ([-3, 0, 0], [0, 100, 100]), ([4, 4], [0, 0]), ([-7, -7], [0, 0])]
)
def test_the_range_is_stretched_to_0_and_100(raw: list[int], expected: list[int]) -> None:
    """Vector A12."""
    assert normalized(normalize_range, raw) == expected


@pytest.mark.parametrize("normalizer", READY)
def test_no_scores_stay_no_scores(normalizer: Normalizer) -> None:
    assert normalized(normalizer, []) == []


@pytest.mark.parametrize("normalizer", READY)
@given(raw=st.lists(st.integers(0, 10**9), min_size=1, max_size=20))
def test_one_row_is_normalised_as_the_whole_column_is(normalizer: Normalizer, raw: list[int]) -> None:
    scores = np.array(raw, dtype=np.int64)
    bounds = normalizer.bounds(scores)
    whole = normalized(normalizer, raw)

    assert [normalizer.apply_one(score, bounds) for score in raw] == whole
    assert all(0 <= score <= 100 for score in whole)


@pytest.mark.parametrize("normalizer", READY)
@pytest.mark.parametrize("highest", [0, 3, 255, 256, 257, 10**6])
def test_a_weighted_column_is_the_column_times_the_weight(normalizer: Normalizer, highest: int) -> None:
    """Few steps between thousands of scores are looked up, and everything else is divided."""
    lowest = -highest // 2 if normalizer.takes_negative else 0
    scores = np.resize(np.linspace(lowest, highest, 700).astype(np.int64), 1000)
    bounds = normalizer.bounds(scores)

    weighted = normalizer.weighted(scores, bounds, 3, np.int16)

    assert weighted.dtype == np.int16
    assert weighted.tolist() == (normalizer.apply(scores, bounds) * 3).tolist()


@given(raw=st.lists(st.integers(-(10**6), 10**6), min_size=1, max_size=20), data=st.data())
def test_a_few_scores_are_stretched_as_a_column_is(raw: list[int], data: st.DataObject) -> None:
    places = sorted(data.draw(st.sets(st.integers(0, len(raw) - 1), min_size=1)))
    expected = dict(zip(places, normalized(normalize_range, [raw[place] for place in places]), strict=True))

    assert stretched(raw, places) == [expected.get(place, 0) for place in range(len(raw))]
