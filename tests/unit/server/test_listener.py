"""Clients that connect and never finish their TLS handshake take bounded memory, and keep nobody out."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
import uvloop

from bayplan.server import Limits, ServerOptions, ServerParts, Serving, serve

from .support import client_of

PATIENT = Limits(handshake_seconds=600, receive_seconds=600)
LOOPS = pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
Run = Callable[[Coroutine[Any, Any, None]], None]


async def silent(server: Serving, stack: contextlib.AsyncExitStack, count: int) -> list[asyncio.StreamReader]:
    """Connections that never begin their handshake."""
    readers = []
    for _ in range(count):
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        stack.callback(writer.close)
        readers.append(reader)
    return readers


async def end_of(reader: asyncio.StreamReader) -> None:
    with contextlib.suppress(ConnectionError):
        async with asyncio.timeout(60):
            await reader.read()


@LOOPS
@pytest.mark.parametrize(("of_peer", "of_all"), [(3, 100), (100, 3)])
def test_the_handshake_that_began_first_makes_room(run: Run, of_peer: int, of_all: int) -> None:
    limits = Limits(handshake_seconds=600, receive_seconds=600, connections_per_peer=of_peer, connections=of_all)

    async def scenario() -> None:
        options = ServerOptions(port=0, limits=limits)
        async with serve(options, ServerParts()) as server, contextlib.AsyncExitStack() as stack:
            readers = await silent(server, stack, 8)
            for reader in readers[:5]:
                await end_of(reader)
            async with client_of(server) as client:
                probed = (await client.get("/healthz")).status

            assert probed == 200
            assert [reader.at_eof() for reader in readers[6:]] == [False, False]

    run(scenario())


@LOOPS
def test_a_server_that_stops_ends_handshakes(run: Run) -> None:
    async def scenario() -> None:
        async with contextlib.AsyncExitStack() as stack:
            async with serve(ServerOptions(port=0, limits=PATIENT), ServerParts()) as server:
                readers = await silent(server, stack, 3)
                async with client_of(server) as client:
                    await client.get("/healthz")
            for reader in readers:
                await end_of(reader)
            with pytest.raises(OSError, match=r"Connect|connect"):
                await asyncio.open_connection("127.0.0.1", server.port)

    run(scenario())


@LOOPS
def test_garbage_instead_of_a_handshake_ends_that_connection_alone(run: Run) -> None:
    async def scenario() -> None:
        async with serve(ServerOptions(port=0, limits=PATIENT), ServerParts()) as server:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(b"GET /healthz HTTP/1.1\r\n\r\n")
            await end_of(reader)
            writer.close()
            async with client_of(server) as client:
                assert (await client.get("/healthz")).status == 200

    run(scenario())
