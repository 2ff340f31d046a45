"""Records of decisions beside what kube-scheduler answered: the funnel, the points of the best two nodes, the ties."""

from __future__ import annotations

from collections import Counter

import pytest
from tests.unit.explain.golden import Case, read_pod, scheduler_for, single_pod_cases

from bayplan.framework.queued import QueuedPod
from bayplan.loop.decide import Decision
from bayplan.loop.notes import BEFORE_FILTERS
from bayplan.loop.record import DecisionRecord, Points
from bayplan.loop.recorder import DecisionRecorder
from bayplan.observe.clock import VirtualClock
from bayplan.testing import Harness, apart, node, pod, spread

ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
PLACED = [case for case in single_pod_cases() if "message" not in case["expect"]]
SCORED = [case for case in PLACED if case["expect"].get("scores")]


def of_case(case: Case) -> DecisionRecord:
    scheduler, recorder = scheduler_for(case), DecisionRecorder(VirtualClock())
    info = scheduler.info(read_pod(case))
    recorder.cluster = scheduler.cache.cluster
    return recorded(recorder, QueuedPod(info, 0.0), scheduler.decide(info))


def recorded(recorder: DecisionRecorder, queued: QueuedPod, decision: Decision) -> DecisionRecord:
    recorder.decided(queued, decision, 0.001)
    return recorder.latest(1)[0]


def weighted(points: dict[str, Points]) -> dict[str, int]:
    return {plugin: each.weighted for plugin, each in points.items() if each.weighted}


@pytest.mark.parametrize("case", PLACED, ids=lambda case: case["id"])
def test_the_funnel_of_a_placed_pod_has_the_nodes_that_each_filter_refused(case: Case) -> None:
    record = of_case(case)
    refused = Counter(entry["plugin"] or BEFORE_FILTERS for entry in case["expect"].get("nodes", {}).values())

    assert {step.plugin: step.rejected for step in record.funnel} == refused
    assert record.nodes - refused.total() == record.feasible


@pytest.mark.parametrize("case", SCORED, ids=lambda case: case["id"])
def test_the_points_of_the_best_two_nodes_are_recorded(case: Case) -> None:
    record, scores = of_case(case), case["expect"]["scores"]
    by_plugin = {name: {k: v for k, v in each.items() if v and k != "total"} for name, each in scores.items()}
    totals = {name: each["total"] for name, each in scores.items()}
    others = [total for name, total in totals.items() if name != record.node]

    if not record.points:  # of the one node that fits nothing is scored
        assert (record.chosen_by, record.feasible) == ("only node", 1)
        return
    assert weighted(record.points) == by_plugin[record.node]
    assert (record.total, record.ties) == (max(totals.values()), list(totals.values()).count(max(totals.values())))
    assert (record.runner_up is None) == (not others)
    if record.runner_up is not None:
        assert record.runner_up.total == max(others) == totals[record.runner_up.node]
        assert weighted(record.runner_up.points) == by_plugin[record.runner_up.node]


def test_filters_that_look_at_other_pods_are_in_the_funnel_of_a_placed_pod() -> None:
    nodes = [node(f"n{place}", zone=f"z{place % 2}", hostname=f"n{place}") for place in range(4)]
    running = [pod("first", node="n0", labels={"app": "web"}), pod("alone", node="n1", labels={"app": "db"})]
    harness = Harness(nodes=nodes, pods=running)
    even, away = [spread(ZONE, {"app": "web"})], apart(HOSTNAME, {"app": "db"})
    waiting = pod("web", labels={"app": "web"}, spread=even, affinity=away)
    recorder, info = DecisionRecorder(VirtualClock()), harness.info(waiting)
    recorder.cluster = harness.cluster
    record = recorded(recorder, QueuedPod(info, 0.0), harness.scheduler.decide(info))

    assert [(step.plugin, step.left) for step in record.funnel] == [("PodTopologySpread", 2), ("InterPodAffinity", 1)]
    assert (record.node, record.feasible) == ("n3", 1)
