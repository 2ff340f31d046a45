from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable

import pytest

from bayplan.client.backoff import BackoffSettings
from bayplan.client.errors import ConnectionFailed, api_error
from bayplan.client.reflector import Reflector, ReflectorSettings
from bayplan.observe.clock import VirtualClock

from .support import Call, ScriptedTransport, Thing, bookmark, event, in_turn, no_draw, page, refusal, status, thing

Stream = Callable[[], AsyncIterator[bytes]]
SLOW = BackoffSettings(initial_seconds=1.0, jitter=0.0)


def stream_of(*pieces: bytes | Exception, stays_open: bool = True) -> Stream:
    """A watch that sends the pieces, raises those that are exceptions, and then stays open or ends."""

    async def chunks() -> AsyncIterator[bytes]:
        for piece in pieces:
            if isinstance(piece, Exception):
                raise piece
            yield piece
        if stays_open:
            await asyncio.Event().wait()

    return chunks


def streams_in_turn(*streams: Stream) -> Callable[[Call], AsyncIterator[bytes]]:
    left = list(streams)
    return lambda call: (left.pop(0) if len(left) > 1 else left[0])()


CUT = ConnectionFailed("cut", may_have_been_processed=True)
EXPIRED = event("ERROR", status(410, "Expired", "too old resource version"))


class Watched:
    """A reflector under test, on a virtual clock, with a diary of what it told."""

    def __init__(
        self,
        clock: VirtualClock,
        transport: ScriptedTransport,
        settings: ReflectorSettings | None = None,
        *,
        field_selector: str = "",
        label_selector: str = "",
    ) -> None:
        self.clock = clock
        self.diary: list[str] = []
        self.reflector = Reflector(
            transport,
            "/api/v1/things",
            Thing,
            self._note,
            clock=clock,
            draw=no_draw,
            field_selector=field_selector,
            label_selector=label_selector,
            settings=settings or ReflectorSettings(backoff=SLOW),
        )

    def _note(self, old: Thing | None, new: Thing | None) -> None:
        sign = "+" if old is None else "-" if new is None else "~"
        known = new or old
        assert known is not None
        self.diary.append(f"{sign}{known.metadata.name}{known.metadata.resource_version}")

    @contextlib.asynccontextmanager
    async def running(self, seconds: float = 0.0) -> AsyncIterator[None]:
        task = asyncio.create_task(self.reflector.run())
        await self.clock.run_for(seconds)
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])
            assert task.cancelled()


async def test_it_lists_and_then_follows_changes(clock: VirtualClock) -> None:
    transport = ScriptedTransport(
        in_turn(page([thing("a", 1), thing("b", 2)], 5)),
        streams_in_turn(
            stream_of(event("ADDED", thing("c", 6)), event("MODIFIED", thing("a", 7)), event("DELETED", thing("b", 8)))
        ),
    )
    watched = Watched(clock, transport, field_selector="spec.x=1", label_selector="app=web")

    async with watched.running():
        assert watched.reflector.synced.is_set()
        assert watched.reflector.stats.is_connected

    assert watched.diary == ["+a1", "+b2", "+c6", "~a7", "-b2"]
    assert sorted(watched.reflector.objects) == ["ns/a", "ns/c"]
    assert watched.reflector.stats.resource_version == "8"
    assert watched.reflector.stats.events == 3
    assert not watched.reflector.stats.is_connected
    assert transport.calls[0].query == {"fieldSelector": "spec.x=1", "labelSelector": "app=web", "limit": "5000"}
    assert transport.watches[0].query == {
        "fieldSelector": "spec.x=1",
        "labelSelector": "app=web",
        "watch": "1",
        "allowWatchBookmarks": "true",
        "timeoutSeconds": "300",
        "resourceVersion": "5",
    }


async def test_pages_are_put_together(clock: VirtualClock) -> None:
    transport = ScriptedTransport(
        in_turn(page([thing("a", 1)], 5, "next"), page([thing("b", 2)], 5, "last"), page([thing("c", 3)], 5)),
        streams_in_turn(stream_of()),
    )
    watched = Watched(clock, transport)

    async with watched.running():
        pass

    assert watched.diary == ["+a1", "+b2", "+c3"]
    assert [call.query.get("continue") for call in transport.calls] == [None, "next", "last"]
    assert watched.reflector.stats.lists == 1


