"""`bayplan.observe.failures`: exceptions in words."""

from __future__ import annotations

from bayplan.observe.failures import described


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


def test_an_exception_is_its_type_and_its_text() -> None:
    assert described(ValueError("wrong")) == "ValueError: wrong"


def test_an_exception_without_a_text_or_with_one_that_fails_is_its_type() -> None:
    assert [described(error) for error in (ValueError(), Mute())] == ["ValueError", "Mute"]
