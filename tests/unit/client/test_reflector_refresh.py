"""A list on demand: what was written before it is known after it, whatever the watch was doing."""

from __future__ import annotations

import asyncio

import pytest

from bayplan.client.transport import Response
from bayplan.observe.clock import VirtualClock

from .support import ScriptedTransport, in_turn, page, thing
from .test_reflector import CUT, Stream, Watched, stream_of, streams_in_turn


@pytest.mark.parametrize("trouble", [stream_of(), stream_of(CUT)], ids=["a silent watch", "a pause between attempts"])
async def test_what_was_written_before_a_refresh_is_known_after_it(clock: VirtualClock, trouble: Stream) -> None:
    transport = ScriptedTransport(in_turn(page([thing("a", 1)], 5), page([thing("b", 6)], 7)), streams_in_turn(trouble))
    watched = Watched(clock, transport)

    async with watched.running(0.5):
        assert watched.diary == ["+a1"]
        began = clock.monotonic()
        refreshing = asyncio.create_task(watched.reflector.refresh())
        await clock.run_for(0.0)
        await refreshing

    assert watched.diary == ["+a1", "+b6", "-a1"]
    assert watched.reflector.listed_at == began


async def test_a_list_that_began_before_a_refresh_does_not_count(clock: VirtualClock) -> None:
    first = asyncio.Event()

    async def slow() -> Response:
        await first.wait()
        return page([thing("a", 1)], 5)

    answers = [slow(), page([thing("b", 6)], 7)]
    transport = ScriptedTransport(lambda call: answers.pop(0), streams_in_turn(stream_of()))
    watched = Watched(clock, transport)

    async with watched.running():
        refreshing = asyncio.create_task(watched.reflector.refresh())
        await clock.run_for(0.0)
        first.set()
        await refreshing

    assert watched.diary == ["+b6"]