async def test_a_list_that_expires_half_way_is_asked_for_in_one_piece(clock: VirtualClock) -> None:
    transport = ScriptedTransport(
        in_turn(page([thing("a", 1)], 5, "next"), refusal(410, "Expired"), page([thing("b", 6)], 7)),
        streams_in_turn(stream_of()),
    )
    watched = Watched(clock, transport)

    async with watched.running():
        pass

    assert watched.diary == ["+a1", "+b6", "-a1"]
    assert "limit" not in transport.calls[2].query
    assert watched.reflector.stats.resource_version == "7"


async def test_a_list_that_never_advances_is_given_up(clock: VirtualClock) -> None:
    transport = ScriptedTransport(in_turn(page([], 5, "same")), streams_in_turn(stream_of()))
    watched = Watched(clock, transport)

    async with watched.running(0.5):
        assert not watched.reflector.synced.is_set()

    assert len(transport.calls) == 2
    assert "does not advance" in watched.reflector.stats.last_error


async def test_a_watch_that_ends_is_resumed_from_where_it_was(clock: VirtualClock) -> None:
    transport = ScriptedTransport(
        in_turn(page([thing("a", 1)], 5)),
        streams_in_turn(
            stream_of(event("MODIFIED", thing("a", 6)), CUT),
            stream_of(bookmark(9), event("MODIFIED", thing("a", 10)), stays_open=False),
            stream_of(bookmark(12), CUT),
            stream_of(),
        ),
    )
    watched = Watched(clock, transport)

    async with watched.running(1.5):
        pass

    assert [watch.query["resourceVersion"] for watch in transport.watches] == ["5", "6", "10", "12"]
    assert watched.diary == ["+a1", "~a6", "~a10"]
    assert watched.reflector.stats.relists == 0
    assert len(transport.calls) == 1


@pytest.mark.parametrize("is_in_stream", [True, False])
async def test_after_a_410_it_lists_again_and_finds_the_deletions_it_missed(
    clock: VirtualClock, is_in_stream: bool
) -> None:
    gone = EXPIRED if is_in_stream else api_error(410, b"")
    transport = ScriptedTransport(
        in_turn(
            page([thing("a", 1), thing("b", 2), thing("c", 3)], 5),
            page([thing("b", 2), thing("c", 8), thing("d", 9), thing("a", 10, uid="other")], 11),
        ),
        streams_in_turn(stream_of(gone), stream_of(bookmark(12))),
    )
    watched = Watched(clock, transport)

    async with watched.running(2.0):
        pass

    assert watched.diary == ["+a1", "+b2", "+c3", "~c8", "+d9", "-a1", "+a10"]
    assert watched.reflector.stats.relists == 1
    assert watched.reflector.stats.resource_version == "12"


async def test_a_deletion_while_away_is_synthesised(clock: VirtualClock) -> None:
    transport = ScriptedTransport(
        in_turn(page([thing("a", 1), thing("b", 2)], 5), page([thing("b", 2)], 9)),
        streams_in_turn(stream_of(EXPIRED), stream_of()),
    )
    watched = Watched(clock, transport)

    async with watched.running(2.0):
        pass

    assert watched.diary == ["+a1", "+b2", "-a1"]


async def test_a_resume_point_from_the_future_leads_to_a_new_list(clock: VirtualClock) -> None:
    too_large = {**status(504, "Timeout"), "details": {"causes": [{"reason": "ResourceVersionTooLarge"}]}}
    transport = ScriptedTransport(
        in_turn(page([thing("a", 9)], 90), page([thing("a", 1)], 5)),
        streams_in_turn(stream_of(event("ERROR", too_large)), stream_of()),
    )
    watched = Watched(clock, transport)

    async with watched.running(2.0):
        pass

    assert watched.diary == ["+a9", "~a1"]
    assert watched.reflector.stats.resource_version == "5"


