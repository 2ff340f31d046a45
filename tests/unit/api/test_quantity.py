"""Quantities: exact, rounded up, all suffixes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.api.quantity import QuantityError, _scaled, format_quantity, milli_value, value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("1", 1),
        ("1500m", 2),
        ("1m", 1),
        ("0.5", 1),
        ("16393244Ki", 16393244 * 1024),
        ("129e6", 129_000_000),
        ("129E6", 129_000_000),
        ("128974848000m", 128_974_848),
        ("1.5Gi", 3 << 29),
        ("1n", 1),
        ("999999999n", 1),
        ("1000u", 1),
        ("2k", 2000),
        ("3M", 3_000_000),
        ("1T", 10**12),
        ("1P", 10**15),
        ("1E", 10**18),
        ("1Pi", 1 << 50),
        ("+5", 5),
        (".5", 1),
        ("5.", 5),
        ("-1500m", -2),
        ("1e-3", 1),
        (4, 4),
        (0.5, 1),
    ],
)
def test_a_quantity_counts_in_whole_units_rounded_away_from_zero(text: str | float, expected: int) -> None:
    assert value(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1", 1000), ("100m", 100), ("0.1", 100), ("0.1m", 1), ("1u", 1), ("2.0005", 2001), ("3k", 3_000_000), (2, 2000)],
)
def test_cpu_counts_in_thousandths_rounded_up(text: str | int, expected: int) -> None:
    assert milli_value(text) == expected


@pytest.mark.parametrize("text", ["8Ei", "9223372036854775808", "1e30", "99999999999P"])
def test_more_than_an_int64_holds_is_the_most_it_holds(text: str) -> None:
    assert value(text) == 2**63 - 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Gi",
        "abc",
        "1 Gi",
        "1gi",
        "1KB",
        "--1",
        "+-1",
        "1.2.3",
        "e5",
        "1e",
        "1e+-5",
        "1e99999999",
        "١",
        "-",
        "9" * 5000,
    ],
)
def test_what_is_not_a_quantity_is_named_in_the_error(text: str) -> None:
    with pytest.raises(QuantityError, match="`"):
        value(text)


@given(st.integers(min_value=0, max_value=2**62))
def test_a_formatted_amount_reads_back_the_same(amount: int) -> None:
    assert value(format_quantity(amount, "memory")) == amount
    assert value(format_quantity(amount, "example.com/gpu")) == amount


@given(st.integers(min_value=0, max_value=2**50))
def test_formatted_cpu_reads_back_the_same(amount: int) -> None:
    assert milli_value(format_quantity(amount, "cpu")) == amount


def test_amounts_are_written_as_people_write_them() -> None:
    assert format_quantity(1500, "cpu") == "1500m"
    assert format_quantity(2000, "cpu") == "2"
    assert format_quantity(3 << 30, "memory") == "3Gi"
    assert format_quantity(0, "memory") == "0"
    assert format_quantity(2, "example.com/gpu") == "2"


def test_long_texts_are_read_and_not_remembered() -> None:
    """A custom resource may state any number of them."""
    before = _scaled.cache_info().currsize
    texts = ["0" * 900 + str(number) for number in range(50)]

    assert [value(text) for text in texts] == list(range(50))
    assert milli_value(texts[7]) == 7000
    assert _scaled.cache_info().currsize == before
