"""Equality, order, sizes and spellings of values."""

from __future__ import annotations

import math

import pytest

from bayplan.cel.errors import EvaluationError
from bayplan.cel.library.semver import parse_semver
from bayplan.cel.types import INT
from bayplan.cel.values import (
    DefaultMap,
    Optional,
    TypeValue,
    Uint,
    compare,
    contains,
    equal,
    find,
    show,
    show_double,
    size,
    type_name,
)


def test_numbers_are_equal_across_types_and_to_nothing_else() -> None:
    assert equal(1, Uint(1)) and equal(1, 1.0) and equal(Uint(2), 2.0)
    assert not equal(1, True) and not equal(1, "1") and not equal(math.nan, math.nan) and not equal(1, math.nan)


def test_lists_and_maps_are_compared_by_their_entries() -> None:
    assert equal([1, [2]], [1.0, [Uint(2)]]) and not equal([1], [1, 2])
    assert equal({"a": 1, "b": 2}, {"b": 2, "a": 1}) and not equal({"a": 1}, {"b": 1}) and not equal({"a": 1}, [1])


def test_null_is_equal_to_null_alone() -> None:
    assert equal(None, None) and not equal(None, 0) and not equal("", None)


def test_elements_that_cannot_be_compared_do_not_make_lists_unequal() -> None:
    assert equal([parse_semver("1.0.0")], ["a"])
    with pytest.raises(EvaluationError, match="no such overload"):
        equal(parse_semver("1.0.0"), "a")


def test_values_of_one_type_have_an_order() -> None:
    assert compare("a", "b") == -1 and compare(b"b", b"a") == 1 and compare(True, True) == 0
    assert compare(1, 1.5) == -1 and compare(Uint(3), 2) == 1
    with pytest.raises(EvaluationError, match="NaN values cannot be ordered"):
        compare(math.nan, 1.0)
    with pytest.raises(EvaluationError, match="no such overload"):
        compare(1, "a")


def test_keys_find_equal_numbers_and_never_booleans() -> None:
    assert find({1: "a"}, 1.0) == (True, "a") and find({1: "a"}, Uint(1)) == (True, "a")
    assert find({1: "a"}, True) == (False, None) and find({True: "a"}, 1) == (False, None)
    assert find({"a": 1}, b"a") == (False, None)


def test_in_looks_at_elements_and_keys() -> None:
    assert contains([1, 2], 2.0) and not contains([1], "a") and contains({"a": 1}, "a")
    assert not contains(DefaultMap(), "a")
    with pytest.raises(EvaluationError):
        contains("abc", "a")


def test_optional_values_are_compared_by_content() -> None:
    assert equal(Optional(1), Optional(1)) and not equal(Optional(1), Optional.NONE) and not equal(Optional(1), 1)
    with pytest.raises(EvaluationError, match=r"optional.none\(\) dereference"):
        Optional.NONE.get()


def test_sizes_and_names_of_types() -> None:
    assert [size(value) for value in ("äb", b"abc", [1], {"a": 1}, 1)] == [2, 3, 1, 1, None]
    assert [type_name(value) for value in (True, 1, Uint(1), 1.0, None, {}, TypeValue(INT))] == (
        ["bool", "int", "uint", "double", "null_type", "map", "type"]
    )


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (1.0, "1"),
        (100000.0, "100000"),
        (1000000.0, "1e+06"),
        (123456789.0, "1.23456789e+08"),
        (0.0001, "0.0001"),
        (0.00001, "1e-05"),
        (-0.0, "-0"),
        (-1.5, "-1.5"),
        (math.inf, "+Inf"),
        (-math.inf, "-Inf"),
        (math.nan, "NaN"),
    ],
)
def test_doubles_are_spelled_as_short_as_possible(number: float, expected: str) -> None:
    assert show_double(number) == expected


def test_values_are_shown_in_messages() -> None:
    assert show([1, "a", {"b": True}, None, b"ab", 1.5]) == "[1, a, {b: true}, NULL_VALUE, [97 98], 1.5]"
