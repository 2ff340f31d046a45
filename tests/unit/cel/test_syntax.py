"""Parts of expressions: copies, names with dots, and what is read of a variable."""

from __future__ import annotations

import pytest
from tests.unit.cel.evaluation import ENVIRONMENT

from bayplan.cel.syntax import Call, copy, descendants, paths_read, qualified_name


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a.x == 1 && a.y.z == 2", {("x",), ("y", "z")}),
        ("has(a.x) && a.?y.hasValue()", {("x",), ("y",)}),
        ("[1].all(i, a.x == i)", {("x",)}),
        ("a.x['k'] == a.x[?'l'].orValue(0) && 'm' in a.x", {("x", "k"), ("x", "l"), ("x", "m")}),
        ("a.x[a.y] == 1", {("x",), ("y",)}),
        ("1 == 1", set()),
        ("a == 1", {()}),
        ("cel.bind(b, a, b.x == 1)", {()}),
    ],
)
def test_what_is_read_of_a_variable_is_known(text: str, expected: set[tuple[str, ...]]) -> None:
    assert paths_read(ENVIRONMENT.check(text), "a") == expected


def test_a_copy_shares_no_part() -> None:
    original = ENVIRONMENT.check("[1].map(x, {'k': has(a.d)})")

    twin = copy(original)

    assert not {id(part) for part in descendants(original)} & {id(part) for part in descendants(twin)}
    assert len(list(descendants(original))) == len(list(descendants(twin)))


def test_names_with_dots_are_selections_of_names() -> None:
    part = ENVIRONMENT.check("a.b.c == 1")
    assert isinstance(part, Call)

    assert qualified_name(part.arguments[0]) == "a.b.c"
    assert qualified_name(part.arguments[1]) is None
