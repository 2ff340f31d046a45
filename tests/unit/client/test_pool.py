from __future__ import annotations

import asyncio

import pytest
from tests.waiting import until

from bayplan.client.errors import ConnectionFailed, RequestTimeout
from bayplan.client.pool import PoolSettings

from .support import Handler, LoopbackServer, ReceivedRequest, http, http_transport, replying


async def _answer_later(request: ReceivedRequest, writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(0.01)
    writer.write(http(200, request.line.encode()))


def _holding(release: asyncio.Event) -> Handler:
    """A handler that answers once `release` is set."""

    async def handle(request: ReceivedRequest, writer: asyncio.StreamWriter) -> None:
        await release.wait()
        writer.write(http(200))

    return handle


async def test_there_are_never_more_connections_than_allowed_and_everybody_is_served_in_turn() -> None:
    async with LoopbackServer(_answer_later) as server:
        transport = http_transport(server.url, pool=PoolSettings(max_connections=3))
        answers = await asyncio.gather(*(transport.request("GET", f"/{number}") for number in range(12)))
        open_connections = transport.open_connections
        await transport.close()

    assert [answer.body.split()[1] for answer in answers] == [f"/{number}".encode() for number in range(12)]
    assert server.connections == open_connections == 3
    assert [request.line.split()[1] for request in server.requests] == [f"/{number}" for number in range(12)]


async def test_a_broken_connection_makes_room_for_those_who_wait() -> None:
    async def handle(request: ReceivedRequest, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.005)
        if "bad" in request.line:
            writer.transport.abort()
        else:
            writer.write(http(200))

    async with LoopbackServer(handle) as server:
        transport = http_transport(server.url, pool=PoolSettings(max_connections=1))
        results = await asyncio.gather(
            *(transport.request("GET", path) for path in ("/bad", "/good", "/bad", "/good")), return_exceptions=True
        )
        await transport.close()

    assert [isinstance(result, ConnectionFailed) for result in results] == [True, False, True, False]


async def test_a_waiter_that_gives_up_does_not_take_a_place_with_it() -> None:
    release = asyncio.Event()
    async with LoopbackServer(_holding(release)) as server:
        transport = http_transport(server.url, pool=PoolSettings(max_connections=1))
        tasks = [asyncio.create_task(transport.request("GET", f"/{number}")) for number in range(6)]
        await until(lambda: server.requests)
        for task in tasks[1::2]:
            task.cancel()
        release.set()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        again = await transport.request("GET", "/again")
        await transport.close()

    assert [isinstance(result, asyncio.CancelledError) for result in results] == [False, True] * 3
    assert again.status == 200
    assert server.connections == 1


async def test_who_waits_too_long_for_a_connection_is_told_that_nothing_was_sent() -> None:
    async with LoopbackServer(_holding(asyncio.Event())) as server:
        transport = http_transport(server.url, pool=PoolSettings(max_connections=1))
        first = asyncio.create_task(transport.request("GET", "/1", timeout=90))
        await until(lambda: server.requests)
        with pytest.raises(RequestTimeout, match=r"no connection .* was free") as caught:
            await transport.request("GET", "/2", timeout=0.02)
        await transport.close()
        with pytest.raises(ConnectionFailed):
            await first

    assert caught.value.may_have_been_processed is False


async def test_an_old_connection_is_retired_and_a_rested_one_is_not_trusted() -> None:
    for settings in (PoolSettings(max_age_seconds=0.0), PoolSettings(max_rest_seconds=-1.0)):
        async with LoopbackServer(replying(http(200))) as server:
            transport = http_transport(server.url, pool=settings)
            await transport.request("GET", "/x")
            await transport.request("GET", "/x")
            await transport.close()

        assert server.connections == 2


async def test_what_a_burst_opened_is_given_up_again_while_a_few_go_on() -> None:
    async with LoopbackServer(_answer_later) as server:
        transport = http_transport(server.url, pool=PoolSettings(max_rest_seconds=1000.0))
        await asyncio.gather(*(transport.request("GET", "/burst") for _ in range(8)))
        after_burst = transport.open_connections
        for rested in list(transport._pool._resting)[:-1]:
            rested.idle_since -= 2000.0
        for _ in range(30):
            await transport.request("GET", "/steady")
        later = transport.open_connections
        await transport.close()

    assert (after_burst, later) == (8, 1)


async def test_a_server_that_closes_a_resting_connection_is_noticed() -> None:
    async def handle(request: ReceivedRequest, writer: asyncio.StreamWriter) -> None:
        writer.write(http(200))
        await writer.drain()
        writer.close()

    async with LoopbackServer(handle) as server:
        transport = http_transport(server.url)
        await transport.request("GET", "/x")
        await until(lambda: transport.open_connections == 0)
        await transport.request("GET", "/x")
        await transport.close()

    assert server.connections == 2


async def test_closing_fails_those_who_wait() -> None:
    async with LoopbackServer(_holding(asyncio.Event())) as server:
        transport = http_transport(server.url, pool=PoolSettings(max_connections=1))
        tasks = [asyncio.create_task(transport.request("GET", "/x")) for _ in range(3)]
        await until(lambda: server.requests)
        await transport.close()
        results = await asyncio.gather(*tasks, return_exceptions=True)

    assert all(isinstance(result, ConnectionFailed) for result in results)
