"""A watch that proves to have shown everything spares a list of more than one page."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from bayplan.client.reflector import ReflectorSettings
from bayplan.client.transport import Response
from bayplan.observe.clock import VirtualClock

from .support import ScriptedTransport, answer, bookmark, event, page, refusal, thing
from .test_reflector import CUT, Stream, Watched, stream_of, streams_in_turn

SMALL_PAGES = ReflectorSettings(page_size=1)
ALL = [thing("a", 1), thing("b", 2)]
VERSION_ONLY = {"limit": "1"}
NO_NUMBER = answer(200, {"metadata": {"resourceVersion": "seven"}, "items": []})


class Server:
    """Has two objects at version 5; a list of one object tells `current`, any later list also has `c`."""

    def __init__(self, current: Response, *streams: Stream) -> None:
        self._current = current
        self._lists = [page(ALL, 5), page([*ALL, thing("c", 6)], 7)]
        self.transport = ScriptedTransport(lambda call: self._lists.pop(0), streams_in_turn(*streams))

    def look(self) -> None:
        """The next list is one of a single object."""
        self._lists.insert(0, self._current)


def late(news: asyncio.Event, early: bytes, shown: bytes) -> Stream:
    """A watch that sends something at once, and the rest with the event."""

    async def chunks() -> AsyncIterator[bytes]:
        yield early
        await news.wait()
        yield shown
        await asyncio.Event().wait()

    return chunks


def watched_from(clock: VirtualClock, current: Response, *streams: Stream) -> tuple[Server, Watched]:
    server = Server(current, *streams)
    return server, Watched(clock, server.transport, SMALL_PAGES)


@pytest.mark.parametrize(
    "shown",
    [event("MODIFIED", thing("b", 7)), event("DELETED", thing("b", 9)), bookmark(7)],
    ids=["a change", "a deletion", "a bookmark"],
)
async def test_what_the_watch_shows_of_the_current_version_or_later_proves_that_nothing_is_missing(
    clock: VirtualClock, shown: bytes
) -> None:
    news = asyncio.Event()

    server, watched = watched_from(clock, page(ALL[:1], 7, "next"), stream_of(), late(news, bookmark(6), shown))
    async with watched.running(1.0):
        server.look()
        began = clock.monotonic()
        catching_up = asyncio.create_task(watched.reflector.catch_up(began - 0.5))
        await clock.run_for(1.0)
        assert not catching_up.done()
        assert server.transport.watches[-1].query["timeoutSeconds"] == "4"
        news.set()
        await clock.run_for(0.0)
        await catching_up
        await clock.run_for(10.0)

    assert watched.reflector.known_until == began
    assert watched.reflector.stats.lists == 1
    assert server.transport.calls[1].query == VERSION_ONLY


async def test_a_watch_that_is_at_the_current_version_proves_it_at_once(clock: VirtualClock) -> None:
    server, watched = watched_from(clock, page(ALL[:1], 5, "next"), stream_of(), stream_of())
    async with watched.running(1.0):
        server.look()
        catching_up = asyncio.create_task(watched.reflector.catch_up(0.5))
        await clock.run_for(0.0)
        await catching_up

    assert watched.reflector.stats.lists == 1


@pytest.mark.parametrize(
    "current",
    [page(ALL[:1], 7, "next"), page(ALL[:1], 4, "next"), NO_NUMBER, refusal(500)],
    ids=["not reached", "older than what was shown", "no number", "no answer"],
)
async def test_without_proof_everything_is_listed(clock: VirtualClock, current: Response) -> None:
    server, watched = watched_from(clock, current, stream_of(), stream_of(bookmark(6)), stream_of())
    async with watched.running(1.0):
        server.look()
        catching_up = asyncio.create_task(watched.reflector.catch_up(0.5))
        await clock.run_for(5.0)
        await catching_up

    assert watched.reflector.stats.lists == 2
    assert watched.diary == ["+a1", "+b2", "+c6"]


async def test_a_watch_that_is_closed_proves_nothing(clock: VirtualClock) -> None:
    _, watched = watched_from(clock, page([], 7), stream_of(CUT), stream_of())
    async with watched.running(0.0):
        assert not watched.reflector.stats.is_connected
        catching_up = asyncio.create_task(watched.reflector.catch_up(clock.monotonic()))
        await clock.run_for(1.0)
        await catching_up

    assert watched.reflector.stats.lists == 2


async def test_a_watch_whose_end_is_near_is_opened_in_advance_and_followed_by_a_long_one(clock: VirtualClock) -> None:
    server, watched = watched_from(
        clock, page(ALL[:1], 7, "next"), stream_of(), stream_of(bookmark(7), stays_open=False), stream_of()
    )
    async with watched.running(1.0):
        watched.reflector.prepare_refresh()
        assert watched.reflector.synced.is_set()
        await clock.run_for(5.0)

    assert [call.query["timeoutSeconds"] for call in server.transport.watches] == ["300", "4", "300"]
    assert watched.reflector.stats.lists == 1


async def test_one_page_is_listed_and_needs_no_proof(clock: VirtualClock) -> None:
    server = Server(page([], 7), stream_of(), stream_of())
    watched = Watched(clock, server.transport)
    async with watched.running(1.0):
        watched.reflector.prepare_refresh()
        await clock.run_for(1.0)
        assert len(server.transport.watches) == 1
        watched.reflector.refresh()
        await clock.run_for(1.0)

    assert watched.reflector.stats.lists == 2
