"""Regular expressions: RE2's syntax, and linear time."""

from __future__ import annotations

import pytest
from tests.unit.cel.evaluation import error, value

from bayplan.cel.library.regular_expressions import PatternProblem, compiled


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("'abc'.matches('b') && !'abc'.matches('^b') && matches('abc', 'c$')", True),
        ("'a1b22'.find('[0-9]+') + 'x'.find('[0-9]')", "1"),
        ("'a1b22'.findAll('[0-9]+')", ["1", "22"]),
        ("'a1b22'.findAll('[0-9]', 2)", ["1", "2"]),
        ("'b'.findAll('b?')", ["b"]),
        ("'日本'.matches('^\\\\p{Han}+$')", True),
    ],
)
def test_values(text: str, expected: object) -> None:
    assert value(text) == expected


def test_patterns_cannot_run_away() -> None:
    assert value("a.matches('^(a+)+$')", a="a" * 100_000 + "b") is False


def test_what_re2_does_not_have_is_refused() -> None:
    for pattern in ("(", r"(a)\1", "a(?=b)"):
        with pytest.raises(PatternProblem):
            compiled(pattern)
    assert error("'a'.find(a)", a="(") == "Illegal regex: error parsing regexp: missing closing ): `(`"
    assert error("dyn(1).findAll('a')") == "no such overload"
