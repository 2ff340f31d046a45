"""Bodies of requests: what YAML may do to the process, and how it is read."""

from __future__ import annotations

import pytest

from bayplan.apiserver.objects.bodies import read_document
from bayplan.apiserver.protocol.errors import RequestRefused

YAML = "application/yaml"
BOMB = b"a: &a [x,x,x,x,x,x,x,x,x,x]\n" + b"".join(
    b"%c: &%c [%b]\n" % (98 + number, 98 + number, b",".join([b"*%c" % (97 + number)] * 10)) for number in range(9)
)


@pytest.mark.parametrize("body", [b"- " * 100_000 + b"a", b"a: " + b"[" * 100_000, b"{a: " * 100_000, b"? " * 100_000])
def test_yaml_that_is_nested_without_end_is_refused(body: bytes) -> None:
    """A parser that recurses in C ends the process with it."""
    with pytest.raises(RequestRefused, match="YAML"):
        read_document(body, YAML)


def test_aliases_that_multiply_are_refused() -> None:
    with pytest.raises(RequestRefused, match="aliases stand for more than"):
        read_document(BOMB, YAML)


def test_what_an_alias_stands_for_is_a_copy() -> None:
    read = read_document(b"a: &x {b: 1}\nc: *x", YAML)
    assert isinstance(read, dict)
    read["a"]["b"] = 2

    assert read == {"a": {"b": 2}, "c": {"b": 1}}


def test_of_two_equal_keys_the_last_one_counts() -> None:
    assert read_document(b"a: 1\na: 2", YAML) == {"a": 2}


@pytest.mark.parametrize("text", ["a: 1:30", "a: 2026-01-01", "a: 2026-01-01T00:00:00Z"])
def test_times_are_texts(text: str) -> None:
    assert read_document(text.encode(), YAML) == {"a": text.removeprefix("a: ")}


@pytest.mark.parametrize("body", [b"", b"- a", b"a", b"a: \xff", b"a: 1\n---\nb: 2", b"a: [", b"a: !!python/name:os 1"])
def test_what_is_no_single_object_is_refused(body: bytes) -> None:
    with pytest.raises(RequestRefused) as refused:
        read_document(body, YAML)

    assert refused.value.code == 400
