"""Arithmetic, order and membership: the operators, with the overflow checks of 64-bit integers."""

from __future__ import annotations

import math
from collections.abc import Callable

from bayplan.cel.declarations import Function, Overload, overload
from bayplan.cel.errors import CostExceeded, EvaluationError
from bayplan.cel.times import Duration, Timestamp
from bayplan.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    Type,
    list_of,
    map_of,
    parameter,
)
from bayplan.cel.values import (
    INT_MAX,
    INT_MIN,
    MOST_ELEMENTS,
    UINT_MAX,
    Accumulator,
    Uint,
    Value,
    compare,
    contains,
    no_overload,
)

__all__ = ["OPERATORS"]

_A, _B = parameter("A"), parameter("B")


def _checked(result: int, operand: Value) -> Value:
    """An integer of the operand's type, if it is within its range."""
    if operand.__class__ is Uint:
        if 0 <= result <= UINT_MAX:
            return Uint(result)
        raise EvaluationError("unsigned integer overflow")
    if INT_MIN <= result <= INT_MAX:
        return result
    raise EvaluationError("integer overflow")


def _numbers(left: Value, right: Value) -> bool:
    return left.__class__ is right.__class__ and left.__class__ in (int, Uint)


def add(left: Value, right: Value) -> Value:
    if left.__class__ is right.__class__:
        if left.__class__ in (int, Uint):
            return _checked(left + right, left)  # type: ignore[operator]  # both are integers
        if left.__class__ in (float, str, bytes):
            return left + right  # type: ignore[operator]  # of a class that adds
    if isinstance(left, list) and isinstance(right, list):
        return _joined(left, right)
    if isinstance(left, Duration) and isinstance(right, Duration):
        return Duration(left.nanoseconds + right.nanoseconds)
    if isinstance(left, Duration) and isinstance(right, Timestamp):
        return right.shifted(left.nanoseconds)
    if isinstance(left, Timestamp) and isinstance(right, Duration):
        return left.shifted(right.nanoseconds)
    raise no_overload()


def _joined(left: list[Value], right: list[Value]) -> Value:
    if len(left) + len(right) > MOST_ELEMENTS:
        raise CostExceeded
    if isinstance(left, Accumulator):
        left.extend(right)
        return left
    if not left or not right:
        return left or right
    return [*left, *right]


def subtract(left: Value, right: Value) -> Value:
    if _numbers(left, right):
        return _checked(left - right, left)  # type: ignore[operator]  # both are integers
    if isinstance(left, float) and isinstance(right, float):
        return left - right
    if isinstance(left, Duration) and isinstance(right, Duration):
        return Duration(left.nanoseconds - right.nanoseconds)
    if isinstance(left, Timestamp) and isinstance(right, Duration):
        return left.shifted(-right.nanoseconds)
    if isinstance(left, Timestamp) and isinstance(right, Timestamp):
        return left.since(right)
    raise no_overload()


def multiply(left: Value, right: Value) -> Value:
    if _numbers(left, right):
        return _checked(left * right, left)  # type: ignore[operator]  # both are integers
    if isinstance(left, float) and isinstance(right, float):
        return left * right
    raise no_overload()


def divide(left: Value, right: Value) -> Value:
    if _numbers(left, right):
        assert isinstance(left, int)
        assert isinstance(right, int)
        if right == 0:
            raise EvaluationError("division by zero")
        quotient = abs(left) // abs(right)
        return _checked(quotient if (left < 0) is (right < 0) else -quotient, left)
    if isinstance(left, float) and isinstance(right, float):
        if right == 0:
            return math.nan if left == 0 or left != left else math.copysign(math.inf, left) * math.copysign(1, right)
        return left / right
    raise no_overload()


def modulo(left: Value, right: Value) -> Value:
    if not _numbers(left, right):
        raise no_overload()
    assert isinstance(left, int)
    assert isinstance(right, int)
    if right == 0:
        raise EvaluationError("modulus by zero")
    if left == INT_MIN and right == -1:
        raise EvaluationError("integer overflow")
    rest = abs(left) % abs(right)
    return _checked(-rest if left < 0 else rest, left)


def negate(operand: Value) -> Value:
    if isinstance(operand, int) and not isinstance(operand, bool | Uint):
        return _checked(-operand, operand)
    if isinstance(operand, float):
        return -operand
    if isinstance(operand, Duration):
        return Duration(-operand.nanoseconds)
    raise no_overload()


def logical_not(operand: Value) -> Value:
    if operand.__class__ is bool:
        return not operand
    raise no_overload()


def less(left: Value, right: Value) -> bool:
    return compare(left, right) < 0


def less_or_equal(left: Value, right: Value) -> bool:
    return compare(left, right) <= 0


def greater(left: Value, right: Value) -> bool:
    return compare(left, right) > 0


def greater_or_equal(left: Value, right: Value) -> bool:
    return compare(left, right) >= 0


