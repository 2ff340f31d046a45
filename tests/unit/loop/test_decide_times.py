"""In the cycles that are measured, a decision says how long each plugin took; in the others it says nothing."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

from tests.unit.loop.kit import Loop, running

from bayplan.framework import CycleState, NodeInfo, Plugin, PodInfo, Status
from bayplan.framework.queued import QueuedPod
from bayplan.framework.times import PluginTimes, Sampling
from bayplan.loop.decide import Decider, Decision, decide
from bayplan.loop.observer import Observer
from bayplan.testing import Harness, node, pod


class Slow(Plugin):
    """Asked node by node."""

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        return None

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return 1


class Broken(Plugin):
    """Raises."""

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        raise RuntimeError("no")


def measuring(harness: Harness, share: float = 1.0) -> Decider:
    ticks = count()
    sampling = Sampling(draw=lambda: 0.5, monotonic=lambda: float(next(ticks)), share=share)
    return replace(harness.scheduler.deciders["default-scheduler"], sampling=sampling)


def points(decision: Decision, plugin: str) -> list[str]:
    return [time.point for time in decision.plugin_times if time.plugin == plugin]


def test_plugins_of_a_measured_cycle_are_timed_at_each_point() -> None:
    harness = Harness(nodes=[node("n1"), node("n2")], plugins=[Slow])
    decision = decide(measuring(harness), harness.scheduler.info(pod("web")))

    assert points(decision, "Slow") == ["Filter", "Score"]
    assert points(decision, "NodeResourcesFit") == ["Filter", "Score"]


def test_a_plugin_that_is_asked_node_by_node_has_one_time() -> None:
    harness = Harness(nodes=[node(f"n{number}") for number in range(5)], plugins=[Slow])
    decision = decide(measuring(harness), harness.scheduler.info(pod("web")))

    assert [time.seconds for time in decision.plugin_times if time.plugin == "Slow"] == [1.0, 1.0]


def test_a_pod_that_fits_nowhere_has_the_time_of_its_post_filter() -> None:
    harness = Harness(nodes=[node("n1", cpu=1)])
    decision = decide(measuring(harness), harness.scheduler.info(pod("web", cpu="64")))

    statuses = {time.plugin: time.status for time in decision.plugin_times if time.point == "PostFilter"}
    assert statuses["DefaultPreemption"] == "Unschedulable"


def test_nothing_is_timed_once_a_measured_cycle_is_over_whatever_its_end() -> None:
    harness = Harness(nodes=[node("n1")], plugins=[Broken])
    decider = measuring(harness)
    decision = decide(decider, harness.scheduler.info(pod("web")))

    assert decision.failure is not None
    assert decision.plugin_times
    assert all(call.times is None for call in (*decider.framework.filter_calls, *decider.framework.score_calls))


def test_other_cycles_have_no_times() -> None:
    harness = Harness(nodes=[node("n1"), node("n2")])

    assert decide(measuring(harness, share=0.001), harness.scheduler.info(pod("web"))).plugin_times == []


class Listening(Observer):
    """Keeps the times of every cycle."""

    def __init__(self) -> None:
        self.times: list[PluginTimes | None] = []

    def decided(self, queued: QueuedPod, decision: Decision, seconds: float) -> None:
        self.times.append(decision.state.times)


async def test_the_times_go_on_through_the_binding() -> None:
    listening = Listening()
    loop = Loop([node("n", cpu=1)], observers=[listening], timed_share=1.0)
    async with running(loop):
        loop.put(pod("p"))
        await loop.settle()

    (times,) = listening.times
    assert times is not None
    found = {(time.plugin, time.point): time.status for time in times.all()}
    assert found["DefaultBinder", "Bind"] == "Success"
    assert found["VolumeBinding", "Reserve"] == "Success"
    assert found["VolumeBinding", "PreBindPreFlight"] == "Skip"
