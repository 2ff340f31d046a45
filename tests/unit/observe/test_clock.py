"""Clocks: one that runs and one that is run."""

from __future__ import annotations

import asyncio
import time

import pytest

from bayplan.observe.clock import Clock, SystemClock, VirtualClock


def test_both_are_clocks() -> None:
    assert isinstance(SystemClock(), Clock)
    assert isinstance(VirtualClock(), Clock)


async def test_the_system_clock_tells_the_machines_time() -> None:
    clock = SystemClock()
    before = clock.monotonic()
    await clock.sleep(-1)

    assert abs(clock.now() - time.time()) < 5
    assert clock.monotonic() >= before


async def test_a_virtual_clock_stands_still_until_it_is_moved() -> None:
    clock = VirtualClock(1000.0)
    sleeper = asyncio.ensure_future(clock.sleep(10))
    await asyncio.sleep(0)
    assert (clock.now(), clock.monotonic(), clock.sleeping) == (1000.0, 0.0, 1)
    clock.advance(9.5)
    await asyncio.sleep(0)
    assert not sleeper.done()
    clock.advance(0.5)
    await sleeper

    assert clock.now() == 1010.0


async def test_sleepers_wake_in_order_of_their_deadlines() -> None:
    clock = VirtualClock()
    woken: list[int] = []

    async def nap(seconds: int) -> None:
        await clock.sleep(seconds)
        woken.append(seconds)

    tasks = [asyncio.ensure_future(nap(seconds)) for seconds in (3, 1, 2)]
    await asyncio.sleep(0)
    clock.advance(5)
    await asyncio.gather(*tasks)

    assert woken == [1, 2, 3]


async def test_running_stops_at_every_deadline_on_the_way() -> None:
    clock = VirtualClock(0.0)
    ticks: list[float] = []

    async def tick() -> None:
        while True:
            await clock.sleep(1)
            ticks.append(clock.now())

    task = asyncio.ensure_future(tick())
    await clock.run_for(3.5)
    task.cancel()

    assert ticks == [1.0, 2.0, 3.0]
    assert clock.now() == 3.5


async def test_a_cancelled_sleeper_is_forgotten() -> None:
    clock = VirtualClock()
    task = asyncio.ensure_future(clock.sleep(5))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    assert clock.sleeping == 0
    assert clock.next_deadline() is None
    clock.advance(10)


def test_time_does_not_run_backwards() -> None:
    with pytest.raises(ValueError, match="cannot go back"):
        VirtualClock().advance(-1)


async def test_sleeping_for_nothing_yields_once() -> None:
    clock, order = VirtualClock(), list[str]()

    async def sleep() -> None:
        order.append("sleeps")
        await clock.sleep(0)
        order.append("wakes")

    async def run_meanwhile() -> None:
        order.append("another runs")

    await asyncio.gather(sleep(), run_meanwhile())

    assert order == ["sleeps", "another runs", "wakes"]
    assert clock.sleeping == 0
