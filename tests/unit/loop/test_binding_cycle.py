"""From an assumed node to a binding, or back with the room given away."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import msgspec
import pytest
from tests.unit.loop.kit import Call, Loop, node, pod, refusal, running

from bayplan.client.errors import ConnectionFailed
from bayplan.client.transport import Response
from bayplan.framework import SKIP, CycleState, Plugin, PodInfo, Status, Unschedulable, Wait
from bayplan.loop import tasks
from bayplan.loop.decide import Decision
from bayplan.loop.observer import Observer
from bayplan.plugins.intree.default_binder import DefaultBinder
from bayplan.queue import Place

NODES = [node("n", cpu=1)]


def config(name: str, more: str = "") -> str:
    return f"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    multiPoint:
      enabled: [{{name: {name}}}]
{more}"""


def refusing(answer: Response | Exception) -> Any:
    """No binding; after a conflict the pod is read again, and still waits for a node."""

    def answered(call: Call) -> Response | Exception | None:
        if call.method == "GET":
            uid = pod(call.path.rpartition("/")[2]).metadata.uid
            return Response(200, {}, msgspec.json.encode({"metadata": {"uid": uid}, "spec": {}}))
        return answer if call.path.endswith("/binding") else None

    return answered


async def test_a_bound_pod_is_told_of_in_an_event() -> None:
    loop = Loop(NODES)
    async with running(loop):
        loop.put(pod("p"))
        await loop.settle()
        await loop.settle(2)

    event = loop.transport.events("Scheduled")[0]
    assert event["note"] == "Successfully assigned default/p to n"
    assert (event["action"], event["type"], event["reportingController"]) == ("Binding", "Normal", "default-scheduler")


def _decisions() -> list[Decision]:
    return [each for each in gc.get_objects() if type(each) is Decision]


async def test_a_decision_is_not_kept_while_its_pod_is_bound() -> None:
    """Its rows are as long as the cluster, and hundreds of pods are bound at a time."""
    loop = Loop(NODES)
    loop.transport.hold = asyncio.Event()
    before = {id(each) for each in _decisions()}
    async with running(loop):
        loop.put(pod("p"))
        await loop.settle()

        assert loop.transport.bindings == {"p": "n"}
        assert not [each for each in _decisions() if id(each) not in before]
        loop.transport.hold.set()


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (refusal(409, "Conflict", "taken"), "taken (409 Conflict)"),
        (refusal(403, "Forbidden", "you may not"), "you may not (403 Forbidden)"),
        (ConnectionFailed("refused", may_have_been_processed=False), "refused"),
    ],
)
async def test_a_refused_binding_gives_the_room_back_and_tries_again(answer: Response | Exception, text: str) -> None:
    loop, waiting = Loop(NODES), pod("p", cpu="1")
    loop.transport.answer = refusing(answer)
    async with running(loop):
        loop.put(waiting)
        while not loop.transport.patches("p"):
            await loop.settle()
        assert loop.live.cache.assumed_count == 0
        condition = loop.transport.patches("p")[0]["conditions"][0]
        assert condition["reason"] == "SchedulerError"
        assert condition["message"].startswith('running Bind plugin "DefaultBinder": ')
        assert text in condition["message"]
        loop.transport.answer = lambda call: None
        await loop.settle(12)

    assert loop.live.cache.assumed_count == 1


async def test_a_pod_that_is_gone_when_it_is_bound_is_forgotten() -> None:
    loop = Loop(NODES)
    loop.transport.answer = refusing(refusal(404, "NotFound"))
    async with running(loop):
        loop.put(pod("p", cpu="1"))
        loop.transport.hold = asyncio.Event()
        await loop.settle()
        loop.drop(loop.told("p"))
        loop.transport.hold.set()
        await loop.settle()

    assert loop.live.cache.assumed_count == 0
    assert loop.queue.sizes == (0, 0, 0, 0, 0)


async def test_the_room_of_a_failed_binding_wakes_a_pod_that_waits() -> None:
    loop = Loop(NODES)
    loop.transport.answer = lambda call: refusal(409, "Conflict") if call.path.endswith("/pods/first/binding") else None
    loop.transport.hold = asyncio.Event()
    async with running(loop):
        loop.put(pod("first", cpu="1", priority=2))
        await loop.settle()
        loop.put(pod("second", cpu="1", priority=1, preemption_policy="Never"))
        await loop.settle()
        assert loop.queue.place_of("default/second") is Place.UNSCHEDULABLE
        loop.transport.hold.set()
        await loop.settle(0.2)
        assert loop.queue.place_of("default/second") is not Place.UNSCHEDULABLE


async def test_a_replica_that_no_longer_leads_binds_nothing() -> None:
    loop = Loop(NODES, is_leader=lambda: False)
    async with running(loop):
        loop.put(pod("p"))
        await loop.settle()

    assert loop.transport.bindings == {}
    assert loop.live.cache.assumed_count == 0


async def test_a_replica_that_lost_its_lease_during_an_attempt_writes_nothing_about_it() -> None:
    """The next leader may have bound the pod already; a condition or an event of this replica would contradict it."""
    leads = [True]
    loop = Loop(NODES, plugins=[Waits], config=config("Waits"), is_leader=lambda: leads[0])
    async with running(loop):
        loop.put(pod("p", uid="u"))
        await loop.settle()
        leads[0] = False
        held = loop.live.held_pods.get("u")
        assert held is not None
        held.reject("Waits", "not today")
        loop.put(pod("too-large", cpu="64"))
        await loop.settle(31)

    assert loop.transport.calls == []
    assert loop.live.cache.assumed_count == 0
    assert loop.queue.get("default/p") is not None


