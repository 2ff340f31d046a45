"""Values while an expression is evaluated, and what is true of all of them: type, equality, order, size.

Booleans, doubles, strings, bytes, null, lists and maps are Python's own. An int is a Python int within 64 bits, a
uint is a `Uint`. Everything else is a `Special`: a frozen object that knows its type and how it is compared.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from math import copysign
from typing import ClassVar

from bayplan.cel import types
from bayplan.cel.errors import EvaluationError
from bayplan.cel.types import Type

__all__ = [
    "INT_MAX",
    "INT_MIN",
    "MOST_CHARACTERS",
    "MOST_ELEMENTS",
    "UINT_MAX",
    "Accumulator",
    "AccumulatorMap",
    "Constructed",
    "DefaultMap",
    "Map",
    "Optional",
    "Special",
    "TypeValue",
    "Uint",
    "Value",
    "compare",
    "contains",
    "equal",
    "find",
    "is_equal",
    "no_overload",
    "reflected_name",
    "show",
    "show_double",
    "size",
    "type_name",
]

Value = object
"""Any value of an expression; the module's docstring says which classes it has."""
Map = dict[Value, Value]

MOST_ELEMENTS, MOST_CHARACTERS = 5_000_000, 50_000_000
"""Sizes that a value may have; an evaluation that would make a larger one is stopped as too expensive."""
INT_MIN, INT_MAX, UINT_MAX = -(2**63), 2**63 - 1, 2**64 - 1


class Uint(int):
    """An unsigned integer; differs from an int in its type and its range."""

    __slots__ = ()


class DefaultMap(dict[Value, Value]):
    """A map in which every key that is missing leads to an empty map; `in` still says whether a key is there."""

    __slots__ = ()
    absent: ClassVar[Map] = {}


class Accumulator(list[Value]):
    """The list that a loop builds: adding to it changes it, so that building takes linear time."""

    __slots__ = ()


class AccumulatorMap(dict[Value, Value]):
    """The map that a loop builds, changed in place."""

    __slots__ = ()


class Special:
    """A value that Python has no class for."""

    __slots__ = ()
    type: ClassVar[Type]
    reflected_name: ClassVar[str]
    """The name of the type in messages about the value's representation."""
    has_fixed_cost: ClassVar[bool] = False
    """Whether comparing it costs the same whatever its size."""

    @abstractmethod
    def equals(self, other: Value) -> bool: ...

    def runtime_type(self) -> Type:
        return self.type

    def order(self, other: Value) -> int:
        """-1, 0 or 1; types without an order do not answer."""
        raise no_overload()

    def size(self) -> int | None:
        """How much there is to look at when it is compared; nothing for values of fixed size."""
        return None

    def reflection(self) -> str:
        return self.reflected_name

    @property
    def is_zero(self) -> bool:
        return False


class TypeValue(Special):
    """A type as a value, such as `int`."""

    __slots__ = ("described",)
    type = types.TYPE
    reflected_name = "*types.Type"

    def __init__(self, described: Type) -> None:
        self.described = described

    def equals(self, other: Value) -> bool:
        return isinstance(other, TypeValue) and other.described.name == self.described.name

    def __str__(self) -> str:
        return self.described.name


class Optional(Special):
    """A value that may be absent."""

    __slots__ = ("content", "is_present")
    type = types.optional_of(types.DYN)
    reflected_name = "*types.Optional"
    NONE: ClassVar[Optional]

    def __init__(self, content: Value, *, is_present: bool = True) -> None:
        self.content = content
        self.is_present = is_present

    def equals(self, other: Value) -> bool:
        if not isinstance(other, Optional) or self.is_present != other.is_present:
            return False
        return not self.is_present or equal(self.content, other.content)

    def size(self) -> int | None:
        return size(self.content) if self.is_present else None

    def get(self) -> Value:
        if not self.is_present:
            raise EvaluationError("optional.none() dereference")
        return self.content

    def __str__(self) -> str:
        return f"optional({show(self.content)})" if self.is_present else "optional.none()"


