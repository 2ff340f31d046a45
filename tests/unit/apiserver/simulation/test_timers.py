"""The timers: what is due, in order, and nothing before its time."""

from __future__ import annotations

import asyncio

from bayplan.apiserver.simulation.timers import TimerQueue
from bayplan.observe.clock import VirtualClock


async def test_items_come_in_order_of_time_and_then_of_adding() -> None:
    clock = VirtualClock()
    timers: TimerQueue[str] = TimerQueue(clock)
    for seconds, item in ((2, "c"), (1, "a"), (1, "b")):
        timers.add(seconds, item)
    clock.advance(5)

    assert [await timers.due() for _ in range(3)] == ["a", "b", "c"]
    assert len(timers) == 0


async def test_nothing_comes_before_its_time() -> None:
    clock = VirtualClock()
    timers: TimerQueue[str] = TimerQueue(clock)
    timers.add(10, "later")
    waiting = asyncio.ensure_future(timers.due())
    await clock.run_for(9)
    assert not waiting.done()
    await clock.run_for(1)

    assert await waiting == "later"


async def test_something_nearer_comes_first_even_when_added_later() -> None:
    clock = VirtualClock()
    timers: TimerQueue[str] = TimerQueue(clock)
    timers.add(100, "far")
    waiting = asyncio.ensure_future(timers.due())
    await clock.run_for(1)
    timers.add(2, "near")
    await clock.run_for(3)

    assert await waiting == "near"
    assert clock.sleeping == 0


async def test_a_waiting_reader_can_be_cancelled() -> None:
    clock = VirtualClock()
    timers: TimerQueue[str] = TimerQueue(clock)
    timers.add(100, "far")
    waiting = asyncio.ensure_future(timers.due())
    await clock.run_for(1)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)

    assert clock.sleeping == 0
    timers.clear()
    assert len(timers) == 0
