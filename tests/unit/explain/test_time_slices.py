"""Long work in turns: others run in between, and giving up cleans up."""

from __future__ import annotations

import asyncio

import pytest

from bayplan.explain.time_slices import Work, at_once, in_slices
from bayplan.observe.turns import Turns


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
