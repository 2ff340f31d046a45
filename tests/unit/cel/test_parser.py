"""From text to parts."""

from __future__ import annotations

import pytest

from bayplan.cel import CompileError, Environment
from bayplan.cel.errors import Issue
from bayplan.cel.macros import STANDARD_MACROS
from bayplan.cel.parser import LONGEST, parse
from bayplan.cel.syntax import Call, Expression, Ident, ListLiteral, Literal, MapLiteral, Select
from bayplan.cel.types import DYN


def shape(part: Expression | None) -> str:
    """The expression with all brackets."""
    match part:
        case Literal():
            return repr(part.value)
        case Ident():
            return part.name
        case Select():
            return f"{shape(part.operand)}.{part.name}"
        case Call():
            inside = ", ".join(map(shape, part.arguments))
            return (
                f"{part.function}({inside})"
                if part.target is None
                else f"{shape(part.target)}.{part.function}({inside})"
            )
        case ListLiteral():
            return f"[{', '.join(map(shape, part.elements))}]"
        case MapLiteral():
            return "{" + ", ".join(f"{shape(entry.key)}: {shape(entry.value)}" for entry in part.entries) + "}"
    return type(part).__name__


def parsed(text: str) -> str:
    issues: list[Issue] = []
    part = parse(text, {}, issues)
    assert issues == []
    return shape(part)


def problems(text: str) -> list[str]:
    issues: list[Issue] = []
    assert parse(text, STANDARD_MACROS, issues) is None
    return [issue.message for issue in issues]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + 2 * 3", "_+_(1, _*_(2, 3))"),
        ("1 - 2 - 3", "_-_(_-_(1, 2), 3)"),
        ("a || b && c", "_||_(a, _&&_(b, c))"),
        ("a && b && c && d", "_&&_(_&&_(a, b), _&&_(c, d))"),
        ("a ? b : c ? d : e", "_?_:_(a, b, _?_:_(c, d, e))"),
        ("!a.b", "!_(a.b)"),
        ("!!a", "a"),
        ("- -1", "1"),
        ("-1", "-1"),
        ("-a", "-_(a)"),
        ("a.b(c)[1]", "_[_](a.b(c), 1)"),
        ("a.?b[?c]", "_[?_](_?._(a, 'b'), c)"),
        ("1 in [1, 2,]", "@in(1, [1, 2])"),
        ("{'a': 1, 'b': 2}", "{'a': 1, 'b': 2}"),
        ("a == b != c", "_!=_(_==_(a, b), c)"),
        (".a", ".a"),
        ("-9223372036854775808", "-9223372036854775808"),
    ],
)
def test_operators_bind_as_the_grammar_says(text: str, expected: str) -> None:
    assert parsed(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 +", "Syntax error: mismatched input '<EOF>' expecting {"),
        ("(1", "Syntax error: mismatched input '<EOF>' expecting ')'"),
        ("!-", "Syntax error: mismatched input '<EOF>' expecting {NUM_FLOAT, NUM_INT}"),
        ("!-x", "Syntax error: mismatched input 'x' expecting {NUM_FLOAT, NUM_INT}"),
        (".false", "Syntax error: mismatched input 'false' expecting IDENTIFIER"),
        (".in", "Syntax error: mismatched input 'in' expecting IDENTIFIER"),
        ("a b", "Syntax error: extraneous input 'b' expecting <EOF>"),
        ("9223372036854775808", "invalid int literal"),
        ("18446744073709551616u", "invalid uint literal"),
        ("1e999", "invalid double literal"),
        ("while", "reserved identifier: while"),
        ("[1].all(1, true)", "argument must be a simple name"),
        ("has(a)", "invalid argument to has() macro"),
        (r"'\ud800'", "invalid unicode code point"),
    ],
)
def test_problems_are_reported(text: str, expected: str) -> None:
    assert problems(text)[0].startswith(expected)


def test_nesting_is_bounded() -> None:
    for text in ("(" * 300 + "1" + ")" * 300, "-" + "[" * 5000, "a" + ".b" * 300, "1" + " + 1" * 300):
        with pytest.raises(CompileError, match="expression recursion limit exceeded: 250"):
            Environment({"a": DYN}).compile(text)


def test_length_is_bounded() -> None:
    assert problems("a" * (LONGEST + 1)) == [
        f"expression code point size exceeds limit: size: {LONGEST + 1}, limit {LONGEST}"
    ]
