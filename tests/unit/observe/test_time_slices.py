"""Turns of the thread: one at a time, with rests, behind the scheduler, and never kept from anybody for good; and long
work over many of them: others run in between, and giving up cleans up."""

from __future__ import annotations

import asyncio
import time

import pytest

from bayplan.observe import time_slices as module
from bayplan.observe.time_slices import Turns, Work, at_once, in_slices


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


def compute(seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def rests(turns: Turns) -> list[float]:
    """The rests that it takes from now on."""
    taken: list[float] = []
    after = turns._rest_after

    def rest_after(ended: float) -> float:
        taken.append(after(ended))
        return taken[-1]

    turns._rest_after = rest_after  # type: ignore[method-assign]
    return taken


async def test_a_turn_is_followed_by_a_rest_as_long_as_it_took() -> None:
    turns = Turns()
    await turns.take()
    compute(0.02)
    ended = time.monotonic()
    await turns.take()

    assert time.monotonic() - ended >= 0.02


async def test_no_rest_is_taken_while_no_pod_is_on_its_way() -> None:
    """Others still have their step between two turns."""
    turns, steps = Turns(is_idle=lambda: True), []
    taken = rests(turns)

    async def other() -> None:
        for _ in range(20):
            steps.append(len(taken))
            await asyncio.sleep(0)

    beside = asyncio.create_task(other())
    for _ in range(3):
        await turns.take()
    await beside

    assert set(taken) == {0.0}
    assert len(set(steps)) > 1


def after(turns: Turns, *, began: float, taking: float) -> float:
    """The rest after a turn."""
    turns._began = began
    return turns._rest_after(began + taking)


def test_turns_that_are_asked_for_all_the_time_get_a_share_of_it_while_pods_come() -> None:
    turns, now, taken = Turns(), 0.0, 0.0
    for _ in range(10_000):
        rest = after(turns, began=now, taking=0.004)
        now += 0.004 + rest
        taken += 0.004

    assert taken <= now * module._SHARE + module._MOST_SAVED_SECONDS + 0.004
    assert taken >= 0.95 * now * module._SHARE


def test_who_asks_now_and_then_rests_as_long_as_each_turn_took() -> None:
    turns = Turns()
    for question in range(20):
        assert after(turns, began=question * 1.0, taking=0.05) == pytest.approx(0.05)


def test_a_turn_of_seconds_is_followed_by_a_rest_of_one_at_most() -> None:
    turns = Turns()
    assert after(turns, began=0.0, taking=30.0) == pytest.approx(module._MOST_REST_SECONDS)
    assert after(turns, began=40.0, taking=0.01) == pytest.approx(0.01)


def test_rests_end_once_no_pod_came_for_a_while() -> None:
    is_idle = False
    turns = Turns(is_idle=lambda: is_idle)
    assert after(turns, began=0.0, taking=0.1) == pytest.approx(0.1)

    is_idle = True
    assert after(turns, began=0.2, taking=0.1) == pytest.approx(0.1)
    assert after(turns, began=0.2 + module._QUIET_SECONDS, taking=0.1) == 0


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


def counting(to: int, log: list[str]) -> Work[int]:
    try:
        for _ in range(to):
            yield
    finally:
        log.append("cleaned up")
    return to


def test_straight_runs_to_the_end() -> None:
    log: list[str] = []

    assert at_once(counting(10, log)) == 10
    assert log == ["cleaned up"]


async def test_others_have_their_turn() -> None:
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    class Short(Turns):
        """Every turn is over at once."""

        is_over = True

    task = asyncio.create_task(other())
    assert await in_slices(counting(20, []), Short()) == 20
    task.cancel()

    assert turns >= 20


async def test_a_question_that_is_given_up_cleans_up() -> None:
    log: list[str] = []
    task = asyncio.create_task(in_slices(counting(10**9, log), Turns()))
    await asyncio.sleep(0.02)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert log == ["cleaned up"]


async def test_a_failure_comes_through() -> None:
    def failing() -> Work[int]:
        yield
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await in_slices(failing(), Turns())