Optional.NONE = Optional(None, is_present=False)


class Constructed(Special):
    """A value that an expression made of named fields; nothing can be read from it."""

    __slots__ = ("fields", "made")
    type = types.DYN
    reflected_name = "*dynamic.ObjectVal"

    def __init__(self, made: Type, fields: dict[str, Value]) -> None:
        self.made = made
        self.fields = fields

    def runtime_type(self) -> Type:
        return self.made

    def equals(self, other: Value) -> bool:
        if not isinstance(other, Constructed) or other.made != self.made or other.fields.keys() != self.fields.keys():
            return False
        return all(equal(value, other.fields[name]) for name, value in self.fields.items())

    @property
    def is_zero(self) -> bool:
        return not self.fields

    def __str__(self) -> str:
        return f"{self.made.name}{{{', '.join(f'{name}: {show(value)}' for name, value in self.fields.items())}}}"


_NAMES: dict[type, str] = {
    bool: "bool",
    int: "int",
    Uint: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    type(None): "null_type",
    list: "list",
    dict: "map",
    DefaultMap: "map",
    Accumulator: "list",
    AccumulatorMap: "map",
}
_REFLECTED: dict[type, str] = {
    bool: "types.Bool",
    int: "types.Int",
    Uint: "types.Uint",
    float: "types.Double",
    str: "types.String",
    bytes: "types.Bytes",
    type(None): "types.Null",
    list: "*types.baseList",
    dict: "*types.baseMap",
    DefaultMap: "cel.mapper",
    Accumulator: "*types.mutableList",
    AccumulatorMap: "*types.mutableMap",
}
_NUMBERS = frozenset({int, Uint, float})
_ALIKE = frozenset({bool, int, Uint, str, bytes, float})


def type_name(value: Value) -> str:
    """The name of the type that a value has at run time."""
    name = _NAMES.get(value.__class__)
    if name is not None:
        return name
    assert isinstance(value, Special), f"{value!r} is not a value of an expression"
    return value.runtime_type().name


def reflected_name(value: Value) -> str:
    """The name of a value's representation, which a few messages show."""
    return value.reflection() if isinstance(value, Special) else _REFLECTED[value.__class__]


def no_overload(function: str | None = None, arguments: Iterable[Value] | None = None) -> EvaluationError:
    """The error of a function that does not exist for the values it was given."""
    if function is None:
        return EvaluationError("no such overload")
    if arguments is None:
        return EvaluationError(f"no such overload: {function}")
    return EvaluationError(f"no such overload: {function}({', '.join(map(type_name, arguments))})")


def size(value: Value) -> int | None:
    """Characters, bytes, elements or entries; nothing for values without parts."""
    if isinstance(value, str | bytes | list | dict):
        return len(value)
    return value.size() if isinstance(value, Special) else None


def equal(left: Value, right: Value) -> bool:
    """Equality of all types: numbers by their value, everything else only with its own type."""
    kind = left.__class__
    if kind is right.__class__ and kind in _ALIKE:
        return left == right
    if left is None or right is None:
        return left is right
    if kind in _NUMBERS:
        return right.__class__ in _NUMBERS and _order_of_numbers(left, right) == 0
    if isinstance(left, list):
        return isinstance(right, list) and _equal_lists(left, right)
    if isinstance(left, dict):
        return isinstance(right, dict) and _equal_maps(left, right)
    return isinstance(left, Special) and left.equals(right)


def _equal_lists(left: list[Value], right: list[Value]) -> bool:
    return len(left) == len(right) and all(map(_equal_inside, left, right))


def _equal_maps(left: Map, right: Map) -> bool:
    if len(left) != len(right):
        return False
    for key, value in left.items():
        found, other = find(right, key)
        if not found or not _equal_inside(value, other):
            return False
    return True


def _equal_inside(left: Value, right: Value) -> bool:
    """Elements that cannot be compared do not make lists and maps unequal."""
    try:
        return equal(left, right)
    except EvaluationError:
        return True


