"""Names during an evaluation."""

from __future__ import annotations

from bayplan.cel.errors import EvaluationError
from bayplan.cel.scopes import Frame, Scope, Variables
from bayplan.cel.values import Accumulator, Value


def frame(initial: Value, started: list[str]) -> Frame:
    def start(outer: Scope) -> Value:
        started.append("now")
        return initial

    return Frame(Variables({"outer": 1, "x": 2}), "sum", ("x", None), start)


def test_the_accumulator_is_worked_out_when_it_is_first_read() -> None:
    started: list[str] = []
    tested = frame(5, started)

    assert started == []
    assert [tested.lookup("sum"), tested.lookup("sum")] == [5, 5]
    assert started == ["now"]


def test_loop_variables_hide_others_until_the_loop_is_done() -> None:
    tested = frame(0, [])
    tested.first = 7

    assert (tested.lookup("x"), tested.lookup("outer")) == (7, 1)
    tested.is_done = True
    assert tested.lookup("x") == 2


def test_lists_are_built_in_place_and_handed_out_as_ordinary_ones() -> None:
    tested = frame([], [])
    built = tested.lookup("sum")

    assert isinstance(built, Accumulator)
    assert tested.finish(built).__class__ is list


def test_a_name_that_nothing_has_is_an_error() -> None:
    assert isinstance(Variables({}).lookup("x"), EvaluationError)
