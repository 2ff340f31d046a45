"""TopologyScheduling: one chain for the whole job, found at once."""

from __future__ import annotations

from tests.unit.plugins.community.network import job, metrics

from bayplan.framework import QueuedPod
from bayplan.testing import Harness, expect, node, pod

WANTS = {"limits": 10, "requests": 100, "latency_limits": 50, "latency_requests": 1}
JOB = job([("a", None, ""), ("b", WANTS, "")])
FIRST, SECOND = pod("first", labels={"resource": "a"}), pod("second", labels={"resource": "b"})
CONFIG = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [
        {
            "plugins": {
                "multiPoint": {"enabled": [{"name": "TopologyScheduling"}], "disabled": [{"name": "PrioritySort"}]}
            }
        }
    ],
}


def _harness(*objects: object, nodes: tuple[object, ...] = ("n1", "n2", "n3")) -> Harness:
    return Harness(nodes=nodes, objects=objects, config=CONFIG)  # type: ignore[arg-type]


def test_each_workload_gets_its_place_in_the_best_chain() -> None:
    tables = metrics({"n1": {"n2": 20, "n3": 20}, "n2": {"n3": 100}}, {"n1": {"n2": 9, "n3": 9}, "n2": {"n3": 9}})
    harness = _harness(JOB, tables)

    expect(harness.schedule(FIRST)).scheduled_on("n2")
    outcome = harness.schedule(SECOND)

    expect(outcome).scheduled_on("n3").rejected_because("node(s) were not chosen for this workload", on="n1")


def test_no_chain_within_the_limits_is_refused() -> None:
    outcome = _harness(JOB, metrics({"n1": {"n2": 9}}, {})).schedule(FIRST)

    expect(outcome).message_says("no nodes have the bandwidth and latency that the DistributedJob needs")


def test_control_planes_and_nodes_with_reserved_cpu_are_left_out() -> None:
    boss = node("n1", labels={"node-role.kubernetes.io/control-plane": ""})
    partly = node("n2", cpu=4)
    partly.status.capacity = {"cpu": "5"}
    tables = metrics({"n1": {"n3": 500}, "n2": {"n4": 500}, "n3": {"n4": 50}}, {"n3": {"n4": 9}})
    harness = _harness(JOB, tables, nodes=(boss, partly, "n3", "n4"))

    expect(harness.schedule(FIRST)).scheduled_on("n3")


def test_missing_objects_are_reasons() -> None:
    expect(_harness(JOB).schedule(FIRST)).message_says("failed to get network metrics")
    expect(_harness(metrics({}, {})).schedule(FIRST)).message_says("failed to get DistributedJob CRD: no")
    stranger = pod("stranger", labels={"resource": "unknown"})
    expect(_harness(JOB, metrics({}, {})).schedule(stranger)).message_says("no place in the DistributedJob's order")


def test_pods_without_the_label_are_left_alone() -> None:
    expect(_harness().explain(pod("web"))).accepted("n1", "n2", "n3")


def test_a_filter_without_pre_filter_is_an_error_and_not_a_loop() -> None:
    points = {"preFilter": {"disabled": [{"name": "TopologyScheduling"}]}}
    multi = CONFIG["profiles"][0]["plugins"]["multiPoint"]  # type: ignore[index]
    config = {**CONFIG, "profiles": [{"plugins": {"multiPoint": multi, **points}}]}

    outcome = Harness(nodes=["n1"], config=config).schedule(FIRST)

    expect(outcome).failed("enable TopologyScheduling at preFilter as well as at filter")


def test_workloads_queue_in_their_order_before_everybody_else() -> None:
    harness = _harness(JOB)
    plugin = harness.plugin("TopologyScheduling")
    waiting = [
        QueuedPod(harness.info(each), timestamp)
        for each, timestamp in ((pod("urgent", priority=9), 1.0), (SECOND, 2.0), (FIRST, 3.0), (pod("old"), 0.0))
    ]

    ordered = [queued.info.name for queued in sorted(waiting, key=plugin.sort_key)]

    assert ordered == ["first", "second", "urgent", "old"]
