"""The distinct numbers of a column, as a sort would find them."""

from __future__ import annotations

import numpy as np
import pytest

from bayplan.framework.runtime.status_groups import distinct


@pytest.mark.parametrize("numbers", [[], [0, 0], [3, 0, 3], [-2, 5, 0, 5, -2, 7], list(range(-20, 20)), [9] * 50])
def test_every_number_but_zero_is_found_once(numbers: list[int]) -> None:
    found = distinct(np.array(numbers, dtype=np.int32))

    assert sorted(found) == sorted(set(numbers) - {0})


@pytest.mark.parametrize("numbers", [[3, 0, -1, 3, 7], list(range(-20, 20))])
def test_long_columns_give_the_numbers_in_the_order_of_short_ones(numbers: list[int]) -> None:
    column = np.array(numbers, dtype=np.int32)

    assert distinct(np.concatenate([column] * 100)) == distinct(column)
