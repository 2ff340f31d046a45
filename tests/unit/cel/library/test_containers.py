"""Sets, optional values and maps that loops build."""

from __future__ import annotations

import pytest
from tests.unit.cel.evaluation import error, value

from bayplan.cel.values import Optional


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sets.contains([1, 2, 3], [3, 1]) && !sets.contains([1], [2])", True),
        ("sets.equivalent([1, 1, 2], [2, 1]) && sets.intersects([1, 2], [2, 3])", True),
        ("optional.none().or(optional.of(2)).value()", 2),
        ("optional.ofNonZeroValue(0).hasValue() || optional.ofNonZeroValue('').hasValue()", False),
        ("optional.of(1).orValue(2) + optional.none().orValue(3)", 4),
        ("{'a': 1}[?'a'].orValue(0) + [5][?3].orValue(7)", 8),
        ("[1, 2].first().value() + [1, 2].last().value()", 3),
        ("optional.unwrap([optional.of(1), optional.none()]) + [optional.of(2)].unwrapOpt()", [1, 2]),
        ("[].first().hasValue()", False),
    ],
)
def test_values(text: str, expected: object) -> None:
    assert value(text) == expected


def test_what_is_absent_has_no_value() -> None:
    assert error("optional.none().value()") == "optional.none() dereference"
    assert error("optional.unwrap([dyn(optional.none()), a])", a=1) == "value 1 is not optional"
    assert value("optional.none()") is Optional.NONE
