"""Explanations agree with what kube-scheduler decided: reasons, counts, scores, ties, messages."""

from __future__ import annotations

from collections import Counter
from itertools import islice

import msgspec
import pytest
from tests.unit.explain.golden import Case, read_pod, scheduler_for, single_pod_cases

from bayplan.explain.builders import chosen_of, decide_on, decisive_plugin, now_claim, now_of
from bayplan.explain.claims.pods import Chosen, GoesTo, WouldPreempt
from bayplan.explain.claims.wording import sentence
from bayplan.explain.model import Now
from bayplan.explain.offline.case import decide_in_full
from bayplan.framework.queued import QueuedPod
from bayplan.loop.notes import funnel_of
from bayplan.loop.record import Points, Step
from bayplan.loop.recorder import DecisionRecorder
from bayplan.observe.clock import VirtualClock
from bayplan.testing import Harness, near, node, node_term, pod, require_nodes, taint

CASES = list(islice(single_pod_cases(), 220))


def explain(case: Case) -> tuple[Now, Case]:
    scheduler = scheduler_for(case)
    info = scheduler.info(read_pod(case))
    decision, result = decide_in_full(scheduler, info.pod)
    now = now_of(scheduler.framework(info.scheduler_name), decision, most=50)
    return msgspec.json.decode(msgspec.json.encode(now), type=Now), result


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_the_json_form_agrees_with_kube_scheduler(case: Case) -> None:
    expect = case["expect"]
    now, result = explain(case)

    assert result["nodes"] == expect["nodes"]
    assert _nonzero(result["scores"]) == _nonzero(expect["scores"])
    assert sorted(result["best"]) == sorted(expect["best"])
    assert result.get("message") == expect.get("message")
    if "prefilter" not in expect and not read_pod(case).status.nominated_node_name:
        _check_summary(now, expect)


def _nonzero(scores: dict[str, dict[str, int]]) -> dict[str, dict[str, int]]:
    return {node: {plugin: score for plugin, score in by.items() if score} for node, by in scores.items()}


def _check_summary(now: Now, expect: Case) -> None:
    """The small form says the same as the large one."""
    wanted = Counter((entry["plugin"], tuple(entry["reasons"])) for entry in expect["nodes"].values())
    found: Counter[tuple[str, tuple[str, ...]]] = Counter()
    for group in now.refused:
        found[group.plugin, tuple(sorted(group.reasons))] += group.count
    assert found == wanted
    assert now.feasible == len(expect["scores"])
    assert now.funnel[-1].left == now.feasible if now.funnel else True
    for best in now.best:
        scores = expect["scores"][best.node]
        assert best.total == scores["total"]
        mine = {plugin: points.weighted for plugin, points in best.points.items() if points.weighted}
        assert mine == {plugin: points for plugin, points in scores.items() if points and plugin != "total"}
    if now.node and now.ties > 1:
        assert now.tied == sorted(expect["best"])[:12]


def explained(harness: Harness, **spec: object) -> tuple[Now, object]:
    info = harness.info(pod("web", **spec))  # type: ignore[arg-type]
    decision = decide_on(harness.scheduler, info)
    framework = harness.scheduler.framework(info.scheduler_name)
    now = now_of(framework, decision)
    return now, now_claim(framework, info, decision, now)


def test_a_verdict_says_who_decided() -> None:
    now, claim = explained(Harness(nodes=[node("small", cpu=2), node("large", cpu=8)]), cpu=1)

    assert isinstance(claim, GoesTo) and claim.runner_up == "small"
    assert sentence(claim).startswith("default/web would go to large now with ")
    assert now.best[0].points["NodeResourcesFit"].raw is not None


def test_a_funnel_narrows_in_the_order_of_the_filters() -> None:
    steps = funnel_of({"B": 2, "A": 1, "PreFilter": 3}, ["A", "B"], 10)

    assert steps == (
        Step(plugin="PreFilter", rejected=3, left=7),
        Step(plugin="A", rejected=1, left=6),
        Step(plugin="B", rejected=2, left=4),
    )


def test_the_plugin_that_decides_gained_most() -> None:
    assert decisive_plugin(_points(X=10, Y=20), _points(X=15, Y=10)) == "Y"
    assert decisive_plugin(_points(X=10), _points(X=10)) == ""


