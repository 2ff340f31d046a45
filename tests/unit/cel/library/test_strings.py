"""String functions and formats."""

from __future__ import annotations

import pytest
from tests.unit.cel.evaluation import ENVIRONMENT, error, value

from bayplan.cel import CompileError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("'日本'.charAt(1) + 'a'.charAt(1)", "本"),
        ("'hello'.indexOf('l') + 'hello'.indexOf('l', 3) + 'hello'.indexOf('x')", 4),
        ("'hello'.lastIndexOf('l') + 'hello'.lastIndexOf('l', 2) + 'abc'.lastIndexOf('')", 8),
        ("'ÄbC'.lowerAscii() + 'äbC'.upperAscii()", "ÄbcäBC"),
        ("'aXa'.replace('a', 'b') + 'aaa'.replace('a', 'b', 1)", "bXbbaa"),
        ("'ab'.replace('', '-')", "-a-b-"),
        ("'a,b,c'.split(',') == ['a', 'b', 'c'] && 'a,b,c'.split(',', 2) == ['a', 'b,c']", True),
        ("'abc'.split('') == ['a', 'b', 'c'] && 'abc'.split('', 2) == ['a', 'bc'] && 'a'.split(',', 0) == []", True),
        ("'hello'.substring(2) + 'hello'.substring(1, 3)", "lloel"),
        ("'  x\\t'.trim()", "x"),
        ("['a', 'b'].join() + ['a', 'b'].join('-')", "aba-b"),
        ("strings.quote('a\\n\"')", '"a\\n\\""'),
        (
            "'%s %d %f %.1f %x %X %b %o %%'.format(['a', 1, 1.5, 0.25, 255, 'az', 5, 8])",
            "a 1 1.500000 0.2 ff 617A 101 10 %",
        ),
        ("'%e'.format([1052.032911275])", "1.052033×10⁰³"),
        ("'%.2f'.format([1234567.891])", "1,234,567.89"),
        (
            "'%s'.format([[1.5, 'a', b'b', true, null, duration('1s'), {'k': 1}]])",
            '[1.500000, "a", b"b", true, null, duration("1s"), {"k":1}]',
        ),
        ("'%f'.format(['Infinity'])", "∞"),
    ],
)
def test_values(text: str, expected: object) -> None:
    assert value(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("'a'.charAt(2)", "index out of range: 2"),
        ("'a'.substring(2)", "index out of range: 2"),
        ("'abc'.substring(2, 1)", "invalid substring range. start: 2, end: 1"),
        ("'abc'.indexOf('a', -1)", "index out of range: -1"),
        ("[dyn('a'), dyn(1)].join()", "join: invalid input: 1"),
        (
            "'%d'.format([dyn('a')])",
            "error during formatting: decimal clause can only be used on integers, was given string",
        ),
        ("a.format([1])", 'could not parse formatting clause: unrecognized formatting clause "z"'),
    ],
)
def test_errors(text: str, expected: str) -> None:
    assert error(text, a="%z") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("'%d'.format(['a'])", "decimal clause can only be used on integers, was given string"),
        ("'%'.format([1])", "unexpected end of string"),
        ("'%s %s'.format([1])", "index 1 out of range"),
        ("'%s'.format([1, 2])", "too many arguments supplied to string.format (expected 1, got 2)"),
        ("'%.3'.format([1])", "could not find end of precision specifier"),
        ("'%s'.format([[quantity('1')]])", "was given kubernetes.Quantity"),
    ],
)
def test_formats_are_checked_when_compiling(text: str, expected: str) -> None:
    with pytest.raises(CompileError) as raised:
        ENVIRONMENT.compile(text)
    assert expected in str(raised.value)


def test_results_that_would_be_huge_are_not_made() -> None:
    text = "x" * 100_000

    assert "cost limit" in error("a.replace('', a)", a=text)
    assert "cost limit" in error("'%.9999999f'.format([1.0])")
