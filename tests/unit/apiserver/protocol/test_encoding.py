"""How documents and times are read and spelled."""

from __future__ import annotations

import pytest

from bayplan.apiserver.protocol.encoding import duplicate_fields, microtimestamp, timestamp


@pytest.mark.parametrize(
    ("seconds", "expected"), [(0, "1970-01-01T00:00:00Z"), (-62_135_596_798, "0001-01-01T00:00:02Z")]
)
def test_times_have_four_digits_for_the_year(seconds: int, expected: str) -> None:
    assert timestamp(seconds) == expected
    assert microtimestamp(seconds) == expected.replace("Z", ".000000Z")


def test_repeated_fields_are_named_with_their_paths() -> None:
    body = b'{"spec": {"a": 1, "a": 2, "list": [{"b": 1}, {"b": 1, "b": 2}]}, "spec": {"c": 1, "c": 1, "c": 2}}'

    assert duplicate_fields(b'{"x": {"a": 1, "a": 2, "list": [{"b": 1}, {"b": 1, "b": 2}]}}') == ["x.a", "x.list[1].b"]
    assert duplicate_fields(body) == ["spec", "spec.c"]
    assert duplicate_fields(b"no json") == []
