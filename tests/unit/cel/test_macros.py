"""Macros: what they stand for, and which arguments they refuse."""

from __future__ import annotations

import pytest
from tests.unit.cel.evaluation import ENVIRONMENT, error, value

from bayplan.cel import CompileError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[1, 2].all(x, x > 0)", True),
        ("[1, 2].exists(x, x > 1)", True),
        ("[1, 2, 2].exists_one(x, x == 2)", False),
        ("[1, 2].existsOne(x, x == 2)", True),
        ("[1, 2].map(x, x * 2)", [2, 4]),
        ("[1, 2, 3].map(x, x > 1, x * 2)", [4, 6]),
        ("[1, 2, 3].filter(x, x != 2)", [1, 3]),
        ("{'a': 1}.map(k, k)", ["a"]),
        ("has({'a': 1}.a) && !has({'a': 1}.b)", True),
        ("['a', 'b'].all(i, v, v == ['a', 'b'][i])", True),
        ("{'a': 1}.exists(k, v, k == 'a' && v == 1)", True),
        ("[1, 1].existsOne(i, v, i == v)", True),
        ("[5, 6].transformList(i, v, i + v)", [5, 7]),
        ("[5, 6].transformList(i, v, i > 0, v)", [6]),
        ("{'a': 1}.transformMap(k, v, v + 1)", {"a": 2}),
        ("{'a': 1, 'b': 2}.transformMap(k, v, v > 1, v)", {"b": 2}),
        ("['x'].transformMapEntry(i, v, {v: i})", {"x": 0}),
        ("cel.bind(x, 1 + 1, x * x)", 4),
        ("optional.of(1).optMap(x, x + 1).value()", 2),
        ("optional.of(1).optFlatMap(x, optional.none()).hasValue()", False),
        ("[3, 1, 2].sortBy(x, -x)", [3, 2, 1]),
    ],
)
def test_macros_have_values(text: str, expected: object) -> None:
    assert value(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[1].map(1, 2)", "argument is not an identifier"),
        ("[1].all(x.y, true)", "argument must be a simple name"),
        ("[1].all(x, x, true)", "duplicate variable name: x"),
        ("[1].all(__result__, true)", "iteration variable overwrites accumulator variable"),
        ("cel.bind(1, 2, 3)", "cel.bind() variable names must be simple identifiers"),
        ("optional.of(1).optMap(1, 2)", "optMap() variable name must be a simple identifier"),
        ("'a'.sortBy(x, x)", "sortBy can only be applied to a list"),
        ("has(1)", "invalid argument to has() macro"),
    ],
)
def test_macros_refuse_other_arguments(text: str, expected: str) -> None:
    with pytest.raises(CompileError) as raised:
        ENVIRONMENT.compile(text)
    assert expected in str(raised.value)


def test_a_macro_that_was_refused_stands_where_its_problem_is() -> None:
    with pytest.raises(CompileError) as raised:
        ENVIRONMENT.compile("(1.sortBy(x, 2)).sortBy(x, 3)")
    assert str(raised.value).count("ERROR: <input>:1:2: sortBy can only be applied to a list") == 2


def test_bind_of_another_name_is_a_call() -> None:
    with pytest.raises(CompileError, match="undeclared reference to 'bind'"):
        ENVIRONMENT.compile("a.bind(x, 1, x)")


def test_quantifiers_absorb_errors_as_their_operators_do() -> None:
    assert value("[0, 1].exists(x, 1 / x == 1)") is True
    assert value("[0, 2].all(x, 1 / x == 1)") is False
    assert error("[0, 1].all(x, 1 / x == 1)") == "division by zero"
    assert error("[1, 0].map(x, 1 / x)") == "division by zero"


def test_a_key_is_inserted_once() -> None:
    assert error("[1, 2].transformMapEntry(i, v, {'a': v})") == "insert failed: key a already exists"
