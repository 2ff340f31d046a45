"""Rows that lead are the same whether they were kept or are looked for."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bayplan.framework.runtime.remembered.leading_rows import LeadingRows, best_of


@given(
    totals=st.lists(st.integers(0, 3), min_size=1, max_size=12),
    changes=st.lists(st.tuples(st.integers(0, 11), st.integers(-1, 4)), max_size=30),
)
def test_rows_that_are_kept_are_those_that_would_be_found(totals: list[int], changes: list[tuple[int, int]]) -> None:
    column, leading = np.array(totals, dtype=np.int16), LeadingRows()
    for number, now in changes:
        row = number % len(totals)
        was, column[row] = column.item(row), now
        leading.move(row, was, now)
        total, rows = leading.among(column)

        assert (total, rows.tolist()) == (best_of(column)[0], best_of(column)[1].tolist())


def test_rows_are_looked_for_again_after_changes_of_many() -> None:
    column, leading = np.array([1, 2, 2], dtype=np.int16), LeadingRows()
    assert leading.among(column)[1].tolist() == [1, 2]
    column[:] = [5, 5, 0]
    leading.forget()

    assert leading.among(column)[0] == 5
    assert leading.among(column)[1].tolist() == [0, 1]
