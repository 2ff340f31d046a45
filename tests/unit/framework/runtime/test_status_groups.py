"""The distinct numbers of a column, as a sort would find them."""

from __future__ import annotations

import numpy as np
import pytest

from bayplan.framework.runtime.status_groups import distinct


@pytest.mark.parametrize("numbers", [[], [0, 0], [3, 0, 3], [-2, 5, 0, 5, -2, 7], list(range(-20, 20)), [9] * 50])
def test_every_number_but_zero_is_found_once(numbers: list[int]) -> None:
    found = distinct(np.array(numbers, dtype=np.int32))

    assert sorted(found) == sorted(set(numbers) - {0})
