"""Words of expressions."""

from __future__ import annotations

import pytest

from bayplan.cel.errors import Issue
from bayplan.cel.tokens import LiteralProblem, TokenKind, tokenize, unescape


def kinds(text: str) -> list[str]:
    return [token.kind.name for token in tokenize(text, [])]


def test_words_are_told_apart() -> None:
    assert kinds("a 1 2u 1.5 .5 1e3 0x1F 'x' b'y' && // rest") == (
        ["NAME", "INT", "UINT", "FLOAT", "FLOAT", "FLOAT", "INT", "STRING", "BYTES", "SIGN", "END"]
    )


def test_places_are_offsets_of_characters() -> None:
    assert [token.offset for token in tokenize("'日' + b", [])] == [0, 4, 6, 7]


def test_what_is_no_word_is_reported() -> None:
    issues: list[Issue] = []

    tokens = list(tokenize("a # b", issues))

    assert [token.kind for token in tokens] == [TokenKind.NAME, TokenKind.NAME, TokenKind.END]
    assert issues == [Issue(2, "Syntax error: token recognition error at: '#'")]


@pytest.mark.parametrize(
    ("literal", "expected"),
    [
        (r"'a\n\t\x41\u00e9\101'", "a\n\tAéA"),
        ('"""a"b"""', 'a"b'),
        (r"r'\n'", r"\n"),
        ("'''x\r\ny'''", "x\ny"),
    ],
)
def test_escapes_are_replaced_in_strings(literal: str, expected: str) -> None:
    assert unescape(literal, as_bytes=False) == expected


def test_escapes_are_bytes_in_bytes() -> None:
    assert unescape(r"'\xff\101é'", as_bytes=True) == b"\xffA\xc3\xa9"
    with pytest.raises(LiteralProblem):
        unescape(r"'\u00e9'", as_bytes=True)


def test_half_of_a_character_is_refused() -> None:
    with pytest.raises(LiteralProblem, match="invalid unicode code point"):
        unescape(r"'\ud800'", as_bytes=False)
