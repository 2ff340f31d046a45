"""The static types of expressions, and when a value of one type may stand where another is expected.

A type is a kind, a name and parameters. `dyn` and `any` accept everything and are checked at run time. Type parameters
(`A` in `list(A)`) are bound while overloads are matched; `Bindings` holds what is known of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

__all__ = [
    "ANY",
    "BOOL",
    "BYTES",
    "DOUBLE",
    "DURATION",
    "DYN",
    "ERROR",
    "INT",
    "NULL",
    "STRING",
    "TIMESTAMP",
    "TYPE",
    "UINT",
    "Bindings",
    "Type",
    "TypeKind",
    "display",
    "list_of",
    "map_of",
    "most_general",
    "object_type",
    "opaque_type",
    "optional_of",
    "parameter",
    "type_of",
]


class TypeKind(Enum):
    """What sort of type it is; sorts differ in what is assignable and selectable."""

    ANY = "any"
    BOOL = "bool"
    BYTES = "bytes"
    DOUBLE = "double"
    DURATION = "duration"
    DYN = "dyn"
    ERROR = "error"
    INT = "int"
    LIST = "list"
    MAP = "map"
    NULL = "null"
    OPAQUE = "opaque"
    PARAMETER = "parameter"
    STRING = "string"
    STRUCT = "struct"
    TIMESTAMP = "timestamp"
    TYPE = "type"
    UINT = "uint"


@dataclass(frozen=True, slots=True)
class Type:
    """A static type; equal types are exactly the same type."""

    kind: TypeKind
    name: str
    parameters: tuple[Type, ...] = ()

    @property
    def is_dyn(self) -> bool:
        return self.kind is TypeKind.DYN or self.kind is TypeKind.ANY

    @property
    def is_optional(self) -> bool:
        return self.kind is TypeKind.OPAQUE and self.name == "optional_type"

    def __str__(self) -> str:
        """The name of the type of a whole expression, for messages."""
        if self.kind is TypeKind.PARAMETER:
            return f"<{self.name}>"
        if not self.parameters:
            return self.name
        return f"{self.name}({', '.join(map(str, self.parameters))})"


ANY = Type(TypeKind.ANY, "google.protobuf.Any")
BOOL = Type(TypeKind.BOOL, "bool")
BYTES = Type(TypeKind.BYTES, "bytes")
DOUBLE = Type(TypeKind.DOUBLE, "double")
DURATION = Type(TypeKind.DURATION, "google.protobuf.Duration")
DYN = Type(TypeKind.DYN, "dyn")
ERROR = Type(TypeKind.ERROR, "*error*")
INT = Type(TypeKind.INT, "int")
NULL = Type(TypeKind.NULL, "null_type")
STRING = Type(TypeKind.STRING, "string")
TIMESTAMP = Type(TypeKind.TIMESTAMP, "google.protobuf.Timestamp")
TYPE = Type(TypeKind.TYPE, "type")
UINT = Type(TypeKind.UINT, "uint")

_DISPLAYED = {
    TypeKind.ANY: "any",
    TypeKind.DURATION: "duration",
    TypeKind.ERROR: "!error!",
    TypeKind.NULL: "null",
    TypeKind.TIMESTAMP: "timestamp",
}
_NULLABLE = frozenset({TypeKind.OPAQUE, TypeKind.STRUCT, TypeKind.ANY, TypeKind.DURATION, TypeKind.TIMESTAMP})
_NOMINAL = frozenset(
    {
        TypeKind.BOOL,
        TypeKind.BYTES,
        TypeKind.DOUBLE,
        TypeKind.INT,
        TypeKind.STRING,
        TypeKind.UINT,
        TypeKind.DURATION,
        TypeKind.TIMESTAMP,
        TypeKind.STRUCT,
    }
)


def list_of(element: Type) -> Type:
    return Type(TypeKind.LIST, "list", (element,))


def map_of(key: Type, value: Type) -> Type:
    return Type(TypeKind.MAP, "map", (key, value))


def optional_of(value: Type) -> Type:
    return opaque_type("optional_type", value)


def object_type(name: str) -> Type:
    """A type with named fields; the environment declares which."""
    return Type(TypeKind.STRUCT, name)


def opaque_type(name: str, *parameters: Type) -> Type:
    """A type that only functions can look into."""
    return Type(TypeKind.OPAQUE, name, parameters)


def parameter(name: str) -> Type:
    return Type(TypeKind.PARAMETER, name)


def type_of(described: Type) -> Type:
    """The type of a type, as in `type(1)`."""
    return Type(TypeKind.TYPE, "type", (described,))


def display(shown: Type) -> str:
    """The name of a type in messages about parts of an expression."""
    if shown.kind in _DISPLAYED:
        return _DISPLAYED[shown.kind]
    if shown.kind is TypeKind.PARAMETER or not shown.parameters:
        return shown.name
    return f"{shown.name}({', '.join(map(display, shown.parameters))})"


class Bindings:
    """What type parameters stand for so far. Assigning either succeeds and keeps what it learned, or does nothing."""

    def __init__(self) -> None:
        self._bound: dict[Type, Type] = {}

    def assign(self, left: Sequence[Type], right: Sequence[Type]) -> bool:
        """Whether each type on the left is assignable to the one on the right."""
        before = dict(self._bound)
        if self._all_assignable(left, right):
            return True
        self._bound = before
        return False

    def substitute(self, within: Type, *, free_is_dyn: bool) -> Type:
        """The type with its parameters replaced by what they stand for."""
        bound = self._bound.get(within)
        if bound is not None:
            return self.substitute(bound, free_is_dyn=free_is_dyn)
        if within.kind is TypeKind.PARAMETER:
            return DYN if free_is_dyn else within
        if not within.parameters:
            return within
        replaced = tuple(self.substitute(part, free_is_dyn=free_is_dyn) for part in within.parameters)
        return Type(within.kind, within.name, replaced)

    def _all_assignable(self, left: Sequence[Type], right: Sequence[Type]) -> bool:
        return len(left) == len(right) and all(map(self._assignable, left, right))

    def _assignable(self, left: Type, right: Type) -> bool:
        if right.kind is TypeKind.PARAMETER:
            valid, known = self._bind(right, left)
            if valid:
                return True
            if known:
                return False
        if left.kind is TypeKind.PARAMETER:
            return self._bind(left, right)[0]
        if _is_wildcard(left) or _is_wildcard(right):
            return True
        if left.kind is TypeKind.NULL or right.kind is TypeKind.NULL:
            other = right if left.kind is TypeKind.NULL else left
            return other.kind in _NULLABLE or other.kind is TypeKind.NULL
        if left.kind in _NOMINAL:
            return left == right
        if left.kind is TypeKind.TYPE:
            return right.kind is TypeKind.TYPE
        return (
            left.kind is right.kind
            and left.name == right.name
            and self._all_assignable(left.parameters, right.parameters)
        )

    def _bind(self, free: Type, to: Type) -> tuple[bool, bool]:
        """Whether the parameter may stand for the type, and whether it stood for something before."""
        if to == free:
            return True, True
        bound = self._bound.get(free)
        if bound is None:
            if self._occurs(free, to):
                return False, False
            self._bound[free] = to
            return True, False
        if to == bound:
            return True, True
        if not self._assignable(to, bound):
            return False, True
        general = most_general(to, bound)
        if not self._occurs(free, general):
            self._bound[free] = general
        return True, True

    def _occurs(self, free: Type, within: Type) -> bool:
        if free == within:
            return True
        if within.kind is TypeKind.PARAMETER:
            bound = self._bound.get(within)
            return bound is not None and self._occurs(free, bound)
        return any(self._occurs(free, part) for part in within.parameters)


def most_general(first: Type, second: Type) -> Type:
    """Of two types that agree, the one that says less."""
    return first if _is_no_more_specific(first, second) else second


def _is_wildcard(candidate: Type) -> bool:
    return candidate.is_dyn or candidate.kind is TypeKind.ERROR


def _is_no_more_specific(first: Type, second: Type) -> bool:
    if first.is_dyn or first.kind is TypeKind.PARAMETER:
        return True
    if second.is_dyn or second.kind is TypeKind.PARAMETER or first.kind is not second.kind:
        return False
    if first.kind is TypeKind.TYPE:
        return True
    if first.kind in (TypeKind.OPAQUE, TypeKind.LIST, TypeKind.MAP):
        return (
            first.name == second.name
            and len(first.parameters) == len(second.parameters)
            and all(map(_is_no_more_specific, first.parameters, second.parameters))
        )
    return first == second
