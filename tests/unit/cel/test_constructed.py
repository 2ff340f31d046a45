"""Objects that expressions make: `Name{field: value}`."""

from __future__ import annotations

import pytest

from bayplan.cel import CompileError, Environment
from bayplan.cel.declarations import Constructor
from bayplan.cel.library import KUBERNETES
from bayplan.cel.types import DYN, INT, object_type
from bayplan.cel.values import Constructed, Value


def constructor(name: str) -> Constructor | None:
    """`Point` has two fields, `Free` any."""
    return {
        "Point": Constructor(object_type("Point"), {"x": INT, "y": INT}),
        "Free": Constructor(object_type("Free")),
    }.get(name)


ENVIRONMENT = Environment({"given": DYN}, KUBERNETES, constructor=constructor)


def evaluate(text: str, given: Value = None) -> Value:
    evaluation = ENVIRONMENT.compile(text).evaluate(given=given)
    assert evaluation.error is None, evaluation.error
    return evaluation.value


def test_an_object_has_its_type_and_fields() -> None:
    made = evaluate("Point{x: 1 + 1}")

    assert isinstance(made, Constructed)
    assert (made.made.name, made.fields) == ("Point", {"x": 2})
    assert str(made) == "Point{x: 2}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Point{x: 1} == Point{x: 1}", True),
        ("Point{x: 1} == Point{x: 2}", False),
        ("Point{x: 1} == Point{x: 1, y: 0}", False),
        ("Free{x: 1} == dyn(Point{x: 1})", False),
        ("[Free{a: [Free{b: 'c'}]}, Free{}][0] == Free{a: [Free{b: 'c'}]}", True),
        ("Free{?a: given.?a} == Free{}", True),
        ("Free{?a: given.?b} == Free{a: 1}", True),
    ],
)
def test_objects_are_compared_by_type_and_fields(text: str, expected: bool) -> None:
    assert evaluate(text, {"b": 1}) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Nothing{a: 1}", "undeclared reference to 'Nothing'"),
        ("Point{z: 1}", "undefined field 'z'"),
        ("Point{x: 'one'}", "expected type of field 'x' is 'int' but provided type is 'string'"),
        ("Point{?x: 1}", "expected type 'optional_type(int)' but found 'int'"),
    ],
)
def test_what_is_wrong_is_said_when_it_is_compiled(text: str, expected: str) -> None:
    with pytest.raises(CompileError) as caught:
        ENVIRONMENT.compile(text)
    assert expected in str(caught.value)


def test_an_object_costs_forty_and_its_fields() -> None:
    program = ENVIRONMENT.compile("Point{x: given, y: 2}")
    evaluation = program.evaluate(given=1)

    assert (evaluation.cost, program.max_cost) == (41, 41)


def test_an_error_in_a_field_is_the_answer() -> None:
    evaluation = ENVIRONMENT.compile("Free{a: given.nothing}").evaluate(given={})

    assert str(evaluation.error) == "no such key: nothing"
