"""The scheduler on a virtual clock: what happens, when, and the same each time."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import pytest

from bayplan.api.meta import OwnerReference
from bayplan.api.pod import Pod
from bayplan.app.settings import Settings, resolve_settings
from bayplan.config.loading import default_config, load_config
from bayplan.framework import CycleState, Plugin, PodInfo, Status, Wait
from bayplan.loop.observer import Observer
from bayplan.plugins.intree import default_registry
from bayplan.sim.engine.node_events import NodeFailures, drain, remove_node
from bayplan.sim.engine.simulation import Simulation, SimulationError, SimulationOptions
from bayplan.sim.engine.world import WorldListener
from bayplan.testing import cluster, node, pod
from bayplan.testing.parts import toleration


def settings(*plugins: type[Plugin]) -> Settings:
    registry = default_registry()
    names = [registry.add(plugin).name for plugin in plugins]
    return resolve_settings(default_config(), registry, enable=names)


class Diary(WorldListener):
    """When pods were bound and when they were gone."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self.lines: list[tuple[float, str, str]] = []
        simulation.listeners.append(self)

    def pod_bound(self, pod: Pod) -> None:
        self.lines.append((round(self._simulation.now, 2), pod.name, pod.spec.node_name))

    def pod_gone(self, pod: Pod, reason: str) -> None:
        self.lines.append((round(self._simulation.now, 2), pod.name, reason))


def simulation(
    *nodes: Any, plugins: Sequence[type[Plugin]] = (), observers: Sequence[Observer] = (), **options: Any
) -> tuple[Simulation, Diary]:
    made = Simulation(settings(*plugins), SimulationOptions(**options), observers)
    made.load(nodes)
    return made, Diary(made)


def arrive(made: Simulation, time: float, each: Pod, duration: float | None = None) -> None:
    made.timeline.at(time, lambda: made.submit(each, duration_seconds=duration))


def test_a_pod_arrives_runs_and_ends() -> None:
    made, diary = simulation(node("n1"))
    arrive(made, 5.0, pod("web"), 60.0)
    made.run()

    assert diary.lines == [(5.0, "web", "n1"), (65.0, "web", "Finished")]


def test_a_pod_that_fits_nowhere_gets_the_room_of_one_that_ends() -> None:
    made, diary = simulation(node("n1", cpu=4))
    arrive(made, 0.0, pod("first", cpu=3), 100.0)
    arrive(made, 1.0, pod("second", cpu=3), 10.0)
    made.run()

    assert diary.lines == [
        (0.0, "first", "n1"),
        (100.0, "first", "Finished"),
        (100.0, "second", "n1"),
        (110.0, "second", "Finished"),
    ]


def test_a_pod_waits_for_a_node_that_comes_later() -> None:
    made, diary = simulation(node("small", cpu=1))
    arrive(made, 0.0, pod("large", cpu=3))
    made.timeline.at(3600.0, lambda: made.world.put(node("n2", cpu=4)))
    made.run()

    assert diary.lines == [(3600.0, "large", "n2")]


def test_an_urgent_pod_evicts_another_and_takes_its_place_once_that_is_gone() -> None:
    made, diary = simulation(node("n1", cpu=4), shutdown_seconds=30.0)
    arrive(made, 0.0, pod("low", cpu=3, priority=0))
    arrive(made, 10.0, pod("high", cpu=3, priority=1000))
    made.run()

    assert diary.lines == [(0.0, "low", "n1"), (40.0, "low", "Deleted"), (40.0, "high", "n1")]


