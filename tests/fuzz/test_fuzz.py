"""A short run of every target; `make fuzz TARGET=config MINUTES=60` takes longer."""

from __future__ import annotations

from random import Random

import pytest

from tests.fuzz.targets import TARGETS


@pytest.mark.parametrize("name", TARGETS)
def test_mutated_input_is_taken_or_refused_as_promised(name: str) -> None:
    target, random = TARGETS[name](), Random(7)
    try:
        for _ in range(60 if name == "cel" else 300):
            target.attempt(random)
    finally:
        target.close()