class Waits(Plugin):
    """Holds pods at Permit."""

    def permit(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        return Wait(30)


async def test_a_held_pod_is_bound_when_it_is_allowed() -> None:
    loop = Loop(NODES, plugins=[Waits], config=config("Waits"))
    async with running(loop):
        loop.put(pod("p", uid="u"))
        await loop.settle(0.3)
        assert loop.transport.bindings == {}
        assert loop.transport.patches("p") == [{"nominatedNodeName": "n"}]
        held = loop.live.held_pods.get("u")
        assert held is not None
        held.allow("Waits")
        await loop.settle()

    assert loop.transport.bindings == {"p": "n"}


async def test_a_wait_that_is_over_at_once_is_not_announced() -> None:
    """For a group of pods that waits for its last member a moment, announcements would double the writes."""
    loop = Loop(NODES, plugins=[Waits], config=config("Waits"))
    async with running(loop):
        loop.put(pod("p", uid="u"))
        await loop.settle()
        held = loop.live.held_pods.get("u")
        assert held is not None
        held.allow("Waits")
        await loop.settle()

    assert loop.transport.bindings == {"p": "n"}
    assert loop.transport.patches("p") == []


async def test_a_held_pod_whose_time_is_up_goes_back_with_the_plugin_as_its_reason() -> None:
    loop = Loop(NODES, plugins=[Waits], config=config("Waits"))
    async with running(loop):
        loop.put(pod("p", uid="u"))
        await loop.settle(31)
        queued = loop.queue.get("default/p")
        assert queued is not None
        assert queued.unschedulable_plugins == {"Waits"}

    assert loop.transport.bindings == {}


class Prepares(Plugin):
    """Works before the binding."""

    failure: Exception | Status | None = None

    def pre_bind_pre_flight(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        return SKIP if pod.name == "easy" else None

    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        if isinstance(self.failure, Exception):
            raise self.failure
        return self.failure

    def post_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        raise RuntimeError("nobody minds")


def prepares(failure: Exception | Status | None) -> type[Plugin]:
    return type("Prepares", (Prepares,), {"name": "Prepares", "failure": failure})


@pytest.mark.parametrize(
    ("failure", "message"),
    [
        (OSError("disk on fire"), 'running PreBind plugin "Prepares": OSError: disk on fire'),
        (Unschedulable("not today"), "0/1 nodes are available: 1 not today."),
    ],
)
async def test_a_failed_preparation_sends_the_pod_back_unless_it_was_not_due(
    failure: Exception | Status, message: str
) -> None:
    loop = Loop(NODES, plugins=[prepares(failure)], config=config("Prepares"))
    async with running(loop):
        loop.put(pod("easy"), pod("p"))
        await loop.settle()
        conditions = [p["conditions"][0] for p in loop.transport.patches("p") if "conditions" in p]

    assert loop.transport.bindings == {"easy": "n"}
    assert conditions[0]["message"].startswith(message)
    assert loop.live.cache.assumed_count == 1


async def test_a_cancelled_binding_leaves_no_assumption_behind() -> None:
    loop = Loop(NODES)
    loop.transport.hold = asyncio.Event()
    async with running(loop):
        loop.put(pod("p"))
        await loop.settle()
        assert loop.live.cache.assumed_count == 1

    assert loop.live.cache.assumed_count == 0
    assert len(loop.live.tasks) == 0


async def test_a_binding_that_waits_for_its_turn_leaves_no_assumption_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "_BRIEF_AT_A_TIME", 1)
    loop = Loop(NODES)
    loop.transport.hold = asyncio.Event()
    async with running(loop):
        loop.put(pod("p"), pod("q"))
        await loop.settle()
        assert loop.live.cache.assumed_count == 2
        assert loop.queue.sizes.in_flight == 0

    assert sum(call.path.endswith("/binding") for call in loop.transport.calls) == 1
    assert loop.live.cache.assumed_count == 0
    assert len(loop.live.tasks) == 0


class SlowBinder(DefaultBinder):
    """Waits for something of its own before it binds."""

    gate = asyncio.Event()

    async def bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        await self.gate.wait()
        return await super().bind(state, pod, node_name)


async def test_a_binder_that_promises_nothing_keeps_no_others_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "_BRIEF_AT_A_TIME", 1)
    slow = type("SlowBinder", (SlowBinder,), {"gate": asyncio.Event()})
    more = "    bind:\n      enabled: [{name: SlowBinder}]\n      disabled: [{name: DefaultBinder}]"
    loop = Loop(NODES, plugins=[slow], config=config("SlowBinder", more))
    async with running(loop):
        loop.put(pod("p"), pod("q"))
        await loop.settle()
        assert not slow.binds_at_once
        assert len(loop.live.tasks._running) == 2
        slow.gate.set()
        await loop.settle()

    assert loop.transport.bindings == {"p": "n", "q": "n"}


class Timed(Observer):
    """Hears of extension points."""

    def __init__(self) -> None:
        self.points: list[tuple[str, str, str]] = []

    def extension_point_ran(self, point: str, status: str, profile: str, seconds: float) -> None:
        self.points.append((point, status, profile))


async def test_the_time_of_a_binding_is_told_and_of_pre_bind_where_it_has_something_to_do() -> None:
    heard = Timed()
    loop = Loop(NODES, observers=[heard])
    async with running(loop):
        loop.put(pod("p"))
        await loop.settle()

    assert heard.points == [("Bind", "Success", "default-scheduler")]


async def test_the_time_of_a_refused_binding_is_told_as_an_error() -> None:
    heard = Timed()
    loop = Loop(NODES, observers=[heard])
    loop.transport.answer = refusing(refusal(403, "Forbidden", "you may not"))
    async with running(loop):
        loop.put(pod("p"))
        await loop.settle()

    assert heard.points[0] == ("Bind", "Error", "default-scheduler")
