"""The parts of a parsed expression.

Macros are gone by the time these exist: `list.all(x, …)` is a `Fold`. Operators are calls of functions with names
such as `_+_`. Each part knows the place it is reported at; the checker adds its type, and to calls their overloads.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from bayplan.cel.types import DYN, Type
from bayplan.cel.values import Value

__all__ = [
    "Call",
    "Expression",
    "Fold",
    "Ident",
    "ListLiteral",
    "Literal",
    "MapEntry",
    "MapLiteral",
    "Select",
    "StructLiteral",
    "children",
    "copy",
    "descendants",
    "paths_read",
    "qualified_name",
]


@dataclass(slots=True, eq=False)
class Expression:
    """Any part. `type` is what the checker found; parts are compared by identity."""

    offset: int
    type: Type = field(default=DYN, kw_only=True)


@dataclass(slots=True, eq=False)
class Literal(Expression):
    value: Value


@dataclass(slots=True, eq=False)
class Ident(Expression):
    """A name. `constant` is set where the name stands for a type."""

    name: str
    constant: Value | None = None


@dataclass(slots=True, eq=False)
class Select(Expression):
    """`operand.field`, or with `is_test` the question `has(operand.field)`.

    `variable` is set where the whole is the name of a variable with dots in it.
    """

    operand: Expression
    name: str
    is_test: bool = False
    variable: Ident | None = None


@dataclass(slots=True, eq=False)
class Call(Expression):
    """A function with arguments, a target among them where it is written before the dot."""

    function: str
    arguments: list[Expression]
    target: Expression | None = None
    overloads: tuple[str, ...] = ()

    @property
    def operands(self) -> list[Expression]:
        return self.arguments if self.target is None else [self.target, *self.arguments]


@dataclass(slots=True, eq=False)
class ListLiteral(Expression):
    elements: list[Expression]
    optional: frozenset[int] = frozenset()


@dataclass(slots=True, eq=False)
class MapEntry:
    """A key and a value of a map literal; an optional entry is left out when its value is absent."""

    key: Expression
    value: Expression
    is_optional: bool = False


@dataclass(slots=True, eq=False)
class MapLiteral(Expression):
    entries: list[MapEntry]


@dataclass(slots=True, eq=False)
class StructLiteral(Expression):
    """`Name{field: value}`."""

    name: str
    fields: list[tuple[str, Expression]]
    optional: frozenset[int] = frozenset()
    """Positions of fields that are left out when their value is absent."""


@dataclass(slots=True, eq=False)
class Fold(Expression):
    """A loop over a list or map: while `condition` holds, `step` replaces the accumulator, and `result` is the answer.

    The accumulator is worked out when it is first read, so a fold over an empty list binds a name to a value.
    """

    range: Expression
    variable: str
    second_variable: str | None
    accumulator: str
    initial: Expression
    condition: Expression
    step: Expression
    result: Expression

    @property
    def is_binding(self) -> bool:
        """Whether it only gives a value a name, as `cel.bind` does."""
        return (
            isinstance(self.range, ListLiteral)
            and not self.range.elements
            and isinstance(self.condition, Literal)
            and self.condition.value is False
            and self.accumulator != "__result__"
        )


def children(part: Expression) -> Iterator[Expression]:
    """The parts directly inside, in the order in which they were written or made."""
    match part:
        case Select():
            yield part.operand
        case Call():
            yield from part.operands
        case ListLiteral():
            yield from part.elements
        case MapLiteral():
            for entry in part.entries:
                yield entry.key
                yield entry.value
        case StructLiteral():
            yield from (value for _, value in part.fields)
        case Fold():
            yield from (part.range, part.initial, part.condition, part.step, part.result)


def descendants(part: Expression) -> Iterator[Expression]:
    """The part and all parts inside of it."""
    yield part
    for child in children(part):
        yield from descendants(child)


def copy(part: Expression) -> Expression:
    """The same expression made of new parts."""
    match part:
        case Select():
            return Select(part.offset, copy(part.operand), part.name, part.is_test)
        case Call():
            target = None if part.target is None else copy(part.target)
            return Call(part.offset, part.function, [copy(argument) for argument in part.arguments], target)
        case ListLiteral():
            return ListLiteral(part.offset, [copy(element) for element in part.elements], part.optional)
        case MapLiteral():
            entries = [MapEntry(copy(entry.key), copy(entry.value), entry.is_optional) for entry in part.entries]
            return MapLiteral(part.offset, entries)
        case StructLiteral():
            fields = [(name, copy(value)) for name, value in part.fields]
            return StructLiteral(part.offset, part.name, fields, part.optional)
        case Fold():
            inside = [copy(child) for child in children(part)]
            ranged, initial, condition, step, result = inside
            return Fold(
                part.offset,
                ranged,
                part.variable,
                part.second_variable,
                part.accumulator,
                initial,
                condition,
                step,
                result,
            )
        case Ident():
            return Ident(part.offset, part.name)
        case Literal():
            return Literal(part.offset, part.value)
    raise AssertionError(f"unknown part {part!r}")


def paths_read(part: Expression, variable: str) -> set[tuple[str, ...]]:
    """The ways from a variable to what an expression reads of it, as far as they are constant.

    `node.labels["zone"]` and `"zone" in node.labels` are `("labels", "zone")`; where the expression uses the variable
    as a whole, there is an empty path.
    """
    paths: set[tuple[str, ...]] = set()
    stack = [part]
    while stack:
        current = stack.pop()
        path = _path(current, variable)
        if path is None:
            stack.extend(children(current))
        else:
            paths.add(path)
    return paths


def _path(part: Expression, variable: str) -> tuple[str, ...] | None:
    match part:
        case Ident(name=name) if name == variable:
            return ()
        case Select(operand=operand, name=name):
            key, before = name, _path(operand, variable)
        case Call(function="_[_]" | "_[?_]" | "_?._", arguments=[operand, Literal(value=str(name))]):
            key, before = name, _path(operand, variable)
        case Call(function="@in", arguments=[Literal(value=str(name)), operand]):
            key, before = name, _path(operand, variable)
        case _:
            return None
    return None if before is None else (*before, key)


def qualified_name(part: Expression) -> str | None:
    """`a.b.c` for selections of names, which may be one name with dots."""
    if isinstance(part, Ident):
        return part.name
    if isinstance(part, Select) and not part.is_test:
        prefix = qualified_name(part.operand)
        return None if prefix is None else f"{prefix}.{part.name}"
    return None
