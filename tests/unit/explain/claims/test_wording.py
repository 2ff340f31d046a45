"""Claims as sentences."""

from __future__ import annotations

import pytest

from bayplan.explain.claims.pods import Lacks, WouldPreempt
from bayplan.explain.claims.wording import sentence


@pytest.mark.parametrize(
    ("also", "said"),
    [
        ((), "n1 lacks 1 cpu"),
        (("DynamicResources",), "n1 lacks 1 cpu and is also rejected by DynamicResources"),
        (
            ("DynamicResources", "TaintToleration"),
            "n1 lacks 1 cpu and is also rejected by DynamicResources and TaintToleration",
        ),
    ],
)
def test_a_node_that_lacks_room_is_said_to_be_rejected_by_other_filters(also: tuple[str, ...], said: str) -> None:
    assert sentence(Lacks(pod="default/web", node="n1", amounts={"cpu": "1"}, also=also)) == said


@pytest.mark.parametrize(
    ("victims", "said"),
    [
        (("default/a",), "would preempt default/a on n1, against a disruption budget."),
        (
            ("default/a", "default/b", "default/c"),
            "would preempt default/a, default/b and default/c on n1, 1 of them against a disruption budget.",
        ),
    ],
)
def test_pods_that_a_budget_covers_are_counted_and_not_budgets(victims: tuple[str, ...], said: str) -> None:
    claim = WouldPreempt(pod="default/vip", node="n1", victims=victims, violations=1)

    assert sentence(claim) == f"default/vip fits nowhere now, and {said}"
