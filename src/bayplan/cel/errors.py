"""What can be wrong with an expression, when it is compiled and when it is evaluated.

CelError
├── CompileError      the text is not a valid program of its environment; lists every issue with its place
├── EvaluationError   a value could not be worked out: a key is missing, a number overflows
└── CostExceeded      the evaluation cost more than its limit
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["CelError", "CompileError", "CostExceeded", "EvaluationError", "Issue", "describe_issues"]

_MOST_ISSUES = 100
_LONGEST_SNIPPET = 16384


class CelError(Exception):
    """Anything wrong with an expression or its evaluation."""


@dataclass(frozen=True, slots=True)
class Issue:
    """One problem of a text. An issue without an offset concerns the text as a whole."""

    offset: int | None
    message: str


class CompileError(CelError):
    """A text that cannot be compiled; `issues` has the single problems where they have places."""

    def __init__(self, message: str, issues: Sequence[Issue] = ()) -> None:
        super().__init__(message)
        self.issues = tuple(issues)


class EvaluationError(CelError):
    """An expression without a value for the variables it was given."""


class CostExceeded(EvaluationError):
    """An evaluation that was stopped because of its cost."""

    def __init__(self) -> None:
        super().__init__("operation cancelled: actual cost limit exceeded")


def describe_issues(text: str, issues: Sequence[Issue]) -> str:
    """The issues in the order of their places, each with the line it is on and a mark below."""
    lines = text.split("\n")
    placed = sorted(((*_place(text, issue.offset), issue.message) for issue in issues), key=lambda entry: entry[:2])
    shown = [_describe(lines, line, column, message) for line, column, message in placed[:_MOST_ISSUES]]
    if len(placed) > _MOST_ISSUES:
        shown.append(f"{len(placed) - _MOST_ISSUES} more errors were truncated")
    return "\n".join(shown)


def _place(text: str, offset: int | None) -> tuple[int, int]:
    if offset is None:
        return -1, -1
    line = text.count("\n", 0, offset)
    return line + 1, offset - (text.rfind("\n", 0, offset) + 1)


def _describe(lines: list[str], line: int, column: int, message: str) -> str:
    header = f"ERROR: <input>:{line}:{column + 1}: {message}"
    if line < 1 or line > len(lines) or len(lines[line - 1].encode(errors="replace")) > _LONGEST_SNIPPET:
        return header
    snippet = lines[line - 1].replace("\t", " ")
    dots = "".join("." if character.isascii() else "\uff0e" for character in snippet[:column])
    mark = "^" if snippet[column : column + 1].isascii() else "\uff3e"
    return f"{header}\n | {snippet}\n | {dots}{mark}"
