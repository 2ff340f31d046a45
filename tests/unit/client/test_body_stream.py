"""The body of an answer, piece by piece."""

from __future__ import annotations

import asyncio

import pytest

from bayplan.client import body_stream
from bayplan.client.body_stream import BodyStream
from bayplan.client.errors import ConnectionFailed, InvalidResponse


class _Connection:
    """Notes what the stream asks of its connection."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.body = BodyStream(
            pause=lambda: self.asked.append("pause"),
            resume=lambda: self.asked.append("resume"),
            close=lambda: self.asked.append("close"),
        )


async def test_what_came_since_the_last_time_comes_in_one_piece_and_then_the_end() -> None:
    body = _Connection().body
    body.begin(200, {"a": "b"})
    for piece in (b"one", b"two"):
        body.feed(piece)
    body.end()

    assert await body.begun == (200, {"a": "b"})
    assert [piece async for piece in body] == [b"onetwo"]


async def test_a_consumer_that_waits_is_woken_by_a_piece_by_the_end_and_by_a_failure() -> None:
    body = _Connection().body
    waiting = asyncio.ensure_future(anext(body))
    await asyncio.sleep(0)
    body.feed(b"one")
    assert await waiting == b"one"

    waiting = asyncio.ensure_future(anext(body, b"nothing"))
    await asyncio.sleep(0)
    body.end()
    assert await waiting == b"nothing"

    body = _Connection().body
    waiting = asyncio.ensure_future(anext(body))
    await asyncio.sleep(0)
    body.begin(200, {})
    body.fail(InvalidResponse("half a chunk"))
    with pytest.raises(ConnectionFailed, match="the stream broke: half a chunk"):
        await waiting


async def test_what_arrived_before_a_failure_is_handed_over_first() -> None:
    body = _Connection().body
    body.begin(200, {})
    body.feed(b"one")
    body.fail(ConnectionFailed("reset", may_have_been_processed=True))

    assert await anext(body) == b"one"
    with pytest.raises(ConnectionFailed):
        await anext(body)


async def test_a_failure_before_the_status_is_told_to_whoever_waits_for_it() -> None:
    body = _Connection().body
    body.fail(ConnectionFailed("reset", may_have_been_processed=True))

    with pytest.raises(ConnectionFailed, match="reset"):
        await body.begun


async def test_a_failure_after_the_end_is_none() -> None:
    body = _Connection().body
    body.begin(200, {})
    body.end()
    body.fail(ConnectionFailed("closed", may_have_been_processed=True))

    assert [piece async for piece in body] == []


async def test_a_consumer_that_falls_behind_stops_the_reading_until_it_has_caught_up() -> None:
    connection = _Connection()
    half = b"x" * (body_stream._MOST_BYTES_AHEAD // 2)
    for _ in range(2):
        connection.body.feed(half)
    assert connection.asked == []

    for _ in range(2):
        connection.body.feed(b"x")
    assert connection.asked == ["pause"]

    await anext(connection.body)
    assert connection.asked == ["pause", "resume"]


async def test_a_connection_that_is_gone_is_not_asked_to_read_on() -> None:
    connection = _Connection()
    connection.body.begin(200, {})
    connection.body.feed(b"x" * (body_stream._MOST_BYTES_AHEAD + 1))
    connection.body.fail(ConnectionFailed("reset", may_have_been_processed=True))

    await anext(connection.body)
    assert connection.asked == ["pause"]