async def test_a_server_that_keeps_refusing_the_watch_is_asked_for_a_new_list(clock: VirtualClock) -> None:
    broken = stream_of(event("ERROR", status(500, "InternalError")))
    transport = ScriptedTransport(in_turn(page([], 5), page([], 6)), streams_in_turn(*[broken] * 5, stream_of()))
    watched = Watched(clock, transport)

    async with watched.running(100.0):
        pass

    assert [watch.query["resourceVersion"] for watch in transport.watches] == ["5"] * 5 + ["6"]


async def test_failures_are_retried_ever_more_slowly_and_told_once(
    clock: VirtualClock, caplog: pytest.LogCaptureFixture
) -> None:
    transport = ScriptedTransport(
        in_turn(refusal(403, "Forbidden", "may not list things")), streams_in_turn(stream_of())
    )
    watched = Watched(clock, transport)

    with caplog.at_level(logging.WARNING):
        async with watched.running(16.0):
            assert not watched.reflector.synced.is_set()

    assert len(transport.calls) == 5  # at 0, 1, 3, 7 and 15 seconds
    assert caplog.text.count("may not list things") == 1


async def test_the_server_may_ask_for_patience(clock: VirtualClock) -> None:
    transport = ScriptedTransport(
        in_turn(refusal(429, "TooManyRequests", headers={"retry-after": "20"}), page([], 1)),
        streams_in_turn(stream_of()),
    )
    watched = Watched(clock, transport)

    async with watched.running(19.0):
        assert len(transport.calls) == 1
        await clock.run_for(2.0)
        assert watched.reflector.synced.is_set()


async def test_short_empty_watches_do_not_become_a_busy_loop(clock: VirtualClock) -> None:
    transport = ScriptedTransport(in_turn(page([], 5)), streams_in_turn(stream_of(stays_open=False)))
    watched = Watched(clock, transport)

    async with watched.running(16.0):
        pass

    assert len(transport.watches) == 5


async def test_cancelling_during_a_stall_check_stops_it(clock: VirtualClock) -> None:
    transport = ScriptedTransport(in_turn(page([], 5)), streams_in_turn(stream_of()))
    watched = Watched(clock, transport)

    async with watched.running():
        pass

    assert [task for task in asyncio.all_tasks() if "stall watch" in task.get_name()] == []


async def test_an_object_that_does_not_fit_is_skipped_by_name_and_the_others_go_on(
    clock: VirtualClock, caplog: pytest.LogCaptureFixture
) -> None:
    transport = ScriptedTransport(
        in_turn(
            page([thing("a", 1), thing("bad", 2, value="many")], 5),
            page([thing("a", 1), thing("c", 7, value="many"), thing("bad", 2, value="many")], 9),
        ),
        streams_in_turn(
            stream_of(
                event("ADDED", thing("c", 6)),
                event("MODIFIED", thing("c", 7, value="many")),
                event("MODIFIED", thing("d", 8, value="many")),
                event("DELETED", thing("d", 9, value="many")),
                EXPIRED,
            ),
            stream_of(event("DELETED", thing("c", 10, value="many"))),
        ),
    )
    watched = Watched(clock, transport)

    async with watched.running(2.0):
        pass

    assert watched.diary == ["+a1", "+c6", "-c6"]
    assert watched.reflector.replica.decode_errors == 5
    assert list(watched.reflector.replica.rejected) == ["ns/bad"]
    assert watched.reflector.stats.resource_version == "10"
    assert "skipping ns/bad of /api/v1/things" in caplog.text


async def test_nonsense_on_the_wire_leads_to_a_new_list(clock: VirtualClock) -> None:
    transport = ScriptedTransport(
        in_turn(page([thing("a", 1)], 5), page([thing("a", 2)], 6)),
        streams_in_turn(stream_of(b"nonsense\n"), stream_of()),
    )
    watched = Watched(clock, transport)

    async with watched.running(2.0):
        pass

    assert watched.diary == ["+a1", "~a2"]


STREAMING = ReflectorSettings(is_streaming=True, backoff=SLOW, stall_seconds=60.0)


