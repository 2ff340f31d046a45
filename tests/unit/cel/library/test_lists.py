"""List functions."""

from __future__ import annotations

import pytest
from tests.unit.cel.evaluation import error, value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[1, 2, 2].isSorted() && !['b', 'a'].isSorted()", True),
        ("[1, 2].sum() + [3, 1, 2].max() + [3, 1, 2].min()", 7),
        ("[1.5, 2.5].sum() == 4.0 && [duration('1s'), duration('2s')].sum() == duration('3s')", True),
        ("[1, 2, 1].indexOf(1) + [1, 2, 1].lastIndexOf(1) + [1].indexOf(9)", 1),
        ("[1, 2, 3, 4].slice(1, 3)", [2, 3]),
        ("[[1, 2], [3]].flatten()", [1, 2, 3]),
        ("[dyn([1, 2]), dyn(3), dyn([[4]])].flatten(2)", [1, 2, 3, 4]),
        ("['b', 'a', 'c'].sort()", ["a", "b", "c"]),
        ("[1, 2].reverse() + [1, 1, 2].distinct()", [2, 1, 1, 2]),
        ("lists.range(3) + lists.range(-1)", [0, 1, 2]),
        ("[].sort() == []", True),
    ],
)
def test_values(text: str, expected: object) -> None:
    assert value(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("dyn([]).max()", "max called on empty list"),
        ("[1].slice(0, 2)", "cannot slice(0, 2), list is length 1"),
        ("[1].slice(1, 0)", "cannot slice(1, 0), start index must be less than or equal to end index"),
        ("[1].slice(-1, 0)", "cannot slice(-1, 0), negative indexes not supported"),
        ("[dyn(1), dyn('a')].sort()", "list elements must have the same type"),
        ("[dyn([1])].sort()", "list elements must be comparable"),
        ("[[1]].flatten(-1)", "level must be non-negative"),
        ("lists.range(9000000000)", "operation cancelled: actual cost limit exceeded"),
        ("[9223372036854775807, 1].sum()", "integer overflow"),
    ],
)
def test_errors(text: str, expected: str) -> None:
    assert error(text) == expected
