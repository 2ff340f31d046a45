"""The Filter phase: nodes with nominated pods, looked at one by one or all at once, give the same answers."""

from __future__ import annotations

from random import Random

import pytest

from bayplan.api.pod import Pod
from bayplan.framework import CycleState, NodeInfo, Plugin, PodInfo, Status, Unschedulable
from bayplan.framework.runtime import filtering, node_calls
from bayplan.testing import ZONE, Harness, Outcome, near, node, pod

NODES = 24


def busy_cluster(rng: Random) -> tuple[list[Pod], Pod]:
    """Running pods and many nominated ones, and a pod that finds room on some nodes only."""
    running = [pod(f"r{i}", cpu=rng.choice([1, 2, 3]), host_ports=[80], node=f"n{i}") for i in range(0, NODES, 2)]
    nominated = [
        pod(
            f"w{i}",
            cpu=rng.choice([0, 1, 2, 4]),
            memory=rng.choice(["1Gi", "8Gi", "30Gi"]),
            priority=rng.choice([0, 5, 9]),
            nominated=f"n{rng.randrange(NODES)}",
        )
        for i in range(30)
    ]
    ports = [80] if rng.random() < 0.3 else []
    return [*running, *nominated], pod("new", cpu=rng.choice([1, 3]), memory="4Gi", priority=5, host_ports=ports)


def outcome(pods: list[Pod], new: Pod) -> Outcome:
    nodes = [node(f"n{i}", cpu=4, memory="32Gi", pods=2) for i in range(NODES)]
    return Harness(nodes=nodes, pods=pods).schedule(new)


@pytest.mark.parametrize("seed", range(12))
def test_nominated_pods_count_alike_one_by_one_and_all_at_once(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    pods, new = busy_cluster(Random(seed))
    monkeypatch.setattr(filtering, "_ONE_BY_ONE_UP_TO", NODES)
    one_by_one = outcome(pods, new)
    monkeypatch.setattr(filtering, "_ONE_BY_ONE_UP_TO", 0)
    at_once = outcome(pods, new)

    assert at_once == one_by_one


def test_a_nominated_pod_that_is_on_the_node_already_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filtering, "_ONE_BY_ONE_UP_TO", 0)
    harness = Harness(nodes=[node("n1", cpu=4)], pods=[pod("waiting", cpu=2, priority=5, nominated="n1")])
    harness.scheduler.cache.add_pod(pod("waiting", cpu=2, priority=5, node="n1"))

    assert harness.schedule(pod("new", cpu=2)).is_scheduled


def test_nominations_to_nodes_that_are_gone_stand_in_nobodys_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filtering, "_ONE_BY_ONE_UP_TO", 0)

    assert Harness(nodes=["n1"], pods=[pod("waiting", nominated="ghost")]).schedule(pod("new")).is_scheduled


def test_filters_that_reject_nobody_leave_what_is_remembered_alone() -> None:
    running = [pod(f"r{i}", labels={"app": "web"}, node=f"n{i}") for i in range(2)]
    harness = Harness(nodes=[node("n0", zone="a"), node("n1", zone="b")], pods=running)
    near_zone = pod("web", labels={"app": "web"}, affinity=near(ZONE, {"app": "web"}))

    everywhere = harness.scheduler.decide(harness.info(near_zone)).outcome
    harness.scheduler.cache.add_node(node("n2", zone="c"))
    not_everywhere = harness.scheduler.decide(harness.info(near_zone)).outcome

    assert everywhere is not None
    assert (everywhere.passing, everywhere.count) == (None, 2)
    assert not_everywhere is not None
    assert not_everywhere.feasible_rows().tolist() == [0, 1]
    assert [(status.plugin, rows.tolist()) for status, rows in not_everywhere.groups()] == [("InterPodAffinity", [2])]


def test_reasons_that_name_the_pod_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_calls, "_MOST_STATUSES", 20)

    class NamesPod(Plugin):
        """Refuses every node with a reason of its own."""

        name = "NamesPod"

        def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
            return Unschedulable(f"{pod.name} is refused")

    harness = Harness(nodes=["n1"], plugins=[NamesPod])
    messages = [harness.schedule(pod(f"p{number}")).message for number in range(90)]
    calls = harness.framework().filter_calls
    (call,) = [each for each in calls if each.name == "NamesPod"]

    assert all(f"p{number} is refused" in message for number, message in enumerate(messages))
    assert len(call._statuses) <= 22
