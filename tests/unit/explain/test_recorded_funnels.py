"""The funnel of a record: filters that rejected nodes, down to the nodes that fitted, whatever the filters look at."""

from __future__ import annotations

from collections import Counter

from tests.unit.explain.golden import Case, read_pod, scheduler_for, single_pod_cases

from bayplan.framework.queued import QueuedPod
from bayplan.loop.decide import Decision
from bayplan.loop.notes import BEFORE_FILTERS
from bayplan.loop.record import DecisionRecord
from bayplan.loop.recorder import DecisionRecorder
from bayplan.observe.clock import VirtualClock
from bayplan.testing import Harness, apart, node, pod, spread

ZONE = "topology.kubernetes.io/zone"


def of_case(case: Case) -> tuple[Decision, DecisionRecord]:
    scheduler, recorder = scheduler_for(case), DecisionRecorder(VirtualClock())
    info = scheduler.info(read_pod(case))
    decision = scheduler.decide(info)
    recorder.cluster = scheduler.cache.cluster
    recorder.decided(QueuedPod(info, 0.0), decision, 0.001)
    return decision, recorder.latest(1)[0]


def counted(decision: Decision) -> dict[str, int]:
    """By filter, the nodes with its status."""
    found: Counter[str] = Counter()
    for status, rows in decision.rejected_groups():
        found[status.plugin] += len(rows)
    return found


def test_the_funnel_of_every_reference_case_ends_with_the_nodes_that_fit() -> None:
    for case in single_pod_cases():
        decision, record = of_case(case)
        steps = {step.plugin: step.rejected for step in record.funnel}

        assert record.nodes - sum(steps.values()) == record.feasible, case["id"]
        steps.pop(BEFORE_FILTERS, None)
        assert not record.node or steps == counted(decision), case["id"]


def test_filters_that_look_at_other_pods_are_in_the_funnel_of_a_placed_pod() -> None:
    nodes = [node(f"n{place}", zone=f"z{place % 2}", hostname=f"n{place}") for place in range(4)]
    web = {"labels": {"app": "web"}}
    harness = Harness(nodes=nodes, pods=[pod("first", node="n0", **web), pod("alone", node="n1", labels={"app": "db"})])
    waiting = pod(
        "web", **web, spread=[spread(ZONE, {"app": "web"})], affinity=apart("kubernetes.io/hostname", {"app": "db"})
    )
    recorder, info = DecisionRecorder(VirtualClock()), harness.info(waiting)
    recorder.cluster = harness.cluster
    recorder.decided(QueuedPod(info, 0.0), harness.scheduler.decide(info), 0.001)
    (record,) = recorder.latest(1)

    assert (record.node, record.feasible) == ("n3", 1)
    assert [(step.plugin, step.left) for step in record.funnel] == [("PodTopologySpread", 2), ("InterPodAffinity", 1)]
