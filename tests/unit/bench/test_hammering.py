"""A measurement beside clients that nobody answers says nothing, and fails."""

from __future__ import annotations

import pytest
from bench.hammering import is_hammering


@pytest.mark.parametrize(
    ("answers", "is_at_work"),
    [
        ({"200": 500}, True),
        ({"200": 500, "429": 100, "503": 20}, True),
        ({}, False),
        ({"200": 30}, False),
        ({"401": 5000}, False),
        ({"ConnectionRefusedError": 200}, False),
        ({"200": 100, "500": 101}, False),
    ],
)
def test_clients_are_at_work_when_most_of_their_questions_are_answered(
    answers: dict[str, int], is_at_work: bool
) -> None:
    assert is_hammering(answers, 20) is is_at_work
