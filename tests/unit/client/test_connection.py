from __future__ import annotations

import asyncio

import pytest

from bayplan.client.connection import BUFFER_BYTES, HttpConnection, RawHeaders
from bayplan.client.errors import ConnectionFailed, InvalidResponse, RequestTimeout

from .support import LoopbackServer, ReceivedRequest, http, replying


async def _connect(server: LoopbackServer, *, max_response_bytes: int = 1 << 20) -> HttpConnection:
    _, connection = await asyncio.get_running_loop().create_connection(
        lambda: HttpConnection(
            on_lost=lambda lost: None, buffer=memoryview(bytearray(BUFFER_BYTES)), max_response_bytes=max_response_bytes
        ),
        "127.0.0.1",
        server.port,
    )
    return connection


_GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


async def test_an_answer_larger_than_allowed_is_refused() -> None:
    async with LoopbackServer(replying(http(200, b"x" * 100))) as server:
        connection = await _connect(server, max_response_bytes=10)
        with pytest.raises(InvalidResponse, match="more than 10 bytes"):
            await connection.exchange(_GET, 1.0)

    assert connection.is_open is False


async def test_an_answer_with_endless_headers_is_refused() -> None:
    async with LoopbackServer(replying(http(200, headers="A: b\r\n" * 1000))) as server:
        connection = await _connect(server)
        with pytest.raises(InvalidResponse, match="too many headers"):
            await connection.exchange(_GET, 1.0)


async def test_one_request_at_a_time() -> None:
    async with LoopbackServer(replying(http(200))) as server:
        connection = await _connect(server)
        first, second = connection.exchange(_GET, 1.0), connection.exchange(_GET, 1.0)
        with pytest.raises(ConnectionFailed) as caught:
            await second
        assert (await first).status == 200
        connection.close()

    assert caught.value.may_have_been_processed is False


async def test_a_connection_that_streamed_is_never_used_again() -> None:
    async with LoopbackServer(replying(http(200, b"all of it"))) as server:
        connection = await _connect(server)
        body = connection.stream(_GET)
        status, headers = await body.begun
        assert (status, headers["content-length"]) == (200, "9")
        assert [piece async for piece in body] == [b"all of it"]

        assert connection.is_open is False
        with pytest.raises(ConnectionFailed):
            connection.stream(_GET)
        body.close()


async def test_an_answer_larger_than_the_buffer_is_put_together() -> None:
    content = bytes(range(256)) * 1024
    async with LoopbackServer(replying(http(200, content))) as server:
        connection = await _connect(server)
        assert (await connection.exchange(_GET, 1.0)).body == content
        connection.close()


async def test_a_closed_connection_takes_no_request() -> None:
    async with LoopbackServer(replying(http(200))) as server:
        connection = await _connect(server)
        connection.close()
        with pytest.raises(ConnectionFailed):
            await connection.exchange(_GET, 1.0)


async def test_a_request_with_less_time_than_the_one_before_is_given_up_in_time() -> None:
    async def handle(request: ReceivedRequest, writer: asyncio.StreamWriter) -> None:
        if request.line.startswith("GET"):
            writer.write(http(200))
            await writer.drain()
        else:
            await asyncio.sleep(10)

    async with LoopbackServer(handle) as server:
        connection = await _connect(server)
        await connection.exchange(_GET, 30.0)
        with pytest.raises(RequestTimeout, match=r"within 0\.05 s"):
            await connection.exchange(_GET.replace(b"GET", b"PUT"), 0.05)


async def test_a_request_with_more_time_than_the_one_before_gets_it() -> None:
    async def handle(request: ReceivedRequest, writer: asyncio.StreamWriter) -> None:
        if request.line.startswith("PUT"):
            await asyncio.sleep(1.2)
        writer.write(http(200))
        await writer.drain()

    async with LoopbackServer(handle) as server:
        connection = await _connect(server)
        await connection.exchange(_GET, 1.0)
        assert (await connection.exchange(_GET.replace(b"GET", b"PUT"), 60.0)).status == 200
        connection.close()


def test_headers_are_found_in_lower_case_and_the_last_one_counts() -> None:
    headers = RawHeaders([(b"Retry-After", b"1"), (b"retry-after", b"2"), (b"X", b"\xff")])

    assert headers["retry-after"] == "2"
    assert dict(headers) == {"retry-after": "2", "x": "\xff"}
