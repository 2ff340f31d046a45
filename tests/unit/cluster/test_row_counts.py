"""Counts by row and their sums by value: moving one pod at a time ends where counting anew would."""

from __future__ import annotations

import random

import numpy as np

from bayplan.cluster.row_counts import RowCounts


def _bins(values: list[int]) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    return np.array(values, dtype=np.intp)


def test_sums_follow_every_move() -> None:
    counts = RowCounts(4)
    counts.move(0, 2)
    bins = _bins([0, 1, 1, 2])
    sums = counts.by_domain(bins, 2).shown
    assert sums.tolist() == [2, 0, 0]

    counts.move(2, 1)
    counts.move(3, 5)

    assert counts.by_domain(bins, 2).shown is sums
    assert sums.tolist() == [2, 1, 0], "what lies in the last place does not count"


def test_sums_cannot_be_written_to_by_readers() -> None:
    sums = RowCounts(2).by_domain(_bins([0, 0]), 1).shown

    assert not sums.flags.writeable


def test_rows_beyond_a_known_assignment_are_left_to_the_next_one() -> None:
    counts = RowCounts(4)
    short = _bins([0, 0])
    assert counts.by_domain(short, 1).shown.tolist() == [0, 0]

    counts.move(3, 1)

    assert counts.by_domain(short, 1).shown.tolist() == [0, 0]
    assert counts.by_domain(_bins([0, 0, 0, 0]), 1).shown.tolist() == [1, 0]


def test_growing_keeps_the_counts() -> None:
    counts = RowCounts(2)
    counts.move(1, 3)
    counts.grow(4)

    assert counts.rows.tolist() == [0, 3, 0, 0]


def test_long_histories_end_where_counting_anew_would() -> None:
    rng = random.Random(3)
    counts = RowCounts(12)
    assignments = [_bins([rng.randrange(4) for _ in range(12)]) for _ in range(7)]
    for _ in range(800):
        row = rng.randrange(12)
        counts.move(row, -1 if counts.rows[row] and rng.random() < 0.4 else 1)
        bins = rng.choice(assignments)
        right = [int(counts.rows[bins == value].sum()) for value in range(3)] + [0]
        assert counts.by_domain(bins, 3).shown.tolist() == right
        assert counts.by_domain(bins, 3).total == sum(right)