async def test_a_list_can_be_streamed_and_the_stream_goes_on_as_a_watch(clock: VirtualClock) -> None:
    transport = ScriptedTransport(
        in_turn(refusal(500)),
        streams_in_turn(
            stream_of(
                event("ADDED", thing("a", 1)),
                event("ADDED", thing("b", 2, value="many")),
                bookmark(5, ends_initial_events=True),
                event("DELETED", thing("a", 6)),
                CUT,
            ),
            stream_of(),
        ),
    )
    watched = Watched(clock, transport, STREAMING)

    async with watched.running(2.0):
        assert watched.reflector.synced.is_set()

    assert transport.calls == []
    assert transport.watches[0].query["sendInitialEvents"] == "true"
    assert transport.watches[0].query["resourceVersionMatch"] == "NotOlderThan"
    assert "resourceVersion" not in transport.watches[0].query
    assert transport.watches[1].query["resourceVersion"] == "6"
    assert watched.diary == ["+a1", "-a1"]


async def test_a_streamed_list_after_a_410_also_finds_deletions(clock: VirtualClock) -> None:
    end = bookmark(5, ends_initial_events=True)
    transport = ScriptedTransport(
        None,
        streams_in_turn(
            stream_of(event("ADDED", thing("a", 1)), event("ADDED", thing("b", 2)), end, EXPIRED),
            stream_of(event("ADDED", thing("b", 2)), bookmark(7), CUT),
            stream_of(event("ADDED", thing("b", 2)), bookmark(9, ends_initial_events=True)),
        ),
    )
    watched = Watched(clock, transport, STREAMING)

    async with watched.running(5.0):
        pass

    assert watched.diary == ["+a1", "+b2", "-a1"]
    assert watched.reflector.stats.lists == 2


@pytest.mark.parametrize(
    "refused",
    [
        stream_of(event("ERROR", status(500, "InternalError", "RequestWatchProgress is disabled"))),
        stream_of(api_error(422, b"")),
        stream_of(api_error(400, b"")),
    ],
)
async def test_a_server_that_cannot_stream_lists_is_asked_for_pages_at_once_and_from_then_on(
    clock: VirtualClock, refused: Stream
) -> None:
    transport = ScriptedTransport(
        in_turn(page([thing("a", 1)], 5), page([], 6)), streams_in_turn(refused, stream_of(EXPIRED), stream_of())
    )
    watched = Watched(clock, transport, STREAMING)

    async with watched.running(2.0):
        pass

    assert watched.diary == ["+a1", "-a1"]
    assert ["sendInitialEvents" in watch.query for watch in transport.watches] == [True, False, False]


async def test_a_server_that_ignores_the_request_to_stream_is_noticed(clock: VirtualClock) -> None:
    transport = ScriptedTransport(
        in_turn(page([thing("a", 1)], 5)), streams_in_turn(stream_of(event("ADDED", thing("a", 1))), stream_of())
    )
    watched = Watched(clock, transport, STREAMING)

    async with watched.running(61.0):
        assert watched.reflector.synced.is_set()

    assert watched.diary == ["+a1"]


async def test_a_streamed_list_that_ends_early_is_begun_again(clock: VirtualClock) -> None:
    transport = ScriptedTransport(
        None,
        streams_in_turn(
            stream_of(event("ADDED", thing("a", 1)), stays_open=False),
            stream_of(event("ADDED", thing("a", 1)), bookmark(5, ends_initial_events=True)),
        ),
    )
    watched = Watched(clock, transport, STREAMING)

    async with watched.running(2.0):
        assert watched.reflector.synced.is_set()

    assert watched.diary == ["+a1"]


async def test_a_large_list_lets_others_run_in_between(clock: VirtualClock) -> None:
    transport = ScriptedTransport(
        in_turn(page([thing(f"t{number}", 1) for number in range(2000)], 5)), streams_in_turn(stream_of())
    )
    watched = Watched(clock, transport)
    sizes: set[int] = set()

    async def look() -> None:
        while len(watched.diary) < 2000:
            sizes.add(len(watched.diary))
            await asyncio.sleep(0)

    looking = asyncio.create_task(look())
    async with watched.running():
        await looking

    assert sizes == {0, 500, 1000, 1500}
    assert len(watched.reflector.objects) == 2000
