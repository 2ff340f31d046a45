"""Clients without manners: slow ones, silent ones, many at once."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncIterator

from starlette.requests import Request
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Route

from bayplan.server import Limits, ServerOptions, ServerParts, serve

from .support import client_of, raw_connection

IMPATIENT = Limits(receive_seconds=0.15, stalled_write_seconds=0.05, connections=3, keep_alive_seconds=5)
PLAIN = ServerOptions(port=0, is_plain_http=True, limits=IMPATIENT)
GET = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


async def ended(reader: asyncio.StreamReader) -> bool:
    """Whether the server ends the connection soon."""
    with contextlib.suppress(ConnectionError):
        async with asyncio.timeout(60):
            await reader.read()
    return True


async def test_a_client_that_says_nothing_is_dropped() -> None:
    async with serve(PLAIN, ServerParts()) as server, raw_connection(server) as (reader, _):
        assert await ended(reader)


async def test_a_request_that_trickles_in_is_dropped() -> None:
    async with serve(PLAIN, ServerParts()) as server, raw_connection(server) as (reader, writer):
        for byte in GET[:10]:
            writer.write(bytes([byte]))
            await asyncio.sleep(0.002)

        assert await ended(reader)


async def test_a_body_that_never_ends_is_dropped() -> None:
    async with serve(PLAIN, ServerParts()) as server, raw_connection(server) as (reader, writer):
        writer.write(b"POST /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\nx")

        assert await ended(reader)


async def test_a_connection_may_rest_between_two_requests() -> None:
    async with serve(PLAIN, ServerParts()) as server, raw_connection(server) as (reader, writer):
        for _ in range(2):
            writer.write(GET)
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200")
            assert await reader.readexactly(2) == b"ok"
            await asyncio.sleep(0.2)


async def test_a_second_request_that_trickles_in_is_dropped_too() -> None:
    async with serve(PLAIN, ServerParts()) as server, raw_connection(server) as (reader, writer):
        writer.write(GET)
        await reader.readuntil(b"ok")
        writer.write(b"GET /heal")

        assert await ended(reader)


async def test_requests_sent_in_one_go_are_answered_in_order() -> None:
    async with serve(PLAIN, ServerParts()) as server, raw_connection(server) as (reader, writer):
        writer.write(GET * 3)
        for _ in range(3):
            assert (await reader.readuntil(b"\r\n\r\nok")).startswith(b"HTTP/1.1 200")


async def test_a_client_that_takes_nothing_of_its_answer_is_dropped() -> None:
    is_over = asyncio.Event()

    async def pieces() -> AsyncIterator[bytes]:
        try:
            while True:
                yield b"x" * 65536
                await asyncio.sleep(0)
        finally:
            is_over.set()

    async def endless(request: Request) -> StreamingResponse:
        return StreamingResponse(pieces())

    parts = ServerParts(routes=[Route("/endless", endless)])
    async with serve(PLAIN, parts) as server:
        _, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=1024)
        writer.write(b"GET /endless HTTP/1.1\r\nHost: localhost\r\n\r\n")
        async with asyncio.timeout(60):
            await is_over.wait()
        writer.transport.abort()


async def test_connections_that_do_nothing_keep_no_probe_out() -> None:
    """Also those that did something before, and those whose request never ends."""
    patient = dataclasses.replace(IMPATIENT, receive_seconds=60, keep_alive_seconds=60)
    options = dataclasses.replace(PLAIN, limits=patient)
    async with serve(options, ServerParts()) as server, contextlib.AsyncExitStack() as stack:
        held = [await stack.enter_async_context(raw_connection(server)) for _ in range(3)]
        for reader, writer in held[:2]:
            writer.write(GET)
            await reader.readuntil(b"ok")
        held[2][1].write(b"GET /heal")
        for number in range(3):
            reader, writer = await stack.enter_async_context(raw_connection(server))
            writer.write(GET)
            assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200"), number

        assert all([await ended(reader) for reader, _ in held])


async def test_one_peer_has_fewer_connections_than_all_together() -> None:
    limits = dataclasses.replace(IMPATIENT, receive_seconds=60, connections=10, connections_per_peer=2)
    options = dataclasses.replace(PLAIN, limits=limits)
    async with serve(options, ServerParts()) as server, contextlib.AsyncExitStack() as stack:
        first, second = [await stack.enter_async_context(raw_connection(server)) for _ in range(2)]
        second[1].write(GET)
        await second[0].readuntil(b"ok")
        third = await stack.enter_async_context(raw_connection(server))
        assert await ended(first[0])
        for reader, writer in (second, third):
            writer.write(GET)
            assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200")


async def test_while_all_connections_are_busy_probes_are_answered_and_nothing_else() -> None:
    is_over, count = asyncio.Event(), 0

    async def slow(request: Request) -> PlainTextResponse:
        nonlocal count
        count += 1
        await is_over.wait()
        return PlainTextResponse("ok")

    parts = ServerParts(routes=[Route("/slow", slow)])
    async with serve(PLAIN, parts) as server, contextlib.AsyncExitStack() as stack:
        busy = [await stack.enter_async_context(raw_connection(server)) for _ in range(3)]
        for _, writer in busy:
            writer.write(GET.replace(b"/healthz", b"/slow"))
        async with asyncio.timeout(60):
            while count < 3:  # noqa: ASYNC110 - the requests have no event of their own
                await asyncio.sleep(0.01)
        for number in range(IMPATIENT.probe_connections + 5):
            late, probe = await stack.enter_async_context(raw_connection(server))
            probe.write(GET.replace(b"/healthz", b"/slow") if number % 2 else GET)
            status = await late.readline()
            assert status.startswith(b"HTTP/1.1 503" if number % 2 else b"HTTP/1.1 200"), number
        is_over.set()
        for reader, _ in busy:
            assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200")
    async with serve(PLAIN, ServerParts()) as server, client_of(server) as client:
        for _ in range(10):
            assert (await client.get("/healthz")).status == 200
