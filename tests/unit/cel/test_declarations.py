"""Functions and overloads: which one is called for which values."""

from __future__ import annotations

import pytest

from bayplan.cel.declarations import Function, Overload, function, matches, member, merge, overload
from bayplan.cel.errors import EvaluationError
from bayplan.cel.types import BOOL, DYN, INT, STRING, list_of, map_of
from bayplan.cel.values import Uint

DOUBLED = function(
    "doubled",
    overload("int", (INT,), INT, lambda number: number * 2),
    overload("text", (STRING,), STRING, lambda text: text + text),
)


def test_the_first_overload_that_accepts_the_values_is_called() -> None:
    call = DOUBLED.resolve(None)

    assert [call([2]), call(["a"])] == [4, "aa"]
    with pytest.raises(EvaluationError, match=r"no such overload: doubled\(bool\)"):
        call([True])


def test_an_overload_refuses_values_of_other_types() -> None:
    with pytest.raises(EvaluationError, match=r"no such overload: doubled\(string\)"):
        DOUBLED.resolve("int")(["a"])


def test_an_overload_without_guards_sees_all_values() -> None:
    open_one = Function("any", (Overload("any", (INT,), BOOL, lambda value: True, is_guarded=False),))

    assert open_one.resolve("any")(["a"]) is True


def test_one_implementation_serves_the_types_of_its_trait() -> None:
    counted = Function("count", (overload("count", (STRING,), INT),), len, frozenset({"string"}))

    assert counted.resolve(None)(["ab"]) == 2
    with pytest.raises(EvaluationError, match="no such overload: count"):
        counted.resolve(None)([1])


def test_libraries_add_overloads_to_one_name() -> None:
    merged = merge([DOUBLED, function("doubled", member("list", (list_of(INT),), list_of(INT), lambda each: each * 2))])

    assert merged["doubled"].resolve(None)([[1]]) == [1, 1]


def test_lists_and_maps_are_judged_by_their_first_entry() -> None:
    assert matches(list_of(INT), [1, "a"]) and matches(list_of(INT), []) and not matches(list_of(INT), ["a", 1])
    assert matches(map_of(STRING, INT), {"a": 1}) and not matches(map_of(STRING, INT), {1: 1})
    assert matches(DYN, None) and not matches(INT, Uint(1)) and not matches(INT, True)
