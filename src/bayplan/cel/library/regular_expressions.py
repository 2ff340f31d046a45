"""Regular expressions with RE2's syntax and its promise: time linear in the text, whatever the pattern.

`matches` is standard CEL; `find` and `findAll` are Kubernetes'. Patterns are compiled once and remembered.
"""

from __future__ import annotations

import re
from functools import lru_cache

import re2

from bayplan.cel.declarations import Library, function, member
from bayplan.cel.errors import EvaluationError
from bayplan.cel.types import INT, STRING, list_of
from bayplan.cel.values import Value, no_overload

__all__ = ["REGULAR_EXPRESSIONS", "PatternProblem", "compiled", "matches"]


class PatternProblem(EvaluationError):
    """A text that is not a regular expression of RE2."""


_OPTIONS = re2.Options()
_OPTIONS.log_errors = False
_OPTIONS.max_mem = 64 << 20


@lru_cache(maxsize=4096)
def compiled(pattern: str) -> re2._Regexp:
    """The pattern, ready to search with."""
    any_byte = _ANY_BYTE.search(pattern)
    if any_byte is not None:
        raise PatternProblem("error parsing regexp: invalid escape sequence: `\\C`")
    try:
        return re2.compile(pattern, _OPTIONS)
    except re2.error as problem:
        (message,) = problem.args
        raise PatternProblem(f"error parsing regexp: {_reworded(message, pattern)}") from None


_ANY_BYTE = re.compile(r"(?<!\\)(?:\\\\)*\\C")
"""A byte of a character, which RE2 has in C++ and not in Go."""
_WORDS = {
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "no argument for repetition operator": "missing argument to repetition operator",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
    "invalid named capture group": "invalid named capture",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "trailing \\": "trailing backslash at end of expression",
}
"""Problems in the words of RE2 in C++, and in those of Go."""


def _reworded(message: bytes | str, pattern: str) -> str:
    """The kind of problem, then the part of the pattern."""
    text = message.decode(errors="replace") if isinstance(message, bytes) else message
    kind, _, part = text.partition(": ")
    shown = pattern if kind in ("missing )", "unexpected )") else part
    return f"{_WORDS.get(kind, kind)}: `{shown}`"


def matches(text: Value, pattern: Value) -> bool:
    """Whether the pattern is found anywhere in the text."""
    if not isinstance(text, str) or not isinstance(pattern, str):
        raise no_overload()
    return compiled(pattern).search(text) is not None


def _compiled_here(pattern: str) -> re2._Regexp:
    try:
        return compiled(pattern)
    except PatternProblem as problem:
        raise EvaluationError(f"Illegal regex: {problem}") from None


def _find(text: str, pattern: str) -> Value:
    found = _compiled_here(pattern).search(text)
    return "" if found is None else found.group()


def _find_all(text: str, pattern: str, most: int = -1) -> Value:
    """All matches from left to right; an empty one right behind another match does not count."""
    results: list[Value] = []
    end = -1
    for found in _compiled_here(pattern).finditer(text):
        if most >= 0 and len(results) >= most:
            break
        if found.end() > found.start() or found.start() != end:
            results.append(found.group())
        end = found.end()
    return results


REGULAR_EXPRESSIONS = Library(
    "kubernetes.regex",
    (
        function("find", member("string_find_string", (STRING, STRING), STRING, _find)),
        function(
            "findAll",
            member("string_find_all_string", (STRING, STRING), list_of(STRING), _find_all),
            member("string_find_all_string_int", (STRING, STRING, INT), list_of(STRING), _find_all),
        ),
    ),
)
