"""The pytest plugin of the kit; loaded by pytest through its entry point.

It brings the fixture `harness`, a factory with the arguments of `bayplan.testing.Harness`, and puts the table of
verdicts and scores under comparisons of scores that fail. It imports the engine only when one of them is used, so that
projects which merely have Bayplan installed pay nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from bayplan.testing.harness import Harness

__all__ = ["harness", "pytest_assertrepr_compare"]


@pytest.fixture
def harness() -> Callable[..., Harness]:
    """Makes a harness: `harness(nodes=[...], plugins=[...])`."""
    from bayplan.testing.harness import Harness

    return Harness


def pytest_assertrepr_compare(op: str, left: Any, right: Any) -> list[str] | None:
    """Under a failed `assert expect(outcome).score(...) == 50`, show where the number is from."""
    kit = sys.modules.get("bayplan.testing.expect")
    if kit is None:
        return None
    score = left if isinstance(left, kit.Score) else right if isinstance(right, kit.Score) else None
    if score is None:
        return None
    from bayplan.testing.tables import verdict_table

    return [f"{int(left)} {op} {int(right)} ({score.what})", "", *verdict_table(score.outcome).splitlines()]
