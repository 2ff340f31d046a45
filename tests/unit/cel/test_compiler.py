"""Python made from expressions: the same values as exact evaluation, and a way out for everything unusual."""

from __future__ import annotations

import pytest

from bayplan.cel import Environment, EvaluationError
from bayplan.cel.compiler import Unsupported, compile_to_python
from bayplan.cel.library import KUBERNETES
from bayplan.cel.types import BOOL, DYN, STRING, map_of
from bayplan.cel.values import Value

VARIABLES = {"labels": map_of(STRING, STRING), "d": DYN, "flag": BOOL}
ENVIRONMENT = Environment(VARIABLES, KUBERNETES)


def run(text: str, labels: Value = None, d: Value = None, flag: Value = None) -> Value:
    return compile_to_python(ENVIRONMENT.check(text), VARIABLES, ENVIRONMENT.functions)(labels, d, flag)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("labels.zone == 'a' && labels['zone'] != 'b'", True),
        ("flag ? d : 'x'", "x"),
        ("d > 1 || flag", True),
        ("[1, 2, 3].exists(x, x == d)", True),
        ("labels.all(k, v, k == 'zone' && v == 'a')", True),
        ("cel.bind(z, labels.zone, z + z)", "aa"),
        ("has(labels.zone) && !has(labels.other)", True),
        ("{'a': d}.a in [2, 3]", True),
        ("size(labels) == 1 && 'a'.startsWith(labels.zone)", True),
        ("quantity('1Ki').isLessThan(quantity('1Mi'))", True),
        ("int == type(d)", True),
        ("labels[?'zone'].orValue('') + labels.?other.orValue('b') + labels[?'x'].or(labels.?zone).value()", "aba"),
        ("[1, 2, 3].filter(x, x > 1).map(x, x * d)", [4, 6]),
        ("labels.transformMap(k, v, v + k)", {"zone": "azone"}),
    ],
)
def test_values_are_found(text: str, expected: object) -> None:
    assert run(text, {"zone": "a"}, 2, False) == expected


@pytest.mark.parametrize("text", ["labels.other == 'a'", "d && true", "d.x == 1", "d + 'a' == 'b'", "(d == 1) || d"])
def test_what_is_unusual_is_left_to_exact_evaluation(text: str) -> None:
    with pytest.raises(EvaluationError):
        run(text, {}, 2, True)


@pytest.mark.parametrize(
    "text", ["{?'a': optional.none()}", "[?optional.of(1)]", "has(d.?zone.x)", "int(d) == int('x')"]
)
def test_some_expressions_are_always_evaluated_exactly(text: str) -> None:
    with pytest.raises(Unsupported):
        run(text)


def test_nonsense_about_constants_warns_nobody(capsys: pytest.CaptureFixture[str]) -> None:
    for text in ("dyn(null)[0] == 1", "dyn(null).a == 1", "dyn(1)[0] == 1"):
        assert ENVIRONMENT.compile(text).evaluate(labels={}, d=None, flag=True).error is not None

    assert capsys.readouterr().err == ""


def test_a_loop_that_runs_too_long_is_left_to_exact_evaluation() -> None:
    with pytest.raises(EvaluationError):
        run("d.all(x, x >= 0)", None, list(range(200_000)), None)


def test_both_ways_agree_where_errors_are_absorbed() -> None:
    program = ENVIRONMENT.compile("labels.other == 'a' || flag")

    assert program.value(labels={}, d=None, flag=True) is True
    assert program.evaluate(labels={}, d=None, flag=True).value is True
