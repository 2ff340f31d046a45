"""Turns of the thread: one at a time, with rests, behind the scheduler, and never kept from anybody for good."""

from __future__ import annotations

import asyncio
import time

from bayplan.observe import turns as module
from bayplan.observe.turns import Turns


async def test_turns_are_given_in_the_order_of_asking_and_others_run_in_between() -> None:
    turns = Turns()
    order: list[str] = []

    async def client(name: str) -> None:
        for _ in range(2):
            await turns.take()
            order.append(name)

    async def scheduler() -> None:
        while True:
            if order and order[-1] != "pod":
                order.append("pod")
            await asyncio.sleep(0)

    scheduling = asyncio.create_task(scheduler())
    await asyncio.gather(*(client(name) for name in "abc"))
    scheduling.cancel()

    assert "".join(name[0] for name in order).rstrip("p") == "apbpcpapbpc"


async def test_a_turn_is_followed_by_a_rest_as_long_as_it_took() -> None:
    turns = Turns()
    await turns.take()
    began = time.monotonic()
    while time.monotonic() < began + 0.02:
        pass
    ended = time.monotonic()
    await turns.take()

    assert time.monotonic() - ended >= 0.02


async def test_a_turn_waits_for_the_scheduler_but_not_forever() -> None:
    is_busy = True
    turns = Turns(lambda: is_busy)
    began = time.monotonic()
    await turns.take()
    assert time.monotonic() - began >= module._PATIENCE_SECONDS

    is_busy = False
    began = time.monotonic()
    await turns.take()
    assert not turns.is_over


async def test_who_gives_up_waiting_leaves_the_turn_to_the_next() -> None:
    turns = Turns()
    given_up, next_one = asyncio.create_task(turns.take()), asyncio.create_task(turns.take())
    await asyncio.sleep(0)
    given_up.cancel()

    async with asyncio.timeout(5):
        await next_one


async def test_a_turn_is_over_after_a_while() -> None:
    turns = Turns()
    await turns.take()
    while not turns.is_over:
        pass
    await turns.take()

    assert not turns.is_over
