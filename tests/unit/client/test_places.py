from __future__ import annotations

import asyncio

import pytest

from bayplan.client.places import Places


async def _hold(places: Places, name: str, log: list[str], leave: asyncio.Event) -> None:
    async with places:
        log.append(name)
        await leave.wait()


async def _turns(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_places_are_taken_without_waiting_until_there_are_none() -> None:
    places = Places(2)
    assert [places.take() for _ in range(3)] == [True, True, False]

    places.give()
    assert places.take() is True


async def test_whoever_waited_longest_is_next_and_nobody_jumps_the_line() -> None:
    places, log, leave = Places(1), list[str](), asyncio.Event()
    assert places.take()
    waiting = [asyncio.create_task(_hold(places, name, log, leave)) for name in ("first", "second")]
    await _turns()
    places.give()
    assert places.take() is False
    await _turns()
    assert log == ["first"]

    leave.set()
    await asyncio.gather(*waiting)
    assert log == ["first", "second"]
    assert places.take() is True


async def test_a_place_is_given_back_when_its_work_fails() -> None:
    places = Places(1)
    with pytest.raises(RuntimeError):
        async with places:
            raise RuntimeError

    assert places.take() is True


async def test_whoever_gives_up_waiting_is_passed_over() -> None:
    places, log, leave = Places(1), list[str](), asyncio.Event()
    assert places.take()
    gone, stays = (asyncio.create_task(_hold(places, name, log, leave)) for name in ("gone", "stays"))
    await _turns()
    gone.cancel()
    await _turns()
    places.give()
    leave.set()
    await stays

    assert log == ["stays"]
    assert gone.cancelled()


async def test_a_turn_that_comes_to_somebody_who_just_gave_up_is_passed_on() -> None:
    places, log, leave = Places(1), list[str](), asyncio.Event()
    assert places.take()
    gone, stays = (asyncio.create_task(_hold(places, name, log, leave)) for name in ("gone", "stays"))
    await _turns()
    places.give()
    gone.cancel()
    leave.set()
    await stays

    assert log == ["stays"]
    assert places.take() is True
