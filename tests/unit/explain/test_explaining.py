"""Explanations agree with what kube-scheduler decided: reasons, counts, scores, ties, messages."""

from __future__ import annotations

from collections import Counter
from itertools import islice

import msgspec
import pytest
from tests.unit.explain.golden import Case, read_pod, scheduler_for, single_pod_cases

from bayplan.explain.explaining import explained, explained_from_record, funnel_of, lead_of
from bayplan.explain.explanation import Explanation, Step
from bayplan.framework.queued import QueuedPod
from bayplan.loop.record import Points, ScoredNode
from bayplan.loop.recorder import DecisionRecorder
from bayplan.observe.clock import VirtualClock
from bayplan.testing import Harness, node, pod, taint

CASES = list(islice(single_pod_cases(), 220))


def explain(case: Case) -> Explanation:
    scheduler = scheduler_for(case)
    explanation = explained(scheduler, scheduler.info(read_pod(case)), in_full=True, best=50)
    return msgspec.json.decode(msgspec.json.encode(explanation), type=Explanation)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_the_json_form_agrees_with_kube_scheduler(case: Case) -> None:
    expect, explanation = case["expect"], explain(case)
    result = explanation.result
    assert result is not None

    assert result["nodes"] == expect["nodes"]
    assert _nonzero(result["scores"]) == _nonzero(expect["scores"])
    assert sorted(result["best"]) == sorted(expect["best"])
    assert result.get("message") == expect.get("message")
    if "prefilter" not in expect and not read_pod(case).status.nominated_node_name:
        _check_summary(explanation, expect)


def _nonzero(scores: dict[str, dict[str, int]]) -> dict[str, dict[str, int]]:
    return {node: {plugin: score for plugin, score in by.items() if score} for node, by in scores.items()}


def _check_summary(explanation: Explanation, expect: Case) -> None:
    """The small form says the same as the large one."""
    wanted = Counter((entry["plugin"], tuple(entry["reasons"])) for entry in expect["nodes"].values())
    found: Counter[tuple[str, tuple[str, ...]]] = Counter()
    for group in explanation.refused:
        found[group.plugin, tuple(sorted(group.reasons))] += group.count
    assert found == wanted
    assert explanation.feasible == len(expect["scores"])
    assert explanation.funnel[-1].left == explanation.feasible if explanation.funnel else True
    for best in explanation.best:
        scores = expect["scores"][best.node]
        assert best.total == scores["total"]
        mine = {plugin: points.weighted for plugin, points in best.points.items() if points.weighted}
        assert mine == {plugin: points for plugin, points in scores.items() if points and plugin != "total"}
    if explanation.fits and explanation.tie_count > 1:
        assert explanation.ties == sorted(expect["best"])[:12]


def test_a_verdict_says_who_decided() -> None:
    harness = Harness(nodes=[node("small", cpu=2), node("large", cpu=8)])
    explanation = explained(harness.scheduler, harness.info(pod("web", cpu=1)))

    assert explanation.verdict.startswith("default/web would go to large now with ")
    assert explanation.lead is not None and explanation.lead.runner_up == "small"
    assert explanation.best[0].points["NodeResourcesFit"].raw is not None


def test_a_funnel_narrows_in_the_order_of_the_filters() -> None:
    steps = funnel_of({"B": 2, "A": 1, "PreFilter": 3}, ["A", "B"], 10)

    assert steps == [
        Step(plugin="PreFilter", rejected=3, left=7),
        Step(plugin="A", rejected=1, left=6),
        Step(plugin="B", rejected=2, left=4),
    ]


def test_the_plugin_that_decides_gained_most() -> None:
    first = ScoredNode(node="a", total=30, points=_points(X=10, Y=20))
    second = ScoredNode(node="b", total=25, points=_points(X=15, Y=10))
    lead = lead_of([first, second])

    assert lead is not None
    assert (lead.runner_up, lead.points, lead.plugin) == ("b", 5, "Y")
    assert lead_of([first]) is None


def _points(**weighted: int) -> dict[str, Points]:
    return {plugin: Points(weighted=points, normalized=points) for plugin, points in weighted.items()}


def test_raw_scores_of_plugins_that_are_asked_each_time_are_filled_in() -> None:
    from bayplan.testing import near

    harness = Harness(
        nodes=[node("a", zone="z1"), node("b", zone="z2")], pods=[pod("db", labels={"app": "db"}, node="b")]
    )
    web = pod("web", affinity=near("topology.kubernetes.io/zone", {"app": "db"}, weight=50))
    best = explained(harness.scheduler, harness.info(web)).best

    raw = {plugin: points.raw for plugin, points in best[0].points.items()}
    assert best[0].node == "b"
    assert raw["InterPodAffinity"] == 50


def test_a_record_explains_a_placed_pod() -> None:
    harness = Harness(nodes=[node("a", cpu=2), node("b", cpu=8), node("c", taints=[taint("x=y:NoSchedule")])])
    recorder = DecisionRecorder(VirtualClock())
    queued = QueuedPod(harness.info(pod("web", cpu=1)), 0.0)
    recorder.decided(queued, harness.scheduler.decide(queued.info), 0.001)
    recorder.bound(queued, "b", 0.01)

    explanation = explained_from_record(recorder.latest(1)[0])

    assert explanation.verdict.startswith("default/web runs on b with ")
    assert [step.plugin for step in explanation.funnel] == ["TaintToleration"]


def test_nothing_of_the_cluster_changes() -> None:
    harness = Harness(nodes=[node("n1", cpu=2)], pods=[pod("low", cpu=2, node="n1", priority=0)])
    before = harness.cluster.generation
    explanation = explained(harness.scheduler, harness.info(pod("high", cpu=2, priority=100)))

    assert explanation.victims is not None and explanation.victims.pods == ["default/low"]
    assert harness.cluster.generation == before
