"""Types of expressions."""

from __future__ import annotations

import pytest

from bayplan.cel import CompileError, Environment
from bayplan.cel.library import KUBERNETES
from bayplan.cel.types import DYN, INT, STRING, list_of, map_of, object_type

THING = object_type("test.Thing")
ENVIRONMENT = Environment(
    {"thing": THING, "d": DYN, "labels": map_of(STRING, STRING), "a.b": INT},
    KUBERNETES,
    fields={"test.Thing": {"name": STRING, "sizes": list_of(INT)}},
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + 2", "int"),
        ("d + 1", "int"),
        ("d", "dyn"),
        ("thing.name", "string"),
        ("thing.sizes.map(x, string(x))", "list(string)"),
        ("labels.?zone", "optional_type(string)"),
        ("labels.?zone.orValue('x')", "string"),
        ("[]", "list(dyn)"),
        ("{}", "map(dyn, dyn)"),
        ("[[]] + [[1]]", "list(list(int))"),
        ("true ? 1 : d", "dyn"),
        ("type(1)", "type(int)"),
        ("int", "type(int)"),
        ("a.b", "int"),
        ("[1].transformMap(i, v, v)", "map(int, int)"),
        ("quantity('1').add(1)", "kubernetes.Quantity"),
        ("optional.none().or(optional.of(1))", "optional_type(int)"),
    ],
)
def test_every_expression_has_a_type(text: str, expected: str) -> None:
    assert str(ENVIRONMENT.compile(text).result_type) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + 'a'", "found no matching overload for '_+_' applied to '(int, string)'"),
        ("thing.nope", "undefined field 'nope'"),
        ("nope", "undeclared reference to 'nope' (in container '')"),
        ("nope(1)", "undeclared reference to 'nope' (in container '')"),
        ("1.nope()", "undeclared reference to 'nope'"),
        ("'a'.size(1)", "found no matching overload for 'size' applied to 'string.(int)'"),
        ("1 && true", "expected type 'bool' but found 'int'"),
        ("(1).x", "type 'int' does not support field selection"),
        ("(1).all(x, true)", "expression of type 'int' cannot be range of a comprehension"),
        ("[1, 'a']", "expected type 'int' but found 'string'"),
        ("Thing{name: 'a'}", "undeclared reference to 'Thing'"),
        ("[?1]", "expected type 'optional_type(int)' but found 'int'"),
        ("[1].map(x, x.y)", "type 'int' does not support field selection"),
    ],
)
def test_wrong_types_are_reported(text: str, expected: str) -> None:
    with pytest.raises(CompileError) as raised:
        ENVIRONMENT.compile(text)
    assert expected in str(raised.value)


def test_all_problems_are_reported_at_once() -> None:
    with pytest.raises(CompileError) as raised:
        ENVIRONMENT.compile("nope + other")
    assert [issue.offset for issue in raised.value.issues] == [0, 7]
