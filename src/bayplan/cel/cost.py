"""What evaluating an expression costs, in the units of Kubernetes: about a tenth of a microsecond of its own machines.

A read of a name or field costs 1, a list 10, a map 30, a call 1 or what grows with its arguments. The numbers decide
which expressions Kubernetes accepts and where it stops, so they are the same here; the work behind them need not be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import ceil, inf

from bayplan.cel.errors import CostExceeded
from bayplan.cel.values import Special, Value, size

__all__ = [
    "CHARGED_BY_RESULT",
    "LIST_COST",
    "MAP_COST",
    "PATTERN_FACTOR",
    "READ_COST",
    "SORTABLE",
    "STRING_FACTOR",
    "STRUCT_COST",
    "CallCost",
    "Meter",
    "call_cost",
]

READ_COST, LIST_COST, MAP_COST, STRUCT_COST = 1, 10, 30, 40
STRING_FACTOR, PATTERN_FACTOR = 0.1, 0.25

CallCost = Callable[[Sequence[Value], Value], int]
"""The cost of a call, of its arguments and its result."""


class Meter:
    """What an evaluation has cost so far; stops it when that is more than the limit."""

    __slots__ = ("cost", "limit")

    def __init__(self, limit: int | None) -> None:
        self.cost = 0
        self.limit = inf if limit is None else limit

    def charge(self, cost: int) -> None:
        self.cost += cost
        if self.cost > self.limit:
            raise CostExceeded


def call_cost(function: str, overload_id: str | None) -> CallCost:
    """How calls of the function are charged, given the overload that the checker settled on, if it did."""
    if overload_id in _BY_OVERLOAD_FIRST:
        return _BY_OVERLOAD_FIRST[overload_id]
    if function == "_==_":
        return _equality
    if function == "ip":
        return _fixed if overload_id == "cidr_ip" else _traversed
    if function in ("containsIP", "containsCIDR"):
        return _network(function, overload_id or "")
    if function in _BY_FUNCTION:
        return _BY_FUNCTION[function]
    return _BY_OVERLOAD.get(overload_id or "", _fixed)


def _size(value: Value) -> int:
    measured = size(value)
    return 1 if measured is None else measured


def _portion(amount: int, factor: float) -> int:
    return ceil(amount * factor)


def _fixed(arguments: Sequence[Value], result: Value) -> int:
    return 1


def _traversed(arguments: Sequence[Value], result: Value) -> int:
    return _portion(_size(arguments[0]), STRING_FACTOR)


def _traversed_twice(arguments: Sequence[Value], result: Value) -> int:
    return _portion(_size(arguments[0]), 2 * STRING_FACTOR)


def _result_twice(arguments: Sequence[Value], result: Value) -> int:
    return _portion(_size(result), 2 * STRING_FACTOR)


def _searched(arguments: Sequence[Value], result: Value) -> int:
    """A regular expression over a text; one character more, so that an empty text costs as well."""
    text = ceil((1.0 + _size(arguments[0])) * STRING_FACTOR)
    return text * _portion(_size(arguments[1]), PATTERN_FACTOR)


def _validated(arguments: Sequence[Value], result: Value) -> int:
    pattern_size = getattr(arguments[0], "pattern_size", None)
    if pattern_size is None:
        return 1
    return ceil((1.0 + _size(arguments[1])) * STRING_FACTOR) * _portion(pattern_size, PATTERN_FACTOR)


def _contained_text(arguments: Sequence[Value], result: Value) -> int:
    return _portion(_size(arguments[0]), STRING_FACTOR) * _portion(_size(arguments[1]), STRING_FACTOR)


def _second_size(arguments: Sequence[Value], result: Value) -> int:
    return _size(arguments[1])


def _smaller(arguments: Sequence[Value], result: Value) -> int:
    return _portion(min(_size(arguments[0]), _size(arguments[1])), STRING_FACTOR)


def _equality(arguments: Sequence[Value], result: Value) -> int:
    left = arguments[0]
    if isinstance(left, Special) and left.has_fixed_cost:
        return 1
    return _smaller(arguments, result)


def _sum(arguments: Sequence[Value], result: Value) -> int:
    return _portion(_size(arguments[0]) + _size(arguments[1]), STRING_FACTOR)


def _visited(arguments: Sequence[Value], result: Value) -> int:
    """Every part of the first argument, however deep."""
    return _parts(arguments[0])


def _parts(value: Value) -> int:
    if isinstance(value, str):
        return int(len(value.encode(errors="replace")) * STRING_FACTOR)
    if isinstance(value, bytes):
        return int(len(value) * STRING_FACTOR)
    if isinstance(value, list):
        return sum(map(_parts, value))
    if isinstance(value, dict):
        return sum(_parts(key) + _parts(entry) for key, entry in value.items())
    return 1


def _network(function: str, overload_id: str) -> CallCost:
    def cost(arguments: Sequence[Value], result: Value) -> int:
        prefix = _size(arguments[0])
        total = _portion(2 * prefix, STRING_FACTOR)
        if function == "containsCIDR":
            total += _portion(prefix, STRING_FACTOR) + 1
        if overload_id in ("cidr_contains_ip_string", "cidr_contains_cidr_string"):
            total += _portion(_size(arguments[1]), STRING_FACTOR)
        return total

    return cost


def _sets(factor: int) -> CallCost:
    return lambda arguments, result: 1 + _size(arguments[0]) * _size(arguments[1]) * factor


def _new_list(arguments: Sequence[Value], result: Value) -> int:
    return _size(result) + 1 + LIST_COST


def _flattened(arguments: Sequence[Value], result: Value) -> int:
    depth = arguments[1] if len(arguments) == 2 else 1
    levels = depth if isinstance(depth, int) else 1
    return max(int(_size(arguments[0]) * float(levels)), 0) + 1 + LIST_COST


def _compared_with_itself(position: int) -> CallCost:
    def cost(arguments: Sequence[Value], result: Value) -> int:
        compared = arguments[position]
        if not isinstance(compared, list):
            return 1 + LIST_COST
        factor = 2.0
        if compared and isinstance(compared[0], str | bytes):
            factor += STRING_FACTOR
        return int(len(compared) ** 2 * factor) + 1 + LIST_COST

    return cost


CHARGED_BY_RESULT: frozenset[CallCost] = frozenset({_result_twice, _new_list})
"""Costs that are known only after the call; their functions limit the size of what they make."""

SORTABLE = (
    "int",
    "uint",
    "double",
    "bool",
    "google.protobuf.Duration",
    "google.protobuf.Timestamp",
    "string",
    "bytes",
)
"""Names of the types whose lists can be sorted, as they stand in the ids of overloads."""

_BY_OVERLOAD_FIRST: dict[str | None, CallCost] = {
    "list_sets_contains_list": _sets(1),
    "list_sets_intersects_list": _sets(1),
    "list_sets_equivalent_list": _sets(2),
    "list_slice": _new_list,
    "list_flatten": _flattened,
    "list_flatten_int": _flattened,
    "lists_range": _new_list,
    "list_reverse": _new_list,
    "list_distinct": _compared_with_itself(0),
}
_BY_OVERLOAD_FIRST |= {f"list_{name}_sort": _compared_with_itself(0) for name in SORTABLE}
_BY_OVERLOAD_FIRST |= {f"list_{name}_sortByAssociatedKeys": _compared_with_itself(1) for name in SORTABLE}

_BY_FUNCTION: Mapping[str, CallCost] = (
    dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _visited)
    | dict.fromkeys(("url", "lowerAscii", "upperAscii", "substring", "trim", "jsonpatch.escapeKey"), _traversed)
    | dict.fromkeys(("cidr", "isIP", "isCIDR", "quantity", "isQuantity", "semver", "isSemver"), _traversed)
    | dict.fromkeys(("replace", "split", "ip.isCanonical"), _traversed_twice)
    | dict.fromkeys(("find", "findAll"), _searched)
    | {"join": _result_twice, "validate": _validated}
)

_ORDERED = ("less", "greater", "less_equals", "greater_equals")
_BY_OVERLOAD: Mapping[str, CallCost] = (
    dict.fromkeys(("starts_with_string", "ends_with_string", "string_to_bytes", "bytes_to_string"), _traversed)
    | dict.fromkeys(("strings_quote", "string_format"), _traversed)
    | dict.fromkeys((f"{order}_{name}" for order in _ORDERED for name in ("string", "bytes")), _smaller)
    | dict.fromkeys(("add_string", "add_bytes"), _sum)
    | {"in_list": _second_size, "equals": _smaller, "not_equals": _smaller}
    | {"matches_string": _searched, "contains_string": _contained_text}
)
