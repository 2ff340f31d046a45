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
    """Under a failed comparison of scores, of outcomes or of the node that a pod got, show the decision as a table."""
    kit = sys.modules.get("bayplan.testing.outcome")
    if kit is None:
        return None
    for value in (left, right):
        if isinstance(value, kit.ChosenNode):
            return [f"{str(left)!r} {op} {str(right)!r}", "", *value.table().splitlines()]
        if isinstance(value, kit.Outcome):
            return [f"an outcome {op} {type(right).__name__}", "", *_table(value)]
    scores = sys.modules.get("bayplan.testing.expect")
    score = next((value for value in (left, right) if scores is not None and isinstance(value, scores.Score)), None)
    if score is None:
        return None
    return [f"{int(left)} {op} {int(right)} ({score.what})", "", *_table(score.outcome)]


def _table(outcome: Any) -> list[str]:
    from bayplan.testing.tables import verdict_table

    return verdict_table(outcome).splitlines()
