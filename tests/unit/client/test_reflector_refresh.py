"""A list on demand: what was written before it is known after it, whatever the watch was doing."""

from __future__ import annotations

import asyncio

import pytest

from bayplan.client.transport import Response
from bayplan.observe.clock import VirtualClock

from .support import ScriptedTransport, answer, in_turn, page, thing
from .test_reflector import CUT, EXPIRED, Stream, Watched, stream_of, streams_in_turn


@pytest.mark.parametrize("trouble", [stream_of(), stream_of(CUT)], ids=["a silent watch", "a pause between attempts"])
async def test_what_was_written_before_a_list_on_demand_is_known_after_it(clock: VirtualClock, trouble: Stream) -> None:
    transport = ScriptedTransport(in_turn(page([thing("a", 1)], 5), page([thing("b", 6)], 7)), streams_in_turn(trouble))
    watched = Watched(clock, transport)

    async with watched.running(0.5):
        assert watched.diary == ["+a1"]
        began = clock.monotonic()
        refreshing = asyncio.create_task(watched.reflector.catch_up(clock.monotonic()))
        await clock.run_for(0.0)
        await refreshing

    assert watched.diary == ["+a1", "+b6", "-a1"]
    assert watched.reflector.known_until == began


async def test_a_list_that_began_before_does_not_count(clock: VirtualClock) -> None:
    first = asyncio.Event()

    async def slow() -> Response:
        await first.wait()
        return page([thing("a", 1)], 5)

    answers = [slow(), page([thing("b", 6)], 7)]
    transport = ScriptedTransport(lambda call: answers.pop(0), streams_in_turn(stream_of()))
    watched = Watched(clock, transport)

    async with watched.running():
        refreshing = asyncio.create_task(watched.reflector.catch_up(clock.monotonic()))
        await clock.run_for(0.0)
        first.set()
        await refreshing

    assert watched.diary == ["+b6"]


async def test_a_list_that_is_under_way_is_waited_for(clock: VirtualClock) -> None:
    second = asyncio.Event()

    async def slow() -> Response:
        await second.wait()
        return page([thing("a", 1), thing("b", 6)], 7)

    answers = [page([thing("a", 1)], 5), slow()]
    transport = ScriptedTransport(lambda call: answers.pop(0), streams_in_turn(stream_of(), stream_of()))
    watched = Watched(clock, transport)

    async with watched.running(1.0):
        moment = clock.monotonic() - 0.5
        watched.reflector.list_again()
        await clock.run_for(1.0)
        waiting = asyncio.create_task(watched.reflector.catch_up(moment))
        await clock.run_for(1.0)
        assert not waiting.done()
        second.set()
        await waiting
        await watched.reflector.catch_up(moment)

    assert watched.diary == ["+a1", "+b6"]
    assert watched.reflector.stats.lists == 2


async def test_objects_that_are_known_in_the_version_of_a_list_are_not_decoded_again(clock: VirtualClock) -> None:
    again = [thing("a", 1, value="not a number"), thing("b", 7), thing("c", 8, uid="another")]
    first = page([thing("a", 1), thing("b", 2), thing("c", 8)], 9)
    transport = ScriptedTransport(in_turn(first, page(again, 10)), streams_in_turn(stream_of(), stream_of()))
    watched = Watched(clock, transport)

    async with watched.running(0.5):
        await asyncio.gather(watched.reflector.catch_up(clock.monotonic()), clock.run_for(0.0))

    assert watched.reflector.replica.decode_errors == 0
    assert watched.diary == ["+a1", "+b2", "+c8", "~b7", "-c8", "+c8"]


async def test_an_object_that_is_no_list_empties_nothing(clock: VirtualClock) -> None:
    """Taken for an empty list, every node would look free."""
    no_list = answer(200, {"kind": "Status", "apiVersion": "v1", "status": "Success"})
    transport = ScriptedTransport(
        in_turn(page([thing("a", 1)], 5), no_list, answer(200, {}), page([thing("a", 1), thing("b", 6)], 7)),
        streams_in_turn(stream_of(EXPIRED), stream_of()),
    )
    watched = Watched(clock, transport)

    async with watched.running(20.0):
        pass

    assert watched.diary == ["+a1", "+b6"]