class HoldsForTen(Plugin):
    """Makes every pod wait for ten seconds, and then nobody allows it."""

    def permit(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        return Wait(10.0)


def test_a_wait_at_permit_ends_on_the_virtual_clock() -> None:
    refused: list[str] = []

    class Refusals(Observer):
        def refused_after_choice(self, info: PodInfo, node_name: str, point: str, status: Status) -> None:
            refused.append(status.message)

    made, diary = simulation(node("n1"), plugins=[HoldsForTen], observers=[Refusals()], until_seconds=15.0)
    arrive(made, 1.0, pod("web"))
    made.run()

    assert refused == ["rejected due to timeout after waiting 10s at plugin HoldsForTen"]
    assert diary.lines == []


class FailsThreeTimes(Plugin):
    """A plugin with a defect that passes."""

    def setup(self) -> None:
        self.calls = 0

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        self.calls += 1
        if self.calls <= 3:
            raise RuntimeError("not yet")
        return None


def test_after_errors_a_pod_is_tried_again_with_growing_back_off() -> None:
    """One, two and four seconds, each counted from the start of a second."""
    made, diary = simulation(node("n1"), plugins=[FailsThreeTimes])
    arrive(made, 0.0, pod("web"))
    made.run()

    assert diary.lines == [(10.0, "web", "n1")]


def test_without_retries_a_pod_that_fits_nowhere_is_withdrawn() -> None:
    made, diary = simulation(node("n1", cpu=1), retries=False)
    arrive(made, 0.0, pod("large", cpu=3))
    made.run()

    assert diary.lines == [(0.0, "large", "Withdrawn")]
    assert made.core.queue.sizes.unschedulable == 0


def test_a_run_that_nothing_can_help_any_more_ends_by_itself() -> None:
    made, diary = simulation(node("n1", cpu=1))
    arrive(made, 0.0, pod("large", cpu=3))
    made.run()

    assert diary.lines == []
    assert made.now < 60.0


def test_a_run_ends_at_its_time() -> None:
    made, _ = simulation(node("n1"), until_seconds=30.0)
    arrive(made, 0.0, pod("web"), 1000.0)
    made.run()

    assert made.now == 30.0
    assert [each.name for each in made.world.pods.values()] == ["web"]


def test_extenders_are_refused() -> None:
    config = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
extenders: [{urlPrefix: "http://127.0.0.1:1", filterVerb: filter}]
"""
    with pytest.raises(SimulationError, match="extenders"):
        Simulation(resolve_settings(load_config(config), default_registry()))


CROWD = """
from bayplan.sim.ledger import digest
from tests.unit.sim.crowd import run_crowd
print(digest(run_crowd(seed=7).decisions))
"""


def test_two_processes_make_the_same_decisions_whatever_the_order_of_their_hashes() -> None:
    found = [
        subprocess.run(
            [sys.executable, "-c", CROWD],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]

    assert found[0] == found[1] != ""


async def test_the_same_pods_get_the_same_nodes_on_the_embedded_cluster() -> None:
    """One after the other, so that both schedulers see the same cluster before each. The simulation has an event loop
    of its own, hence the thread."""
    nodes = [node(f"n{number}", cpu=4 + number % 3, zone=f"z{number % 2}") for number in range(6)]
    pods = [pod(f"p{number}", cpu=f"{400 + 200 * (number % 4)}m", labels={"app": "web"}) for number in range(20)]
    made, diary = simulation(*nodes, seed=5)
    for number, each in enumerate(pods):
        arrive(made, float(number), each)
    async with cluster(nodes=nodes, seed=5) as local:
        live = []
        for each in pods:
            await local.create(each)
            live.append((each.name, await local.node_of(each.name)))
    await asyncio.to_thread(made.run)

    assert [(name, where) for _, name, where in diary.lines] == live


# Workloads as on a cluster


def test_a_pod_that_names_its_node_runs_there_without_the_scheduler() -> None:
    """As a static pod, or one of a controller that binds by itself: it holds its room until it ends."""
    made, diary = simulation(node("n1", cpu=2))
    arrive(made, 5.0, pod("own", cpu=2, node="n1"), 60.0)
    arrive(made, 10.0, pod("web", cpu=2))
    made.run()

    assert diary.lines == [(5.0, "own", "n1"), (65.0, "own", "Finished"), (65.0, "web", "n1")]


def test_pods_of_a_dump_that_end_already_leave_their_nodes() -> None:
    leaving = pod("old", cpu=2, node="n1", terminating=True)
    made, diary = simulation(node("n1", cpu=2), leaving, pod("never-run", terminating=True))
    arrive(made, 5.0, pod("web", cpu=2))
    made.run()

    assert diary.lines == [(1.0, "old", "Deleted"), (5.0, "web", "n1")]


class HoldsForTwoMinutes(Plugin):
    """Makes every pod wait, and allows it in the end."""

    def permit(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        self.handle.call_later(120.0, lambda: self._allow(pod))
        return Wait(600.0)

    def _allow(self, pod: PodInfo) -> None:
        held = self.handle.waiting_pods.get(pod.uid)
        if held is not None:
            held.allow(self.name)


FAILURE: Any = {"every_seconds": 1.0, "repaired_seconds": 100.0, "pods_lost_seconds": 10.0}


@pytest.mark.parametrize(
    "event", [drain, remove_node, lambda made, name: NodeFailures(**FAILURE, simulation=made).start()]
)
def test_what_happens_to_a_node_leaves_pods_alone_that_wait_at_permit_for_it(event: Any) -> None:
    """They are on no node yet, and `kubectl drain` does not see them."""
    made, diary = simulation(node("n1"), plugins=[HoldsForTwoMinutes], until_seconds=200.0)
    arrive(made, 5.0, pod("web"))
    made.timeline.at(10.0, lambda: event(made, "n1"))
    made.run()

    assert diary.lines[:1] == [(125.0, "web", "n1")]


@pytest.mark.parametrize("shutdown", [1.0, 300.0])
def test_a_pod_that_is_withdrawn_at_permit_is_never_bound(shutdown: float) -> None:
    made, diary = simulation(node("n1", cpu=1), plugins=[HoldsForTwoMinutes], shutdown_seconds=shutdown)
    arrive(made, 5.0, pod("web", cpu=1))
    arrive(made, 6.0, pod("next", cpu=1))
    made.timeline.at(20.0, lambda: made.world.delete_pod(made.world.pods["default", "web"]))
    made.run()

    assert [line[1:] for line in diary.lines] == [("web", "Deleted"), ("next", "n1")]


def test_pods_whose_waits_at_permit_time_out_again_and_again_do_not_keep_a_run_alive() -> None:
    made, _ = simulation(node("n1"), plugins=[HoldsForTen])
    arrive(made, 1.0, pod("web"))
    made.run()

    assert 3600.0 < made.now < 3700.0


def test_pods_that_wait_at_permit_one_after_the_other_all_have_their_turn() -> None:
    made, diary = simulation(node("n1", cpu=1), plugins=[HoldsForTwoMinutes])
    for number in range(60):
        arrive(made, 1.0, pod(f"web-{number}", cpu=1), 1.0)
    made.run()

    assert (len(diary.lines), made.now > 7200.0) == (120, True)


def test_a_pod_that_is_withdrawn_from_the_queue_is_not_tried_again() -> None:
    made, diary = simulation(node("n1", cpu=1))
    arrive(made, 1.0, pod("first", cpu=1), 60.0)
    arrive(made, 2.0, pod("web", cpu=1))
    arrive(made, 3.0, pod("last", cpu=1))
    made.timeline.at(20.0, lambda: made.delete(made.world.pods["default", "web"], "Withdrawn"))
    made.run()

    assert [line[1:] for line in diary.lines[1:]] == [("web", "Withdrawn"), ("first", "Finished"), ("last", "n1")]


def test_a_failed_node_keeps_the_pods_that_tolerate_that_it_is_unreachable() -> None:
    """Those of DaemonSets and of the kubelet are there again when it is repaired, and so is the room that they take."""
    owner = OwnerReference(api_version="apps/v1", kind="DaemonSet", name="agent", uid="agent", controller=True)
    tolerant = pod("tolerant", node="n1", tolerations=["node.kubernetes.io/unreachable:NoExecute"])
    brief = pod("brief", node="n1", tolerations=[toleration("node.kubernetes.io/unreachable:NoExecute", seconds=300)])
    made, diary = simulation(node("n1"), pod("agent", node="n1", owner=owner), tolerant, brief, until_seconds=60.0)
    made.timeline.at(1.0, NodeFailures(made, **FAILURE).start)
    made.run()

    assert [line[1:] for line in diary.lines] == [("brief", "NodeLost")]