def _within(sought: Value, container: Value) -> bool:
    return contains(container, sought)


_ORDERED = (
    ("bool", BOOL, BOOL),
    ("int64", INT, INT),
    ("int64_double", INT, DOUBLE),
    ("int64_uint64", INT, UINT),
    ("uint64", UINT, UINT),
    ("uint64_double", UINT, DOUBLE),
    ("uint64_int64", UINT, INT),
    ("double", DOUBLE, DOUBLE),
    ("double_int64", DOUBLE, INT),
    ("double_uint64", DOUBLE, UINT),
    ("string", STRING, STRING),
    ("bytes", BYTES, BYTES),
    ("timestamp", TIMESTAMP, TIMESTAMP),
    ("duration", DURATION, DURATION),
)
_ORDERED_TRAIT = frozenset({first.name for _, first, _ in _ORDERED})


def _order(name: str, prefix: str, implementation: Callable[[Value, Value], bool]) -> Function:
    overloads = tuple(overload(f"{prefix}_{suffix}", (first, second), BOOL) for suffix, first, second in _ORDERED)
    return Function(name, overloads, implementation, _ORDERED_TRAIT)


def _arithmetic(
    name: str, implementation: Callable[..., Value], *overloads: tuple[str, tuple[Type, ...], Type]
) -> Function:
    declared: tuple[Overload, ...] = tuple(overload(*entry) for entry in overloads)
    trait = {entry.parameters[0].name for entry in declared}
    return Function(name, declared, implementation, frozenset(trait))


def _same(*types: tuple[str, Type]) -> list[tuple[str, tuple[Type, ...], Type]]:
    return [(overload_id, (each, each), each) for overload_id, each in types]


_LIST = list_of(_A)

OPERATORS: tuple[Function, ...] = (
    Function("_?_:_", (overload("conditional", (BOOL, _A, _A), _A),)),
    Function("_&&_", (overload("logical_and", (BOOL, BOOL), BOOL),)),
    Function("_||_", (overload("logical_or", (BOOL, BOOL), BOOL),)),
    Function("!_", (overload("logical_not", (BOOL,), BOOL),), logical_not),
    Function("@not_strictly_false", (overload("not_strictly_false", (BOOL,), BOOL),)),
    Function("_==_", (overload("equals", (_A, _A), BOOL),)),
    Function("_!=_", (overload("not_equals", (_A, _A), BOOL),)),
    _arithmetic(
        "_+_",
        add,
        ("add_bytes", (BYTES, BYTES), BYTES),
        ("add_double", (DOUBLE, DOUBLE), DOUBLE),
        ("add_duration_duration", (DURATION, DURATION), DURATION),
        ("add_duration_timestamp", (DURATION, TIMESTAMP), TIMESTAMP),
        ("add_timestamp_duration", (TIMESTAMP, DURATION), TIMESTAMP),
        ("add_int64", (INT, INT), INT),
        ("add_list", (_LIST, _LIST), _LIST),
        ("add_string", (STRING, STRING), STRING),
        ("add_uint64", (UINT, UINT), UINT),
    ),
    _arithmetic("_/_", divide, *_same(("divide_double", DOUBLE), ("divide_int64", INT), ("divide_uint64", UINT))),
    _arithmetic("_%_", modulo, *_same(("modulo_int64", INT), ("modulo_uint64", UINT))),
    _arithmetic(
        "_*_", multiply, *_same(("multiply_double", DOUBLE), ("multiply_int64", INT), ("multiply_uint64", UINT))
    ),
    Function(
        "-_",
        (overload("negate_double", (DOUBLE,), DOUBLE), overload("negate_int64", (INT,), INT)),
        negate,
        frozenset({"bool", "double", "int", DURATION.name}),
    ),
    _arithmetic(
        "_-_",
        subtract,
        ("subtract_double", (DOUBLE, DOUBLE), DOUBLE),
        ("subtract_duration_duration", (DURATION, DURATION), DURATION),
        ("subtract_int64", (INT, INT), INT),
        ("subtract_timestamp_duration", (TIMESTAMP, DURATION), TIMESTAMP),
        ("subtract_timestamp_timestamp", (TIMESTAMP, TIMESTAMP), DURATION),
        ("subtract_uint64", (UINT, UINT), UINT),
    ),
    _order("_<_", "less", less),
    _order("_<=_", "less_equals", less_or_equal),
    _order("_>_", "greater", greater),
    _order("_>=_", "greater_equals", greater_or_equal),
    Function(
        "_[_]",
        (overload("index_list", (_LIST, INT), _A), overload("index_map", (map_of(_A, _B), _A), _B)),
    ),
    Function(
        "@in",
        (overload("in_list", (_A, _LIST), BOOL), overload("in_map", (_A, map_of(_A, _B)), BOOL)),
        _within,
    ),
)
