"""TopologyScheduling: the chain of nodes it chooses is the best of all chains."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.plugins.network import job, metrics

from bayplan.framework import QueuedPod
from bayplan.plugins.community.topology_scheduling import Link, best_chain
from bayplan.plugins.distributed_jobs import NetworkTables
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


NAMES = ["a", "b", "c", "d", "e"]
numbers = st.integers(0, 8).map(float)
tables = st.dictionaries(st.sampled_from(NAMES), st.dictionaries(st.sampled_from(NAMES), numbers))
links = st.tuples(numbers, numbers, numbers, numbers).map(lambda four: Link(*four))


def _score(chain: tuple[str, ...], network: NetworkTables, wanted: list[Link]) -> float | None:
    total = 0.0
    for link, source, target in zip(wanted, chain, chain[1:], strict=False):
        bandwidth, latency = network.bandwidth_between(source, target), network.latency_between(source, target)
        if bandwidth < link.least_bandwidth or latency > link.most_latency:
            return None
        if bandwidth >= link.wanted_bandwidth or latency <= link.wanted_latency:
            total += 200
            continue
        total += (bandwidth - link.least_bandwidth) / (link.wanted_bandwidth - link.least_bandwidth) * 100
        total += (link.most_latency - latency) / (link.most_latency - link.wanted_latency) * 100
    return total + 200 * max(0, len(chain) - 1 - len(wanted))


@given(bandwidth=tables, latency=tables, wanted=st.lists(links, max_size=3), length=st.integers(1, 4))
def test_no_chain_scores_higher(
    bandwidth: dict[str, dict[str, float]], latency: dict[str, dict[str, float]], wanted: list[Link], length: int
) -> None:
    network = NetworkTables(bandwidth=bandwidth, latency=latency)
    wanted = wanted[: length - 1]
    scores = {chain: _score(chain, network, wanted) for chain in combinations(NAMES, length)}
    highest = max((score for score in scores.values() if score is not None), default=None)

    found = best_chain(NAMES, network, wanted, length=length)

    assert (found is None) == (highest is None)
    if found is not None:
        assert scores[tuple(found)] == pytest.approx(highest)


def test_fewer_nodes_than_workloads_have_no_chain() -> None:
    assert best_chain(["a"], NetworkTables(), [], length=2) is None


def test_two_thousand_nodes_and_twelve_workloads_are_no_trouble() -> None:
    names = [f"n{number:04}" for number in range(2000)]

    chain = best_chain(names, NetworkTables(), [], length=12)

    assert chain == names[:12]
