"""The words of an expression: names, numbers, strings and signs, each with its place in the text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from bayplan.cel.errors import Issue

__all__ = ["LiteralProblem", "Token", "TokenKind", "tokenize", "unescape"]


class TokenKind(Enum):
    """What sort of word it is."""

    BYTES = "BYTES"
    END = "<EOF>"
    FLOAT = "NUM_FLOAT"
    INT = "NUM_INT"
    NAME = "IDENTIFIER"
    QUOTED_NAME = "ESC_IDENTIFIER"
    SIGN = "sign"
    STRING = "STRING"
    UINT = "NUM_UINT"


@dataclass(frozen=True, slots=True)
class Token:
    """One word. Keywords (`true`, `in`) are names; the parser knows which ones are reserved."""

    kind: TokenKind
    text: str
    offset: int


class LiteralProblem(Exception):
    """A string or bytes literal with an escape that means nothing."""


_ESCAPE = r"\\(?:[abfnrtv\"'\\?`]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7][0-7])"
_PLAIN_STRING = "|".join(
    (
        rf'"""(?:{_ESCAPE}|[^\\])*?"""',
        rf"'''(?:{_ESCAPE}|[^\\])*?'''",
        rf'"(?:{_ESCAPE}|[^\\"\n\r])*"',
        rf"'(?:{_ESCAPE}|[^\\'\n\r])*'",
        r'[rR]"""(?:.|\n)*?"""',
        r"[rR]'''(?:.|\n)*?'''",
        r'[rR]"[^"\n\r]*"',
        r"[rR]'[^'\n\r]*'",
    )
)
_WORD = re.compile(
    "|".join(
        (
            r"(?P<SPACE>[\t \r\n\f]+|//[^\n]*)",
            r"(?P<FLOAT>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)",
            r"(?P<UINT>0x[0-9a-fA-F]+[uU]|[0-9]+[uU])",
            r"(?P<INT>0x[0-9a-fA-F]+|[0-9]+)",
            rf"(?P<BYTES>[bB](?:{_PLAIN_STRING}))",
            rf"(?P<STRING>{_PLAIN_STRING})",
            r"(?P<NAME>[A-Za-z_][A-Za-z0-9_]*)",
            r"(?P<QUOTED_NAME>`[A-Za-z0-9_.\-/ ]+`)",
            r"(?P<SIGN>==|!=|<=|>=|&&|\|\||[\[\]{}().,\-!?:+*/%<>])",
        )
    )
)


def tokenize(text: str, issues: list[Issue]) -> Iterator[Token]:
    """The words of the text, an end mark last. What is no word is reported and skipped."""
    position = 0
    while position < len(text):
        match = _WORD.match(text, position)
        if match is None:
            issues.append(Issue(position, f"Syntax error: token recognition error at: '{_unreadable(text, position)}'"))
            position += 1
            continue
        if match.lastgroup != "SPACE" and match.lastgroup is not None:
            yield Token(TokenKind[match.lastgroup], match.group(), position)
        position = match.end()
    yield Token(TokenKind.END, "<EOF>", len(text))


def _unreadable(text: str, position: int) -> str:
    if text[position] in "\"'":
        end = text.find("\n", position)
        return text[position:] if end < 0 else text[position : end + 1].replace("\n", "\\n")
    return text[position]


_SIMPLE_ESCAPES = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "\\": "\\",
    "'": "'",
    '"': '"',
    "`": "`",
    "?": "?",
}
_ESCAPED = re.compile(_ESCAPE)


def unescape(literal: str, *, as_bytes: bool) -> str | bytes:
    """What the literal stands for: prefix and quotes removed, escapes replaced."""
    is_raw = literal[0] in "rR"
    quoted = literal[1:] if is_raw else literal
    body = quoted[3:-3] if len(quoted) >= 6 and quoted[:3] in ('"""', "'''") else quoted[1:-1]
    body = body.replace("\r\n", "\n").replace("\r", "\n")
    if is_raw or "\\" not in body:
        return body.encode() if as_bytes else body
    if as_bytes:
        return _unescape_bytes(body)
    return _ESCAPED.sub(lambda match: _character(match.group()[1:]), body)


def _character(escape: str) -> str:
    if escape in _SIMPLE_ESCAPES:
        return _SIMPLE_ESCAPES[escape]
    code = int(escape, 8) if escape[0] in "0123" else int(escape[1:], 16)
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise LiteralProblem("invalid unicode code point")
    return chr(code)


def _unescape_bytes(body: str) -> bytes:
    pieces = []
    position = 0
    for match in _ESCAPED.finditer(body):
        pieces.append(body[position : match.start()].encode())
        escape = match.group()[1:]
        if escape[0] in "uU":
            raise LiteralProblem("unable to unescape string")
        if escape in _SIMPLE_ESCAPES:
            pieces.append(_SIMPLE_ESCAPES[escape].encode())
        else:
            pieces.append(bytes([int(escape, 8) if escape[0] in "0123" else int(escape[1:], 16)]))
        position = match.end()
    pieces.append(body[position:].encode())
    return b"".join(pieces)
