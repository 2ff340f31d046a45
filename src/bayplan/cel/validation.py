"""Checks of literals after type checking: durations, timestamps, patterns and formats that can be seen to be wrong, and
lists and maps whose elements differ in type."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from bayplan.cel.declarations import Function
from bayplan.cel.errors import EvaluationError, Issue
from bayplan.cel.library.formatting import FormatProblem, check_format
from bayplan.cel.library.regular_expressions import compiled
from bayplan.cel.syntax import Call, Expression, ListLiteral, Literal, MapLiteral, children, descendants
from bayplan.cel.types import Type, display
from bayplan.cel.values import Value

__all__ = ["validate"]


def validate(expression: Expression, functions: Mapping[str, Function], issues: list[Issue]) -> None:
    """Add what is wrong with the literals of a checked expression."""
    for name in ("duration", "timestamp"):
        convert = functions[name].resolve(None)
        _check_literals(expression, name, issues, convert)
    _check_literals(expression, "matches", issues, lambda arguments: compiled(str(arguments[0])))
    for part in _outside_of_formats(expression):
        if isinstance(part, ListLiteral):
            _check_list(part, issues)
        elif isinstance(part, MapLiteral):
            _check_map(part, issues)
    for part in descendants(expression):
        if isinstance(part, Call) and part.function == "format" and "string_format" in part.overloads:
            _check_format(part, issues)


def _check_literals(
    expression: Expression, name: str, issues: list[Issue], check: Callable[[Sequence[Value]], object]
) -> None:
    for part in descendants(expression):
        if not (isinstance(part, Call) and part.function == name and part.arguments):
            continue
        literal = part.arguments[0]
        if isinstance(literal, Literal):
            try:
                check([literal.value])
            except EvaluationError:
                issues.append(Issue(literal.offset, f"invalid {name} argument"))


def _outside_of_formats(part: Expression) -> Iterator[Expression]:
    yield part
    if not (isinstance(part, Call) and part.function == "format"):
        for child in children(part):
            yield from _outside_of_formats(child)


def _mismatch(part: Expression, expected: Type, found: Type) -> Issue:
    return Issue(part.offset, f"expected type '{display(expected)}' but found '{display(found)}'")


def _check_list(part: ListLiteral, issues: list[Issue]) -> None:
    first: Type | None = None
    for position, element in enumerate(part.elements):
        found = _content(element.type) if position in part.optional else element.type
        if first is None:
            first = found
        elif found != first:
            issues.append(_mismatch(element, first, found))
            break


def _check_map(part: MapLiteral, issues: list[Issue]) -> None:
    if not part.entries:
        return
    first_key = part.entries[0].key.type
    first_value = _content(part.entries[0].value.type) if part.entries[0].is_optional else part.entries[0].value.type
    for entry in part.entries[1:]:
        value = _content(entry.value.type) if entry.is_optional else entry.value.type
        if entry.key.type != first_key:
            issues.append(_mismatch(entry.key, first_key, entry.key.type))
        if value != first_value:
            issues.append(_mismatch(entry.value, first_value, value))


def _content(optional: Type) -> Type:
    return optional.parameters[0] if optional.parameters else optional


def _check_format(part: Call, issues: list[Issue]) -> None:
    """A format that is a literal, with a list literal of arguments."""
    pattern, arguments = part.target, part.arguments[0]
    if not (isinstance(pattern, Literal) and isinstance(pattern.value, str) and isinstance(arguments, ListLiteral)):
        return
    try:
        used = check_format(pattern.value, arguments.elements)
    except FormatProblem as problem:
        issues.append(Issue(part.offset if problem.part is None else problem.part.offset, str(problem)))
        return
    if len(arguments.elements) > used:
        count = len(arguments.elements)
        issues.append(
            Issue(part.offset, f"too many arguments supplied to string.format (expected {used}, got {count})")
        )
