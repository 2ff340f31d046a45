"""Pods held at Permit: who ends the wait, and how."""

from __future__ import annotations

import asyncio

from bayplan.cache import Cache
from bayplan.framework.status import Code
from bayplan.loop.permit import HeldPod, HeldPods
from bayplan.observe.clock import VirtualClock
from bayplan.testing.build import pod


def held(room: HeldPods, **timeouts: float) -> HeldPod:
    return room.hold(Cache().info(pod("p", uid="u")), "n", timeouts)


async def test_a_pod_that_is_not_held_does_not_wait() -> None:
    room = HeldPods(VirtualClock())

    assert (await room.wait("nobody")).is_success


async def test_every_plugin_must_allow() -> None:
    clock = VirtualClock()
    room = HeldPods(clock)
    waiting = held(room, a=10, b=10)
    outcome = asyncio.ensure_future(room.wait("u"))
    waiting.allow("a")
    await clock.run_for(1)
    assert not outcome.done()
    assert waiting.pending_plugins() == ["b"]
    waiting.allow("b")
    await clock.run_for(0)

    assert outcome.result().is_success
    assert len(room) == 0


async def test_one_rejection_is_enough_and_names_its_plugin() -> None:
    clock = VirtualClock()
    room = HeldPods(clock)
    waiting = held(room, a=10, b=10)
    outcome = asyncio.ensure_future(room.wait("u"))
    assert waiting.reject("b", "no")
    assert not waiting.reject("a", "too late")
    status = await outcome

    assert (status.code, status.plugin) == (Code.UNSCHEDULABLE, "b")
    assert status.message == "no"


async def test_the_first_timer_that_runs_out_rejects() -> None:
    clock = VirtualClock()
    room = HeldPods(clock)
    held(room, slow=600, quick=90)
    outcome = asyncio.ensure_future(room.wait("u"))
    await clock.run_for(89)
    assert not outcome.done()
    await clock.run_for(2)
    status = outcome.result()

    assert (status.code, status.plugin) == (Code.UNSCHEDULABLE, "quick")
    assert status.message == "rejected due to timeout after waiting 1m30s at plugin quick"


async def test_a_preempted_pod_is_an_error_so_that_it_backs_off() -> None:
    room = HeldPods(VirtualClock())
    waiting = held(room, a=10)
    outcome = asyncio.ensure_future(room.wait("u"))
    waiting.preempt("DefaultPreemption", "preempted")

    status = await outcome
    assert (status.code, status.message) == (Code.ERROR, "waiting on permit for pod: preempted")


async def test_nobody_waits_longer_than_a_quarter_of_an_hour() -> None:
    clock = VirtualClock()
    room = HeldPods(clock)
    held(room, patient=100_000)
    outcome = asyncio.ensure_future(room.wait("u"))
    await clock.run_for(15 * 60 + 1)

    assert outcome.done()


async def test_a_cancelled_wait_leaves_the_room() -> None:
    clock = VirtualClock()
    room = HeldPods(clock)
    held(room, a=10)
    outcome = asyncio.ensure_future(room.wait("u"))
    await clock.run_for(1)
    outcome.cancel()
    await asyncio.wait([outcome])

    assert len(room) == 0
    assert room.get("u") is None
