"""Standard functions: conversions, sizes, text tests, parts of dates, arithmetic with its limits."""

from __future__ import annotations

import pytest
from tests.unit.cel.evaluation import ENVIRONMENT, error, value

from bayplan.cel import CompileError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("7 / 2", 3),
        ("-7 / 2", -3),
        ("-7 % 3", -1),
        ("7u / 2u == 3u", True),
        ("1.0 / 0.0 == double('inf')", True),
        ("-1.5 + 0.5", -1.0),
        ("b'a' + b'b'", b"ab"),
        ("int(-1.9)", -1),
        ("int('42')", 42),
        ("int(timestamp('1970-01-01T00:01:00Z'))", 60),
        ("int(duration('1s'))", 1_000_000_000),
        ("uint('7') == 7u", True),
        ("double('1e3')", 1000.0),
        ("bool('True')", True),
        ("string(b'abc')", "abc"),
        ("string(duration('1h30m'))", "5400s"),
        ("string(timestamp(0))", "1970-01-01T00:00:00Z"),
        ("string(7u) + string(true) + string(1.5)", "7true1.5"),
        ("bytes('é')", b"\xc3\xa9"),
        ("size('日本') + 'ab'.size() + size(b'é')", 6),
        ("'abc'.contains('b') && 'abc'.startsWith('a') && 'abc'.endsWith('c')", True),
        ("timestamp('2020-02-29T12:34:56.789Z').getMonth()", 1),
        ("timestamp('2020-02-29T12:34:56.789Z').getDayOfYear()", 59),
        ("timestamp('2020-02-29T12:34:56.789Z').getDayOfMonth()", 28),
        ("timestamp('2020-02-29T12:34:56.789Z').getDate('Asia/Tokyo')", 29),
        ("timestamp('2020-02-29T12:34:56.789Z').getDayOfWeek()", 6),
        ("timestamp('2020-02-29T12:34:56.789Z').getMilliseconds()", 789),
        ("duration('-90m').getHours()", -1),
        ("duration('1h') + duration('30m') == duration('90m')", True),
        ("timestamp('2020-01-02T00:00:00Z') - timestamp('2020-01-01T00:00:00Z') == duration('24h')", True),
        ("timestamp('2020-01-01T00:00:00Z') + duration('1h') > timestamp('2020-01-01T00:59:59Z')", True),
        ("duration('0s') - duration('1s') < duration('0s')", True),
        ("type('a') == string && type(type(1)) == type(int)", True),
        ("1 < 1.5 && 2u > 1 && 1u <= 1.0", True),
    ],
)
def test_values(text: str, expected: object) -> None:
    assert value(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("9223372036854775807 + 1", "integer overflow"),
        ("-9223372036854775808 - 1", "integer overflow"),
        ("4611686018427387904 * 2", "integer overflow"),
        ("-9223372036854775808 / -1", "integer overflow"),
        ("-9223372036854775808 % -1", "integer overflow"),
        ("-dyn(-9223372036854775808)", "integer overflow"),
        ("1u - 2u", "unsigned integer overflow"),
        ("1 % 0", "modulus by zero"),
        ("int(a)", "type conversion error from 'string' to 'int'"),
        ("uint(a.size() - 2)", "unsigned integer overflow"),
        ("timestamp('9999-12-31T23:59:59Z') + duration('1s')", "timestamp overflow"),
        ("duration(a)", "type conversion error from 'string' to 'google.protobuf.Duration'"),
        ("timestamp(a)", "type conversion error from 'string' to 'google.protobuf.Timestamp'"),
        ("string(b'\\xff' + b'')", "invalid UTF-8 in bytes, cannot convert to string"),
        ("size(dyn(1))", "no such overload: size"),
        ("dyn(1).contains('a')", "no such overload"),
        ("timestamp(0).getHours('nowhere')", "unknown time zone nowhere"),
        ("dyn(-1.5) < 'a'", "no such overload"),
    ],
)
def test_errors(text: str, expected: str) -> None:
    assert error(text, a="x") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("duration('1d')", "invalid duration argument"),
        ("timestamp('x')", "invalid timestamp argument"),
        ("'a'.matches('(')", "invalid matches argument"),
        ("int('x')", "program instantiation failed: type conversion error from 'string' to 'int'"),
        ("duration(1)", "invalid duration argument"),
    ],
)
def test_constants_are_checked_when_compiling(text: str, expected: str) -> None:
    with pytest.raises(CompileError) as raised:
        ENVIRONMENT.compile(text)
    assert expected in str(raised.value)
