from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from tests.unit.queue.kit import NODE_ADD, PROFILE, make_pod

from bayplan.framework.events import EventHint
from bayplan.observe.clock import VirtualClock
from bayplan.queue import Doorbell, Nominations, Place, QueuePolicy, QueueShell, SchedulingQueue


class Harness:
    def __init__(self, start: float = 1_700_000_000.0) -> None:
        self.clock = VirtualClock(start)
        bell = Doorbell()
        policy = QueuePolicy(registrations={PROFILE: [("Fit", EventHint(NODE_ADD))]})
        self.queue = SchedulingQueue(
            self.clock, policy, nominations=Nominations(lambda namespace, name: None), on_ready=bell.ring
        )
        self.shell = QueueShell(self.queue, bell, self.clock)

    def fail(self, *plugins: str) -> Place:
        self.queue.add(make_pod())
        queued = self.queue.pop()
        assert queued is not None
        return self.queue.add_unschedulable_if_not_present(queued, unschedulable_plugins=plugins)

    @asynccontextmanager
    async def timers(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.shell.run_timers(), name="queue timers")
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_pod_that_is_there_is_handed_out_at_once() -> None:
    harness = Harness()
    harness.queue.add(make_pod("web"))

    queued = await harness.shell.wait_pop()

    assert queued is not None
    assert queued.info.name == "web"


async def test_a_waiting_task_gets_the_pod_that_comes() -> None:
    harness = Harness()
    waiting = asyncio.create_task(harness.shell.wait_pop())
    await settle()
    assert not waiting.done()

    harness.queue.add(make_pod("web"))

    queued = await waiting
    assert queued is not None
    assert queued.info.name == "web"


async def test_a_ring_without_a_pod_keeps_the_task_waiting() -> None:
    harness = Harness()
    waiting = asyncio.create_task(harness.shell.wait_pop())
    await settle()
    harness.fail()
    await settle()

    assert not waiting.done()
    harness.shell.close()
    assert await waiting is None


async def test_a_rejected_pod_in_back_off_ends_the_wait() -> None:
    harness = Harness()
    assert harness.fail("Fit") is Place.UNSCHEDULABLE
    waiting = asyncio.create_task(harness.shell.wait_pop())
    await settle()

    harness.queue.move_all(NODE_ADD)

    assert await waiting is not None


async def test_two_tasks_get_two_pods() -> None:
    harness = Harness()
    tasks = [asyncio.create_task(harness.shell.wait_pop()) for _ in range(2)]
    await settle()
    harness.queue.add(make_pod("one"))
    harness.queue.add(make_pod("two"))

    names = {queued.info.name for queued in await asyncio.gather(*tasks) if queued is not None}

    assert names == {"one", "two"}


async def test_closing_sends_everybody_home_and_leaves_the_pods() -> None:
    harness = Harness()
    waiting = asyncio.create_task(harness.shell.wait_pop())
    await settle()

    harness.shell.close()

    assert await waiting is None
    harness.queue.add(make_pod())
    assert await harness.shell.wait_pop() is None
    assert harness.queue.sizes.active == 1


async def test_back_off_is_flushed_at_the_start_of_each_second() -> None:
    harness = Harness(start=1_700_000_000.25)
    assert harness.fail() is Place.BACKOFF

    async with harness.timers():
        await harness.clock.run_for(1.5)
        assert harness.queue.place_of("ns/pod") is Place.BACKOFF
        await harness.clock.run_for(0.25)
        assert harness.queue.place_of("ns/pod") is Place.ACTIVE

    history = harness.queue.pending_pods()[Place.ACTIVE][0].history
    assert history[-1] == (1_700_000_002.0, "active", "BackoffComplete")


async def test_the_pool_is_flushed_every_half_minute() -> None:
    harness = Harness()
    assert harness.fail("Nobody") is Place.UNSCHEDULABLE

    async with harness.timers():
        await harness.clock.run_for(329)
        assert harness.queue.place_of("ns/pod") is Place.UNSCHEDULABLE
        await harness.clock.run_for(1)
        assert harness.queue.place_of("ns/pod") is Place.ACTIVE


async def test_a_flush_that_fails_is_reported_and_tried_again(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness = Harness()
    harness.fail()
    flush, calls = harness.queue.flush_backoff, 0

    def fails_once() -> Any:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise RuntimeError("oops")
        return flush()

    monkeypatch.setattr(harness.queue, "flush_backoff", fails_once)
    with caplog.at_level(logging.ERROR):
        async with harness.timers():
            await harness.clock.run_for(3)

    assert "flushing the queue failed" in caplog.text
    assert harness.queue.place_of("ns/pod") is Place.ACTIVE