def compare(left: Value, right: Value) -> int:
    """-1, 0 or 1, as the left value is smaller, equal or greater."""
    kind, other = left.__class__, right.__class__
    if kind in _NUMBERS:
        if other in _NUMBERS:
            order = _order_of_numbers(left, right)
            if order is None:
                raise EvaluationError("NaN values cannot be ordered")
            return order
    elif kind is other and kind in _ALIKE:
        return _order_of_alike(left, right)
    elif isinstance(left, Special):
        return left.order(right)
    raise no_overload()


def _order_of_alike(left: Value, right: Value) -> int:
    is_greater: bool = left > right  # type: ignore[operator]  # of the same ordered class
    return 1 if is_greater else (0 if left == right else -1)


def _order_of_numbers(left: Value, right: Value) -> int | None:
    """Integers are compared with doubles as doubles, which loses the lowest bits of large ones. NaN has no order."""
    assert isinstance(left, int | float)
    assert isinstance(right, int | float)
    if isinstance(left, float) is not isinstance(right, float):
        left, right = float(left), float(right)
    if left < right:
        return -1
    return 1 if left > right else (0 if left == right else None)


def find(within: Map, key: Value) -> tuple[bool, Value]:
    """Whether the map has the key, and its value. Numbers find equal numbers of other types, never booleans."""
    kind = key.__class__
    if kind is str:
        return (True, within[key]) if key in within else (False, None)
    if (kind is not bool and kind not in _NUMBERS) or key not in within:
        return False, None
    if key not in (0, 1):
        return True, within[key]
    is_alike = any(stored == key and (stored.__class__ is bool) is (kind is bool) for stored in within)
    return (True, within[key]) if is_alike else (False, None)


def contains(container: Value, sought: Value) -> bool:
    """The `in` operator."""
    if isinstance(container, dict):
        return find(container, sought)[0]
    if isinstance(container, list):
        return any(is_equal(sought, element) for element in container)
    raise no_overload()


def is_equal(left: Value, right: Value) -> bool:
    """Equality for searches: values that cannot be compared are not equal."""
    try:
        return equal(left, right)
    except EvaluationError:
        return False


def show(value: Value) -> str:
    """A value inside of a message."""
    if value is None:
        return "NULL_VALUE"
    if value.__class__ is bool:
        return "true" if value else "false"
    if isinstance(value, float):
        return show_double(value)
    if isinstance(value, bytes):
        return "[" + " ".join(map(str, value)) + "]"
    if isinstance(value, list):
        return "[" + ", ".join(map(show, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{show(key)}: {show(entry)}" for key, entry in value.items()) + "}"
    return str(value)


def show_double(number: float) -> str:
    """The shortest decimal form that reads back as the same number, with an exponent below -4 and from 6 on."""
    if number != number:
        return "NaN"
    if number in (float("inf"), float("-inf")):
        return "+Inf" if number > 0 else "-Inf"
    sign = "-" if copysign(1, number) < 0 else ""
    digits, exponent = _shortest(abs(number))
    if exponent < -4 or exponent >= 6:
        fraction = "." + digits[1:] if len(digits) > 1 else ""
        return f"{sign}{digits[0]}{fraction}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"
    if exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
    whole = digits[: exponent + 1].ljust(exponent + 1, "0")
    fraction = digits[exponent + 1 :]
    return f"{sign}{whole}.{fraction}" if fraction else f"{sign}{whole}"


def _shortest(number: float) -> tuple[str, int]:
    """The significant digits and the exponent of the first one."""
    if number == 0:
        return "0", 0
    text, _, power = repr(number).partition("e")
    whole, _, fraction = text.partition(".")
    digits = (whole + fraction).lstrip("0")
    leading = len(whole + fraction) - len(digits)
    exponent = len(whole) - 1 - leading + (int(power) if power else 0)
    return digits.rstrip("0") or "0", exponent