def _points(**weighted: int) -> dict[str, Points]:
    return {plugin: Points(weighted=points, normalized=points) for plugin, points in weighted.items()}


def test_raw_scores_of_plugins_that_are_asked_each_time_are_filled_in() -> None:
    harness = Harness(
        nodes=[node("a", zone="z1"), node("b", zone="z2")], pods=[pod("db", labels={"app": "db"}, node="b")]
    )
    now, _ = explained(harness, affinity=near("topology.kubernetes.io/zone", {"app": "db"}, weight=50))

    assert now.best[0].node == "b"
    assert now.best[0].points["InterPodAffinity"].raw == 50


def test_a_record_explains_a_placed_pod() -> None:
    harness = Harness(nodes=[node("a", cpu=2), node("b", cpu=8), node("c", taints=[taint("x=y:NoSchedule")])])
    recorder = DecisionRecorder(VirtualClock())
    queued = QueuedPod(harness.info(pod("web", cpu=1)), 0.0)
    recorder.decided(queued, harness.scheduler.decide(queued.info), 0.001)
    recorder.bound(queued, "b", 0.01)
    claim = chosen_of(recorder.latest(1)[0])

    assert isinstance(claim, Chosen) and claim.plugin == "NodeResourcesFit"
    assert sentence(claim).startswith("default/web runs on b with ")


def test_nothing_of_the_cluster_changes() -> None:
    harness = Harness(nodes=[node("n1", cpu=2)], pods=[pod("low", cpu=2, node="n1", priority=0)])
    before = harness.cluster.generation
    _, claim = explained(harness, cpu=2, priority=100)

    assert isinstance(claim, WouldPreempt) and claim.victims == ("default/low",)
    assert harness.cluster.generation == before


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"cpu": "500"}, "default/web is pending: it asks 500 CPU; the largest node has 8 CPU."),
        (
            {"requests": {"nvidia.com/gpu": 1}},
            "default/web is pending: no node offers nvidia.com/gpu, and it asks 1 nvidia.com/gpu.",
        ),
        (
            {"node_selector": {"disk": "ssd"}},
            "default/web is pending: NodeAffinity refuses 2 of 2 nodes: "
            "node(s) didn't match Pod's node affinity/selector.",
        ),
    ],
)
def test_the_dominant_reason_comes_in_one_line_and_in_human_units(spec: dict[str, object], said: str) -> None:
    _, claim = explained(Harness(nodes=[node("a", cpu=2), node("b", cpu=8)]), **spec)

    assert sentence(claim) == said  # type: ignore[arg-type]


def test_of_as_many_nodes_those_that_lack_less_are_named() -> None:
    gpu = {"nvidia.com/gpu": 1}
    nodes = [node("a-cpu", cpu=2), node("b-gpu", cpu=2, allocatable=gpu)]
    running = [pod("full", cpu=2, node="a-cpu"), pod("first", node="b-gpu", requests=gpu)]
    _, claim = explained(Harness(nodes=nodes, pods=running), requests={"cpu": 1, **gpu})

    assert sentence(claim) == (  # type: ignore[arg-type]
        "default/web is pending: NodeResourcesFit refuses 1 of 2 nodes: Insufficient nvidia.com/gpu."
    )


def test_a_pod_that_names_its_node_waits_for_what_that_node_objects_to() -> None:
    """PreFilter leaves out all others, which says nothing."""
    nodes = [node(f"n{place}", cpu=2, unschedulable=place == 2) for place in range(9)]
    full = pod("full", cpu=2, node="n1")
    lacking = explained(Harness(nodes=nodes, pods=[full]), cpu=1, affinity=require_nodes(node_term(name="n1")))[1]
    cordoned = explained(Harness(nodes=nodes, pods=[full]), affinity=require_nodes(node_term(name="n2")))[1]
    absent = explained(Harness(nodes=nodes, pods=[full]), affinity=require_nodes(node_term(name="n9")))[1]

    assert [sentence(claim) for claim in (lacking, cordoned, absent)] == [  # type: ignore[arg-type]
        "default/web is pending: NodeResourcesFit refuses 1 of 9 nodes: Insufficient cpu.",
        "default/web is pending: NodeUnschedulable refuses 1 of 9 nodes: node(s) were unschedulable.",
        "default/web is pending: PreFilter refuses 9 of 9 nodes: node(s) didn't satisfy plugin(s) [NodeAffinity].",
    ]
