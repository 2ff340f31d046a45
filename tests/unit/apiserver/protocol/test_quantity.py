"""Quantities are written back as the API server would."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.apiserver.protocol.quantity import BadQuantity, canonical_quantity, parse_quantity


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1", "1"),
        ("0.5", "500m"),
        (".5", "500m"),
        ("1000m", "1"),
        ("1500m", "1500m"),
        ("1024Mi", "1Gi"),
        ("1500Mi", "1500Mi"),
        ("1.5Gi", "1536Mi"),
        ("100000000", "100M"),
        ("1e3", "1e3"),
        ("0", "0"),
        ("-1", "-1"),
        ("0.1Ki", "102400m"),
        ("1n", "1n"),
        ("0.1n", "1n"),
    ],
)
def test_a_quantity_has_one_spelling(text: str, expected: str) -> None:
    assert canonical_quantity(text) == expected


@pytest.mark.parametrize("text", ["", "abc", "1Zi", "1 Gi", "--1", "1e", "1e999", "0x10", "1" * 100, "1\n", "\u0661"])
def test_other_text_is_no_quantity(text: str) -> None:
    with pytest.raises(BadQuantity):
        canonical_quantity(text)


@given(st.integers(0, 10**12), st.sampled_from(["", "m", "k", "M", "Ki", "Mi", "Gi"]))
def test_the_canonical_spelling_means_the_same_and_is_stable(number: int, suffix: str) -> None:
    text = f"{number}{suffix}"
    canonical = canonical_quantity(text)

    assert parse_quantity(canonical) == parse_quantity(text)
    assert canonical_quantity(canonical) == canonical


def test_values_are_exact() -> None:
    assert parse_quantity("100m") == Decimal("0.1")
    assert parse_quantity("1Gi") == Decimal(2**30)
