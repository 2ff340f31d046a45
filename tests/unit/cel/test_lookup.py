"""Parts of values."""

from __future__ import annotations

import pytest

from bayplan.cel.errors import EvaluationError
from bayplan.cel.lookup import optional_part, qualify, qualify_if_present
from bayplan.cel.values import DefaultMap, Optional, Uint


def test_keys_and_indexes_lead_to_parts() -> None:
    assert qualify({"a": 1}, "a") == 1
    assert [qualify([5, 6], key) for key in (1, Uint(1), 1.0)] == [6, 6, 6]


def test_a_missing_domain_is_an_empty_map() -> None:
    assert qualify(DefaultMap(), "x") == {}
    assert qualify_if_present(DefaultMap(), "x") == (True, {})


@pytest.mark.parametrize(
    ("value", "key", "expected"),
    [
        ({}, "a", "no such key: a"),
        ([1], 3, "index out of bounds: 3"),
        ([1], "a", "unsupported index type 'string' in list"),
        ([1], 0.5, "unsupported index value 0.5 in list"),
        (7, "a", "no such key: a"),
        ({}, b"a", "invalid qualifier type: types.Bytes"),
    ],
)
def test_what_is_missing_is_an_error(value: object, key: object, expected: str) -> None:
    with pytest.raises(EvaluationError) as raised:
        qualify(value, key)
    assert str(raised.value) == expected


def test_optional_parts_are_absent_where_something_on_the_way_is() -> None:
    present = optional_part(Optional({"a": 1}), "a")

    assert present.is_present and present.content == 1
    assert optional_part(Optional.NONE, "a") is Optional.NONE
    assert optional_part({}, "a") is Optional.NONE
