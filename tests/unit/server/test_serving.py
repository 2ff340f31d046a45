"""The server as a whole, over real sockets on loopback."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import AsyncIterator

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Route

from bayplan.server import Limits, ServerOptions, ServerParts, ServingError, serve, user_of

from .support import Reviewer, client_of, raw_connection, serving, tls_of

ANY_PORT = ServerOptions(port=0)


def plain(**more: object) -> ServerOptions:
    return ServerOptions(port=0, is_plain_http=True, **more)  # type: ignore[arg-type]  # keywords of the test's choosing


async def test_probes_are_answered_without_credentials_over_https() -> None:
    async with serving() as client:
        answers = [await client.get(path) for path in ("/healthz", "/livez", "/readyz")]

        assert client.server.url.startswith("https://127.0.0.1:")
        assert [(got.status, got.text) for got in answers] == [(200, "ok")] * 3


async def test_everything_else_needs_to_be_somebody_who_may() -> None:
    parts = ServerParts(metrics=lambda accept: (b"pods 1\n", "text/plain"), review=Reviewer())
    async with serving(ANY_PORT, parts) as client:
        anonymous = await client.get("/metrics")
        unknown = await client.get("/metrics", token="made-up")
        stranger = await client.get("/metrics", token="token-of-stranger")
        reader = await client.get("/metrics", token="token-of-reader")

    assert (anonymous.status, unknown.status, stranger.status, reader.status) == (401, 401, 403, 200)
    assert anonymous.headers["WWW-Authenticate"].startswith("Bearer")
    assert "cannot get path" in stranger.text
    assert reader.text == "pods 1\n"


PROTECTED = ("/metrics", "/metrics/resources", "/metrics/slis", "/configz", "/flagz", "/statusz", "/healthz/ping")


@pytest.mark.parametrize("path", (*PROTECTED, "/unknown"))
async def test_without_credentials_no_page_tells_whether_it_exists(path: str) -> None:
    async with serving(ANY_PORT, ServerParts(review=Reviewer())) as client:
        assert (await client.get(path)).status == 401


async def test_pages_added_later_are_behind_the_same_door_and_see_the_user() -> None:
    async def page(request: Request) -> PlainTextResponse:
        user = user_of(request.scope)
        assert user is not None
        return PlainTextResponse(f"hello {user.name}")

    reviewer = Reviewer()
    reviewer.may.add(("reader", "get", "/dashboard"))
    async with serving(ANY_PORT, ServerParts(review=reviewer, routes=[Route("/dashboard", page)])) as client:
        assert (await client.get("/dashboard")).status == 401
        assert (await client.get("/dashboard", token="token-of-stranger")).status == 403
        assert (await client.get("/dashboard", token="token-of-reader")).text == "hello reader"


async def test_a_page_that_fails_tells_the_log_and_not_the_client(caplog: pytest.LogCaptureFixture) -> None:
    async def broken(request: Request) -> PlainTextResponse:
        raise ValueError("the inner workings")

    with caplog.at_level(logging.ERROR):
        async with serving(plain(), ServerParts(routes=[Route("/broken", broken)])) as client:
            got = await client.get("/broken")

    assert got.status == 500
    assert "inner workings" not in got.text
    assert "Traceback" not in got.text
    assert "the inner workings" in caplog.text


async def test_a_disabled_server_listens_nowhere() -> None:
    async with serve(ServerOptions(is_enabled=False), ServerParts()) as server:
        assert (server.url, server.port, server.certificate) == ("", 0, b"")
        assert not server.reload_certificates()


async def test_a_port_in_use_is_said_with_what_to_do() -> None:
    async with serve(ANY_PORT, ServerParts()) as server:
        with pytest.raises(ServingError, match=rf"cannot listen on 127\.0\.0\.1:{server.port}(.|\n)*hint: "):
            async with serve(ServerOptions(port=server.port), ServerParts()):
                pass


async def test_a_client_with_older_tls_than_asked_for_is_refused() -> None:
    async with serve(ServerOptions(port=0, tls_min_version="VersionTLS13"), ServerParts()) as server:
        tls = tls_of(server)
        tls.maximum_version = ssl.TLSVersion.TLSv1_2
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await asyncio.open_connection("127.0.0.1", server.port, ssl=tls)


async def test_stopping_waits_for_no_client_that_never_ends() -> None:
    began = asyncio.Event()

    async def without_end() -> AsyncIterator[bytes]:
        while True:
            began.set()
            yield b"more\n"
            await asyncio.sleep(0.01)

    async def endless(request: Request) -> StreamingResponse:
        return StreamingResponse(without_end())

    before = asyncio.all_tasks()
    parts = ServerParts(routes=[Route("/endless", endless)])
    async with contextlib.AsyncExitStack() as clients:
        async with serve(plain(limits=Limits(shutdown_seconds=0.1)), parts) as server:
            opened = [await clients.enter_async_context(raw_connection(server)) for _ in range(3)]
            opened[1][1].write(b"GET /healthz HTT")
            opened[2][1].write(b"GET /endless HTTP/1.1\r\nHost: localhost\r\n\r\n")
            await began.wait()
        left = asyncio.all_tasks() - before

    assert left == set()


async def test_a_request_under_way_is_finished_when_the_server_stops() -> None:
    entered, released = asyncio.Event(), asyncio.Event()

    async def slow(request: Request) -> PlainTextResponse:
        entered.set()
        await released.wait()
        return PlainTextResponse("done")

    async with contextlib.AsyncExitStack() as clients:
        async with serve(plain(), ServerParts(routes=[Route("/slow", slow)])) as server:
            client = await clients.enter_async_context(client_of(server))
            answer = asyncio.create_task(client.get("/slow"))
            await entered.wait()
            asyncio.get_running_loop().call_later(0.05, released.set)
        got = await answer

    assert got.text == "done"


async def test_the_listener_is_gone_after_the_end() -> None:
    async with serve(plain(), ServerParts()) as server:
        port = server.port
    with pytest.raises(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        pass


@pytest.mark.parametrize("address", ["0.0.0.0", "192.0.2.1", "::"])
def test_plain_http_on_an_address_that_others_reach_is_refused(address: str) -> None:
    with pytest.raises(ServingError, match="loopback only"):
        ServerOptions(is_plain_http=True, bind_address=address)


async def test_localhost_is_one_address() -> None:
    async with serving(ServerOptions(port=0, bind_address="localhost")) as client:
        assert (await client.get("/healthz")).text == "ok"


@pytest.mark.parametrize("address", ["no-such-name.invalid", "192.0.2.1"])
async def test_an_address_of_another_machine_is_told_apart_from_a_port_in_use(address: str) -> None:
    with pytest.raises(ServingError, match="hint: the address must be one of this machine's"):
        async with serve(ServerOptions(port=0, bind_address=address), ServerParts()):
            pass
