"""A case's result, read as a report."""

from __future__ import annotations

from typing import Any

from bayplan.explain.report import Context, Outcome, PodReport, report_of


def refused(plugin: str, *reasons: str, code: str = "Unschedulable") -> dict[str, Any]:
    return {"code": code, "plugin": plugin, "reasons": list(reasons)}


def report(result: dict[str, Any], **context: Any) -> PodReport:
    settings = {"pod": "default/web", "node_count": 5, "filters": ("A", "B", "C"), **context}
    return report_of({"nodes": {}, "scores": {}, "best": []} | result, Context(**settings))


SCORES = {
    "n1": {"Fit": 40, "Taints": 10, "total": 50},
    "n2": {"Fit": 30, "Taints": 30, "total": 60},
    "n3": {"Fit": 50, "total": 50},
}


def test_the_funnel_follows_the_order_of_the_filters() -> None:
    nodes = {"n1": refused("C", "x"), "n2": refused("A", "y"), "n3": refused("C", "x"), "n4": refused("Extender", "z")}

    assert [(step.plugin, step.rejected, step.left) for step in report({"nodes": nodes}).funnel] == [
        ("A", 1, 4),
        ("C", 2, 2),
        ("Extender", 1, 1),
    ]


def test_nodes_that_were_never_looked_at_come_first() -> None:
    nodes = {"n1": refused("A", "y"), "n2": refused("", "node(s) didn't satisfy plugin(s) [NodeAffinity]")}

    assert [(step.plugin, step.left) for step in report({"nodes": nodes}).funnel] == [("PreFilter", 4), ("A", 3)]


def test_a_pod_rejected_before_filters_leaves_no_node() -> None:
    shown = report({"prefilter": refused("VolumeBinding", "no claim"), "message": "0/5 nodes are available: no claim."})

    assert [(step.plugin, step.left) for step in shown.funnel] == [("VolumeBinding", 0)]
    assert [(entry.plugin, entry.nodes) for entry in shown.refusals] == [("VolumeBinding", ())]
    assert shown.outcome is Outcome.PENDING


def test_nodes_are_ranked_by_points_then_by_name() -> None:
    assert [entry.node for entry in report({"scores": SCORES, "best": ["n2"]}, chosen="n2").ranking] == [
        "n2",
        "n1",
        "n3",
    ]


def test_the_margin_names_the_runner_up_and_who_made_the_difference() -> None:
    margin = report({"scores": SCORES, "best": ["n2"]}, chosen="n2").margin

    assert margin is not None
    assert (margin.runner_up, margin.points, margin.plugin) == ("n1", 10, "Taints")


def test_a_tie_has_a_margin_of_nothing() -> None:
    scores = {"n1": SCORES["n1"], "n3": SCORES["n3"]}
    shown = report({"scores": scores, "best": ["n1", "n3"]}, chosen="n1")

    assert shown.margin is not None
    assert (shown.margin.points, shown.margin.plugin) == (0, "")
    assert shown.ties == ("n1", "n3")
    assert shown.total == 50


def test_a_node_taken_for_its_nomination_has_no_margin() -> None:
    shown = report({"scores": SCORES, "best": ["n1"]}, chosen="n1", nominated="n1")

    assert shown.margin is None
    assert shown.outcome is Outcome.SCHEDULED


def test_one_node_has_no_margin() -> None:
    assert report({"scores": {"n1": SCORES["n1"]}, "best": ["n1"]}, chosen="n1").margin is None


def test_refusals_are_grouped_the_most_frequent_first() -> None:
    nodes = {
        "n3": refused("B", "full"),
        "n1": refused("B", "full"),
        "n2": refused("A", "tainted", code="UnschedulableAndUnresolvable"),
    }
    shown = report({"nodes": nodes}).refusals

    assert [(entry.plugin, entry.reasons, entry.nodes, entry.is_final) for entry in shown] == [
        ("B", ("full",), ("n1", "n3"), False),
        ("A", ("tainted",), ("n2",), True),
    ]


def test_candidates_start_with_the_chosen_one() -> None:
    preemption = {
        "victims": {"n1": ["default/a"], "n2": ["default/b", "default/c"]},
        "pdbViolations": {"n1": 1, "n2": 0},
        "nominatedNodes": ["n2"],
    }
    shown = report({"preemption": preemption, "message": "0/5 nodes are available: 5 full."})

    assert [(c.node, c.victims, c.budget_violations, c.is_chosen) for c in shown.candidates] == [
        ("n2", ("default/b", "default/c"), 0, True),
        ("n1", ("default/a",), 1, False),
    ]
    assert shown.outcome is Outcome.PREEMPTS


def test_outcomes_that_are_no_verdict() -> None:
    assert report({"message": "waiting"}, gated_by="SchedulingGates").outcome is Outcome.GATED
    assert report({"message": "broken"}, has_failed=True).outcome is Outcome.FAILED
