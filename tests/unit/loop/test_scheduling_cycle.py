"""One pod from the queue to a node: skipped, decided, reserved, permitted, or given up."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.loop.kit import Loop, node, pod, running

from bayplan.framework import CycleState, Plugin, PodInfo, Status, Unschedulable, Wait
from bayplan.framework.status import Error
from bayplan.loop import scheduling_cycle
from bayplan.loop.binding_cycle import BindingCycle, start_binding
from bayplan.queue import Place
from bayplan.testing.build import LONG_AGO

ENABLED = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    multiPoint:
      enabled: [{name: Keeper}]
"""


class Keeper(Plugin):
    """Reserves, and may object."""

    log: list[str] = []
    objection: Status | None = None
    permission: Status | None = None

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        self.log.append(f"reserve {pod.name}")
        return type(self).objection

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        self.log.append(f"unreserve {pod.name}")

    def permit(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        self.log.append(f"permit {pod.name}")
        return type(self).permission


def keeper(objection: Status | None = None, permission: Status | None = None) -> type[Plugin]:
    members: dict[str, Any] = {"name": "Keeper", "log": [], "objection": objection, "permission": permission}
    return type("Keeper", (Keeper,), members)


async def test_a_pod_is_assumed_before_it_is_bound_and_then_confirmed() -> None:
    loop = Loop([node("n")])
    async with running(loop):
        loop.put(pod("p", uid="u"))
        await loop.settle()
        assert loop.transport.bindings == {"p": "n"}
        assert loop.live.cache.is_assumed("u")
        loop.confirm("p")

    assert not loop.live.cache.is_assumed("u")
    assert loop.queue.sizes.in_flight == 0


async def test_pods_decided_in_one_go_see_each_other() -> None:
    loop = Loop([node("a", cpu=1), node("b", cpu=1)])
    async with running(loop):
        loop.put(pod("p", cpu="1"), pod("q", cpu="1"), pod("r", cpu="1"))
        await loop.settle()

    assert sorted(loop.transport.bindings.values()) == ["a", "b"]


async def test_a_terminating_pod_is_not_tried() -> None:
    loop = Loop([node("n")])
    loop.put(pod("p"))
    loop.change("p", metadata_deletion_timestamp=LONG_AGO)
    async with running(loop):
        await loop.settle()

    assert loop.transport.bindings == {}
    assert loop.transport.events("FailedScheduling")[0]["note"] == "skip schedule deleting pod: default/p"
    assert loop.queue.sizes.in_flight == 0


async def test_without_nodes_a_pod_is_told_so_and_tried_again() -> None:
    loop = Loop()
    async with running(loop):
        loop.put(pod("p"))
        await loop.settle()
        condition = loop.transport.patches("p")[0]["conditions"][0]
        assert condition["reason"] == "Unschedulable"
        assert condition["message"] == "no nodes available to schedule pods"
        loop.put(node("n"))
        await loop.settle(2)

    assert loop.transport.bindings == {"p": "n"}


async def test_an_objection_at_reserve_undoes_it_and_names_the_plugin() -> None:
    plugin = keeper(objection=Unschedulable("no shelf left"))
    loop = Loop([node("n")], plugins=[plugin], config=ENABLED)
    async with running(loop):
        loop.put(pod("p"))
        await loop.settle()
        assert plugin.log == ["reserve p", "unreserve p"]  # type: ignore[attr-defined]
        assert loop.live.cache.assumed_count == 0
        assert loop.queue.get("default/p").unschedulable_plugins == {"Keeper"}
        assert loop.transport.patches("p")[0]["conditions"][0]["message"].startswith(
            "0/1 nodes are available: 1 no shelf"
        )


async def test_an_error_at_permit_sends_the_pod_into_back_off() -> None:
    plugin = keeper(permission=Error("the keeper fell asleep"))
    loop = Loop([node("n")], plugins=[plugin], config=ENABLED)
    async with running(loop):
        loop.put(pod("p"))
        await loop.settle()
        assert loop.queue.place_of("default/p") is Place.BACKOFF
        condition = loop.transport.patches("p")[0]["conditions"][0]

    assert condition["reason"] == "SchedulerError"
    assert condition["message"] == 'running Permit plugin "Keeper": the keeper fell asleep'
    assert plugin.log == ["reserve p", "permit p", "unreserve p"]  # type: ignore[attr-defined]


async def test_a_preemptor_is_nominated_and_its_victims_are_deleted() -> None:
    loop = Loop([node("n", cpu=2)])
    loop.put(pod("victim", cpu="2", node="n", priority=1))
    async with running(loop):
        loop.put(pod("p", cpu="2", priority=10))
        await loop.settle()
        assert [c.path for c in loop.transport.calls if c.method == "DELETE"] == [
            "/api/v1/namespaces/default/pods/victim"
        ]
        assert loop.transport.patches("p")[-1]["nominatedNodeName"] == "n"
        assert loop.transport.patches("victim")[0]["conditions"][0]["type"] == "DisruptionTarget"
        assert [i.name for i in loop.queue.nominations.nominated_pods("n")] == ["p"]
        loop.drop(loop.told("victim"))
        await loop.settle(2)

    assert loop.transport.bindings == {"p": "n"}
    assert len(loop.queue.nominations) == 0


@pytest.fixture
def defect(monkeypatch: pytest.MonkeyPatch) -> None:
    """The start of the first binding raises, which only a defect of the scheduler itself would do."""
    failures = ["once"]

    def fail_once(binding: BindingCycle, *, is_held: bool) -> None:
        if failures:
            raise RuntimeError(failures.pop())
        start_binding(binding, is_held=is_held)

    monkeypatch.setattr(scheduling_cycle, "start_binding", fail_once)


@pytest.mark.usefixtures("defect")
async def test_a_defect_in_the_cycle_undoes_what_plugins_reserved() -> None:
    plugin = keeper()
    loop = Loop([node("n", cpu=1)], plugins=[plugin], config=ENABLED)
    async with running(loop):
        loop.put(pod("p", cpu="1"))
        await loop.settle()

    assert plugin.log == ["reserve p", "permit p", "unreserve p"]  # type: ignore[attr-defined]


@pytest.mark.usefixtures("defect")
async def test_a_defect_in_the_cycle_leaves_no_pod_held_at_permit() -> None:
    loop = Loop([node("n", cpu=1)], plugins=[keeper(permission=Wait(30))], config=ENABLED)
    async with running(loop):
        loop.put(pod("p", cpu="1"))
        await loop.settle()

        assert len(loop.live.held_pods) == 0


@pytest.mark.usefixtures("defect")
async def test_a_defect_in_the_cycle_costs_one_attempt_and_leaves_nothing_assumed() -> None:
    loop = Loop([node("n", cpu=1)])
    async with running(loop):
        loop.put(pod("p", cpu="1"))
        await loop.settle()
        assert loop.live.cache.assumed_count == 0
        assert loop.queue.place_of("default/p") is Place.BACKOFF
        await loop.settle(3)

    assert loop.transport.bindings == {"p": "n"}
