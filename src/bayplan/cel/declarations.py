"""What an environment is made of: functions with overloads, macros, names of types. Libraries bundle them.

An overload has an id, which the cost of a call depends on. At run time the arguments are matched against the
overloads only where the checker could not settle on one; a function may instead have one implementation for all of
them, chosen by what its first argument can do (`trait`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from bayplan.cel.macros import Macros
from bayplan.cel.types import Type, TypeKind
from bayplan.cel.values import Value, find, no_overload, type_name

__all__ = [
    "Constructor",
    "Function",
    "Implementation",
    "Library",
    "Overload",
    "Resolved",
    "function",
    "matches",
    "member",
    "merge",
    "overload",
]

Implementation = Callable[..., Value]
Resolved = Callable[[Sequence[Value]], Value]
"""A function that takes its arguments as one sequence."""

_UNCHECKED = frozenset({TypeKind.DYN, TypeKind.ANY, TypeKind.PARAMETER})
_WITH_METHODS = frozenset({"string", "google.protobuf.Timestamp", "google.protobuf.Duration"})
"""Types whose values have methods of their own; errors of those do not name the function."""


@dataclass(frozen=True, slots=True)
class Overload:
    """One signature of a function."""

    id: str
    parameters: tuple[Type, ...]
    result: Type
    implementation: Implementation | None = None
    is_member: bool = False
    is_guarded: bool = True
    """Whether arguments of other types are refused before the implementation sees them."""

    def call(self, name: str, arguments: Sequence[Value]) -> Value:
        if self.implementation is None or (self.is_guarded and not self.accepts(arguments)):
            raise no_overload(name, arguments)
        return self.implementation(*arguments)

    def accepts(self, arguments: Sequence[Value]) -> bool:
        return len(arguments) == len(self.parameters) and all(map(matches, self.parameters, arguments))


@dataclass(frozen=True, slots=True)
class Function:
    """A function with all its overloads, in the order in which they are tried."""

    name: str
    overloads: tuple[Overload, ...]
    singleton: Implementation | None = None
    """The implementation of all overloads, where there is just one."""
    trait: frozenset[str] | None = None
    """The types that the first argument of the singleton may have; all, if there is no such set."""

    def resolve(self, overload_id: str | None) -> Resolved:
        """What calls of an overload do. Without an overload id, the first one that accepts the arguments is called."""
        if self.singleton is not None:
            return self._call_singleton if self.trait is not None else _spread(self.singleton)
        if overload_id is not None or len(self.overloads) == 1:
            chosen = self.overloads[0] if overload_id is None else self.overload(overload_id)
            return lambda arguments: chosen.call(self.name, arguments)
        return self._call_first

    def _call_singleton(self, arguments: Sequence[Value]) -> Value:
        name = type_name(arguments[0])
        if self.trait is not None and name not in self.trait:
            raise no_overload(None if name in _WITH_METHODS else self.name)
        assert self.singleton is not None, "only functions with one implementation are called so"
        return self.singleton(*arguments)

    def _call_first(self, arguments: Sequence[Value]) -> Value:
        for candidate in self.overloads:
            if candidate.implementation is not None and candidate.accepts(arguments):
                return candidate.implementation(*arguments)
        raise no_overload(self.name, arguments)

    def overload(self, overload_id: str) -> Overload:
        return next(candidate for candidate in self.overloads if candidate.id == overload_id)


@dataclass(frozen=True, slots=True)
class Library:
    """Functions, macros and names that belong together."""

    name: str
    functions: tuple[Function, ...] = ()
    macros: Macros = field(default_factory=dict)
    types: Mapping[str, Type] = field(default_factory=dict)
    """Types that expressions can name."""


@dataclass(frozen=True, slots=True)
class Constructor:
    """A type whose values can be written as `Name{field: value}`."""

    type: Type
    fields: Mapping[str, Type] | None = None
    """The fields and their types; without them, there may be any fields of any type."""


def overload(
    overload_id: str, parameters: Sequence[Type], result: Type, implementation: Implementation | None = None
) -> Overload:
    return Overload(overload_id, tuple(parameters), result, implementation)


def member(
    overload_id: str, parameters: Sequence[Type], result: Type, implementation: Implementation | None = None
) -> Overload:
    """An overload that is called as `first.name(others)`."""
    return Overload(overload_id, tuple(parameters), result, implementation, is_member=True)


def function(name: str, *overloads: Overload) -> Function:
    return Function(name, overloads)


def _spread(implementation: Implementation) -> Resolved:
    return lambda arguments: implementation(*arguments)


def merge(functions: Iterable[Function]) -> dict[str, Function]:
    """Functions by name; what several libraries add to one name becomes one function."""
    merged: dict[str, Function] = {}
    for added in functions:
        known = merged.get(added.name)
        if known is None:
            merged[added.name] = added
        else:
            merged[added.name] = Function(added.name, known.overloads + added.overloads)
    return merged


def matches(expected: Type, value: Value) -> bool:
    """Whether a value may be passed where the type is expected; of lists and maps the first entry is looked at."""
    if expected.kind in _UNCHECKED:
        return True
    if isinstance(value, list) and expected.kind is TypeKind.LIST:
        return not value or matches(expected.parameters[0], value[0])
    if isinstance(value, dict) and expected.kind is TypeKind.MAP:
        first = next(iter(value), None)
        return not value or (
            matches(expected.parameters[0], first) and matches(expected.parameters[1], find(value, first)[1])
        )
    return expected.name == type_name(value)
