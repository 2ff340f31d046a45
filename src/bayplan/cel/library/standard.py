"""The functions that every CEL environment has: conversions between types, sizes, string tests, parts of dates."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime

from bayplan.cel import types
from bayplan.cel.declarations import Function, Library, Overload, function, member, overload
from bayplan.cel.errors import EvaluationError
from bayplan.cel.library.operators import OPERATORS
from bayplan.cel.library.regular_expressions import matches
from bayplan.cel.macros import STANDARD_MACROS
from bayplan.cel.times import SECOND, Duration, Timestamp, parse_duration, parse_timestamp, zone
from bayplan.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
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
    UINT_MAX,
    Special,
    TypeValue,
    Uint,
    Value,
    no_overload,
    show_double,
    size,
    type_name,
)

__all__ = ["STANDARD", "run_time_type"]

_A, _B = parameter("A"), parameter("B")
_TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE = frozenset({"0", "f", "F", "false", "FALSE", "False"})
_INTEGER = re.compile(r"[+-]?[0-9]+")
_DOUBLE = re.compile(
    r"[+-]?(?:[0-9]+\.?[0-9]*(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?|inf|infinity|nan)", re.IGNORECASE
)
_LONGEST_NUMBER = 1000

_NAMED: dict[str, Type] = {
    named.name: named
    for named in (BOOL, BYTES, DOUBLE, DURATION, INT, types.NULL, STRING, TIMESTAMP, UINT, types.TYPE, DYN)
} | {"list": list_of(DYN), "map": map_of(DYN, DYN)}


def _conversion_error(value: Value, target: Type) -> EvaluationError:
    return EvaluationError(f"type conversion error from '{type_name(value)}' to '{target.name}'")


def _identity(value: Value) -> Value:
    return value


def run_time_type(value: Value) -> TypeValue:
    """`type(value)`."""
    return TypeValue(value.runtime_type() if isinstance(value, Special) else _NAMED[type_name(value)])


def _to_bool(text: str) -> Value:
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    raise _conversion_error(text, BOOL)


def _to_bytes(text: str) -> Value:
    return text.encode()


def _to_double(value: int | str) -> Value:
    if isinstance(value, int):
        return float(value)
    if _DOUBLE.fullmatch(value) is None or len(value) > _LONGEST_NUMBER:
        raise _conversion_error(value, DOUBLE)
    number = float(value)
    if number in (float("inf"), float("-inf")) and "n" not in value.lower():
        raise _conversion_error(value, DOUBLE)
    return number


def _to_int(value: Value) -> Value:
    if isinstance(value, str):
        if _INTEGER.fullmatch(value) and len(value) <= _LONGEST_NUMBER and INT_MIN <= int(value) <= INT_MAX:
            return int(value)
        raise _conversion_error(value, INT)
    if isinstance(value, float):
        if not -(2.0**63) < value < 2.0**63:
            raise EvaluationError("integer overflow")
        return int(value)
    if isinstance(value, Duration):
        return value.nanoseconds
    if isinstance(value, Timestamp):
        return value.nanoseconds // SECOND
    assert isinstance(value, int)
    if value > INT_MAX:
        raise EvaluationError("integer overflow")
    return int(value)


def _to_uint(value: Value) -> Value:
    if isinstance(value, str):
        if value.isascii() and value.isdigit() and len(value) <= _LONGEST_NUMBER and int(value) <= UINT_MAX:
            return Uint(value)
        raise _conversion_error(value, UINT)
    if isinstance(value, float):
        if not 0 <= value < 2.0**64:
            raise EvaluationError("unsigned integer overflow")
        return Uint(value)
    assert isinstance(value, int)
    if value < 0:
        raise EvaluationError("unsigned integer overflow")
    return Uint(value)


def _to_string(value: Value) -> Value:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise EvaluationError("invalid UTF-8 in bytes, cannot convert to string") from None
    return show_double(value) if isinstance(value, float) else str(value)


def _to_duration(value: Value) -> Value:
    duration = parse_duration(value) if isinstance(value, str) else None
    if duration is None:
        raise _conversion_error(value, DURATION)
    return duration


def _to_timestamp(value: Value) -> Value:
    if isinstance(value, int):
        return Timestamp(value * SECOND)
    assert isinstance(value, str)
    moment = parse_timestamp(value)
    if moment is None:
        raise _conversion_error(value, TIMESTAMP)
    return moment


def _size(value: Value) -> Value:
    counted = size(value)
    if counted is None:
        raise no_overload()
    return counted


def _text_test(test: Callable[[str, str], bool]) -> Callable[[Value, Value], bool]:
    def check(text: Value, part: Value) -> bool:
        if not isinstance(text, str) or not isinstance(part, str):
            raise no_overload()
        return test(text, part)

    return check


def _text_function(name: str, overload_id: str, test: Callable[[str, str], bool]) -> Function:
    parameters = (STRING, STRING)
    return Function(
        name, (Overload(overload_id, parameters, BOOL, _text_test(test), is_member=True, is_guarded=False),)
    )


def _part_of_date(
    name: str, overload_id: str, part: Callable[[datetime], int], zoned_id: str | None = None
) -> Function:
    def in_utc(moment: Timestamp) -> int:
        return part(moment.local(zone("UTC")))

    def in_zone(moment: Timestamp, place: str) -> int:
        return part(moment.local(zone(place)))

    return function(
        name,
        member(overload_id, (TIMESTAMP,), INT, in_utc),
        member(zoned_id or f"{overload_id}_with_tz", (TIMESTAMP, STRING), INT, in_zone),
    )


def _part_of_time(name: str, word: str, part: Callable[[datetime], int], unit: int) -> Function:
    zoned_id = "timestamp_to_seconds_tz" if word == "seconds" else None
    of_date = _part_of_date(name, f"timestamp_to_{word}", part, zoned_id)
    of_duration = member(f"duration_to_{word}", (DURATION,), INT, lambda duration: duration.whole(unit))
    return Function(name, (*of_date.overloads, of_duration))


def _milliseconds() -> Function:
    def in_any_zone(moment: Timestamp, place: str = "UTC") -> int:
        zone(place)
        return moment.nanoseconds % SECOND // 1_000_000

    return function(
        "getMilliseconds",
        member("timestamp_to_milliseconds", (TIMESTAMP,), INT, in_any_zone),
        member("timestamp_to_milliseconds_with_tz", (TIMESTAMP, STRING), INT, in_any_zone),
        member("duration_to_milliseconds", (DURATION,), INT, lambda duration: duration.whole(1_000_000)),
    )


_SIZED = (("bytes", BYTES), ("list", list_of(_A)), ("map", map_of(_A, _B)), ("string", STRING))

_CONVERSIONS = (
    Function("type", (overload("type", (_A,), types.type_of(_A)),), run_time_type),
    Function("dyn", (overload("to_dyn", (_A,), DYN),), _identity),
    function(
        "bool",
        overload("bool_to_bool", (BOOL,), BOOL, _identity),
        overload("string_to_bool", (STRING,), BOOL, _to_bool),
    ),
    function(
        "bytes",
        overload("bytes_to_bytes", (BYTES,), BYTES, _identity),
        overload("string_to_bytes", (STRING,), BYTES, _to_bytes),
    ),
    function(
        "double",
        overload("double_to_double", (DOUBLE,), DOUBLE, _identity),
        overload("int64_to_double", (INT,), DOUBLE, _to_double),
        overload("string_to_double", (STRING,), DOUBLE, _to_double),
        overload("uint64_to_double", (UINT,), DOUBLE, _to_double),
    ),
    function(
        "duration",
        overload("duration_to_duration", (DURATION,), DURATION, _identity),
        overload("int64_to_duration", (INT,), DURATION, _to_duration),
        overload("string_to_duration", (STRING,), DURATION, _to_duration),
    ),
    function(
        "int",
        overload("int64_to_int64", (INT,), INT, _identity),
        overload("double_to_int64", (DOUBLE,), INT, _to_int),
        overload("duration_to_int64", (DURATION,), INT, _to_int),
        overload("string_to_int64", (STRING,), INT, _to_int),
        overload("timestamp_to_int64", (TIMESTAMP,), INT, _to_int),
        overload("uint64_to_int64", (UINT,), INT, _to_int),
    ),
    function(
        "string",
        overload("string_to_string", (STRING,), STRING, _identity),
        overload("bool_to_string", (BOOL,), STRING, _to_string),
        overload("bytes_to_string", (BYTES,), STRING, _to_string),
        overload("double_to_string", (DOUBLE,), STRING, _to_string),
        overload("duration_to_string", (DURATION,), STRING, _to_string),
        overload("int64_to_string", (INT,), STRING, _to_string),
        overload("timestamp_to_string", (TIMESTAMP,), STRING, _to_string),
        overload("uint64_to_string", (UINT,), STRING, _to_string),
    ),
    function(
        "timestamp",
        overload("timestamp_to_timestamp", (TIMESTAMP,), TIMESTAMP, _identity),
        overload("int64_to_timestamp", (INT,), TIMESTAMP, _to_timestamp),
        overload("string_to_timestamp", (STRING,), TIMESTAMP, _to_timestamp),
    ),
    function(
        "uint",
        overload("uint64_to_uint64", (UINT,), UINT, _identity),
        overload("double_to_uint64", (DOUBLE,), UINT, _to_uint),
        overload("int64_to_uint64", (INT,), UINT, _to_uint),
        overload("string_to_uint64", (STRING,), UINT, _to_uint),
    ),
)

STANDARD = Library(
    "standard",
    (
        *OPERATORS,
        *_CONVERSIONS,
        Function(
            "size",
            tuple(
                each
                for word, sized in _SIZED
                for each in (overload(f"size_{word}", (sized,), INT), member(f"{word}_size", (sized,), INT))
            ),
            _size,
            frozenset(word for word, _ in _SIZED),
        ),
        _text_function("contains", "contains_string", lambda text, part: part in text),
        _text_function("endsWith", "ends_with_string", str.endswith),
        _text_function("startsWith", "starts_with_string", str.startswith),
        Function(
            "matches",
            (overload("matches", (STRING, STRING), BOOL), member("matches_string", (STRING, STRING), BOOL)),
            matches,
            frozenset({"string"}),
        ),
        _part_of_date("getFullYear", "timestamp_to_year", lambda local: local.year),
        _part_of_date("getMonth", "timestamp_to_month", lambda local: local.month - 1),
        _part_of_date("getDayOfYear", "timestamp_to_day_of_year", lambda local: local.timetuple().tm_yday - 1),
        _part_of_date("getDayOfMonth", "timestamp_to_day_of_month", lambda local: local.day - 1),
        _part_of_date("getDate", "timestamp_to_day_of_month_1_based", lambda local: local.day),
        _part_of_date("getDayOfWeek", "timestamp_to_day_of_week", lambda local: local.isoweekday() % 7),
        _part_of_time("getHours", "hours", lambda local: local.hour, 3600 * SECOND),
        _part_of_time("getMinutes", "minutes", lambda local: local.minute, 60 * SECOND),
        _part_of_time("getSeconds", "seconds", lambda local: local.second, SECOND),
        _milliseconds(),
    ),
    STANDARD_MACROS,
    _NAMED,
)
