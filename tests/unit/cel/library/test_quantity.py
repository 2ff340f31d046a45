"""Quantities."""

from __future__ import annotations

import pytest
from tests.unit.cel.evaluation import error, value

from bayplan.cel.errors import EvaluationError
from bayplan.cel.library.quantity import parse_quantity


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1500m", "1.5"),
        ("1Ki", "1024"),
        ("1.5Gi", "1610612736"),
        ("1e3", "1000"),
        ("1E", "1000000000000000000"),
        ("-2k", "-2000"),
        ("+1", "1"),
        ("0.0000000001", "0.000000001"),
        ("1n", "0.000000001"),
        (".5", "0.5"),
        ("-", "0"),
        ("Ki", "0"),
        ("16Ei", str(2**63 - 1)),
        ("100000000000000000000", "100000000000000000000"),
    ],
)
def test_quantities_are_exact_to_nine_places(text: str, expected: str) -> None:
    assert str(parse_quantity(text)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "quantities must match the regular expression"),
        ("x", "quantities must match the regular expression"),
        ("1 ", "quantities must match the regular expression"),
        ("1ki", "unable to parse quantity's suffix"),
        ("--1", "unable to parse quantity's suffix"),
        ("1e99999999", "unable to parse quantity's suffix"),
    ],
)
def test_what_is_no_quantity_is_refused(text: str, expected: str) -> None:
    with pytest.raises(EvaluationError) as raised:
        parse_quantity(text)
    assert expected in str(raised.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("quantity('1Ki').isGreaterThan(quantity('1k')) && quantity('1').isLessThan(quantity('1001m'))", True),
        ("quantity('1000m') == quantity('1')", True),
        ("quantity('1').compareTo(quantity('2')) + sign(quantity('-5'))", -2),
        (
            "quantity('1k').asInteger() + quantity('5').sub(quantity('2')).asInteger()",
            1003,
        ),
        ("quantity('1000m').isInteger() || quantity('100000000000000000000').isInteger()", False),
        ("quantity('1500m').asApproximateFloat()", 1.5),
        ("isQuantity('1Gi') && !isQuantity('1Zi')", True),
        ("quantity('1').add(1) == quantity('2')", True),
    ],
)
def test_values(text: str, expected: object) -> None:
    assert value(text) == expected


def test_errors_are_those_of_kubernetes() -> None:
    assert error("quantity('0.5').asInteger()") == "cannot convert value to integer"
    assert error("quantity('12E').sub(4611686018427387904).asInteger()") == "cannot convert value to integer"
    assert error("quantity('2') == quantity('1').add(1)") == "no such overload"
