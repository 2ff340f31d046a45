"""One sentence for every outcome."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.explain.report import Context, report_of
from bayplan.explain.verdict import verdict


def say(result: dict[str, Any], **context: Any) -> str:
    settings = {"pod": "default/web", "node_count": 9, **context}
    return verdict(report_of({"nodes": {}, "scores": {}, "best": []} | result, Context(**settings)))


def scores(**totals: int) -> dict[str, Any]:
    best = max(totals.values())
    return {
        "scores": {name: {"Fit": total, "total": total} for name, total in totals.items()},
        "best": sorted(name for name, total in totals.items() if total == best),
    }


@pytest.mark.parametrize(
    ("totals", "sentence"),
    [
        ({"a": 7}, "default/web goes to a, the only one of 9 nodes that fits."),
        ({"a": 7, "b": 5}, "default/web goes to a with 7 points, 2 ahead of b; Fit decides."),
        ({"a": 1, "b": 0}, "default/web goes to a with 1 point, 1 ahead of b; Fit decides."),
        ({"a": 7, "b": 7}, "default/web goes to a with 7 points, as many as b (first by name)."),
        ({"a": 7, "b": 7, "c": 7}, "default/web goes to a with 7 points, as many as b and c (first by name)."),
        (
            dict.fromkeys("abcde", 7),
            "default/web goes to a with 7 points, as many as 4 nodes (b, c, d, …) (first by name).",
        ),
    ],
)
def test_a_placed_pod_says_how_close_it_was(totals: dict[str, int], sentence: str) -> None:
    assert say(scores(**totals), chosen="a") == sentence


def test_the_only_node_there_is_needs_no_comparison() -> None:
    assert say(scores(a=7), chosen="a", node_count=1) == "default/web goes to a."


def test_a_nomination_is_the_reason() -> None:
    expected = "default/web goes to b, which it had been nominated to."

    assert say(scores(a=7, b=5), chosen="b", nominated="b") == expected


def test_a_pending_pod_says_why_in_the_words_of_kube_scheduler() -> None:
    assert say({"message": "0/9 nodes are available: 9 full."}) == (
        "default/web stays pending: 0/9 nodes are available: 9 full."
    )


def test_victims_and_broken_budgets_are_named() -> None:
    preemption = {"victims": {"a": ["x/1", "x/2"]}, "pdbViolations": {"a": 2}, "nominatedNodes": ["a"]}

    assert say({"preemption": preemption}) == (
        "default/web fits nowhere now, and would preempt x/1 and x/2 on a, against 2 disruption budgets."
    )


def test_what_is_not_a_verdict_is_said_as_such() -> None:
    assert (
        say({"message": "waiting"}, gated_by="Gates") == "default/web is held back before scheduling by Gates: waiting."
    )
    assert say({"message": "oops"}, has_failed=True) == "default/web cannot be placed: oops."
