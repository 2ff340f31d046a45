"""Exact evaluation: errors as values, and what every step costs. The numbers are those of Kubernetes' evaluation."""

from __future__ import annotations

import pytest
from tests.unit.cel.evaluation import cost, error, value

from bayplan.cel import Environment
from bayplan.cel.library import KUBERNETES
from bayplan.cel.types import DYN, INT, STRING, list_of, map_of


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 in [1, 2]", 0),
        ("[1, 2, 3].exists(x, x > 2)", 19),
        ("quantity('1k') == quantity('1000')", 3),
        ("optional.of(1).orValue(2)", 1),
        ("cel.bind(x, 1, x + x)", 3),
        ("'%s %d'.format(['a', 1])", 1),
        ("{'a': 1}.b", 2),
        ("string(1.5)", 0),
        ("[a]", 11),
        ("{'x': a}", 31),
        ("[1, 2].map(x, x / 0)", 29),
        ("has({'a': 1}.a)", 1),
        ("true ? a : 1", 0),
        ("sets.contains([1, 2], [1])", 3),
        ("lists.range(5)", 16),
        ("[3, 1].sort()", 19),
        ("['b', 'a'].sort()", 19),
        ("'abc'.matches('b')", 1),
        ("ip('::1') == ip('::1')", 3),
        ("ip('::1') != ip('::1')", 4),
        ("cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16')", 6),
        ("'a'.replace('a', 'b')", 1),
        ("dyn('a') < 'b'", 1),
        ("[[1], [2]].flatten()", 13),
        ("{'a': 1}.?b", 1),
        ("{'a': 1}.?a", 2),
        ("[1, 2].max()", 2),
    ],
)
def test_steps_cost_what_they_cost_in_kubernetes(text: str, expected: int) -> None:
    assert cost(text, a=1) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 / 0 == 1 || true", True),
        ("false && 1 / 0 == 1", False),
        ("1 / 0 == 1 && false", False),
        ("[1, 2][dyn(1.0)]", 2),
        ("{1: 'a'}[dyn(1u)]", "a"),
        ("[optional.of(1)][0].value()", 1),
        ("[?optional.none(), ?optional.of(2)]", [2]),
        ("{?'a': optional.none(), 'b': 1}", {"b": 1}),
        ("{'a': {'b': 1}}.?a.?b.orValue(0)", 1),
        ("{'a': {'b': 1}}.?x.?y.hasValue()", False),
        ("dyn(1) == 1u", True),
        ("[1] + [2] + []", [1, 2]),
        ("a.x[0]", 7),
    ],
)
def test_values(text: str, expected: object) -> None:
    assert value(text, a={"x": [7]}) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 / 0 == 1 || 2 % 0 == 1", "division by zero"),
        ("a.missing", "no such key: missing"),
        ("[1][5]", "index out of bounds: 5"),
        ("[1][dyn('x')]", "unsupported index type 'string' in list"),
        ("[1][dyn(0.5)]", "unsupported index value 0.5 in list"),
        ("dyn(1).all(x, true)", "got 'types.Int', expected iterable type"),
        ("dyn(1).all(x, y, true)", "unsupported comprehension range type: types.Int"),
        ("a ? 1 : 2", "no such overload"),
        ("a && true", "no such overload"),
        ("[?dyn(1)]", "cannot initialize optional list element from non-optional value 1"),
        ("[?dyn(null)]", "cannot initialize optional list element from non-optional value 0"),
        ("{?'k': dyn(null)}", "cannot initialize optional entry 'k' from non-optional value 0"),
        ("{?'k': dyn(1)}", "cannot initialize optional entry 'k' from non-optional value 1"),
        ("{dyn([1]): 1}", "unsupported key type: *types.baseList"),
        ("dyn(1).charAt(2)", "no such overload: charAt(int, int)"),
        ("dyn(true) + 1", "no such overload: _+_"),
        ("dyn('a') - 1", "no such overload"),
        ("{'a': 1}[dyn([1])]", "invalid qualifier type: *types.baseList"),
    ],
)
def test_errors(text: str, expected: str) -> None:
    if "invalid qualifier" in expected:
        text = "{'a': 1}[a.list]"
    assert error(text, a={"list": [1]}) == expected


def test_an_evaluation_stops_at_its_limit() -> None:
    environment = Environment({"many": list_of(INT)}, KUBERNETES, cost_limit=100)

    evaluation = environment.compile("many.all(x, x >= 0)").evaluate(many=list(range(1000)))

    assert str(evaluation.error) == "operation cancelled: actual cost limit exceeded"
    assert evaluation.cost == 101


def test_a_variable_that_was_not_given_is_an_error() -> None:
    environment = Environment({"here": DYN, "labels": map_of(STRING, STRING)})

    assert str(environment.compile("here").evaluate().error) == "no such attribute(s): here"
