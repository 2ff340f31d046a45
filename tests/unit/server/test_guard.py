"""Hostile requests, most of them as bytes, because no client would send them."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from bayplan.server import Limits, ServerOptions, ServerParts, serve
from bayplan.server.guard import _is_plain_path

from .support import Reviewer, raw_connection, serving

PLAIN = ServerOptions(port=0, is_plain_http=True, limits=Limits(body_bytes=100))


async def echo(request: Request) -> Response:
    return PlainTextResponse(str(len(await request.body())))


ECHO = ServerParts(routes=[Route("/echo", echo, methods=["POST"])])


async def exchange(request: bytes, parts: ServerParts = ECHO, options: ServerOptions = PLAIN) -> bytes:
    """Send bytes; what comes back until the server closes or falls silent."""
    async with serve(options, parts) as server, raw_connection(server) as (reader, writer):
        writer.write(request)
        answer = b""
        try:
            async with asyncio.timeout(60):
                while not answer.endswith((b"}", b"ok", b"5")):
                    piece = await reader.read(65536)
                    if not piece:
                        break
                    answer += piece
        except (TimeoutError, ConnectionError):
            pass
        return answer


def request_to(path: str, *headers: str, method: str = "GET", body: str = "") -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", *headers, "", body]
    return "\r\n".join(lines).encode("latin-1")


@pytest.mark.parametrize(
    "path",
    [
        "/healthz/../metrics",
        "/healthz/%2e%2e/metrics",
        "/healthz%2f..%2fmetrics",
        "//metrics",
        "/healthz//ping",
        "/%2fmetrics",
        "/metrics%00",
        "/met%0arics",
        "/%5cmetrics",
        "/a\\b",
        "/./metrics",
        "/%252e",
        "http://localhost/metrics",
        "*",
    ],
)
async def test_a_path_that_can_be_read_in_two_ways_is_refused(path: str) -> None:
    """Whatever is open to everybody must not lead anywhere else."""
    answer = await exchange(request_to(path), ServerParts(review=Reviewer()), ServerOptions(port=0))

    assert answer.startswith(b"HTTP/1.1 400 ")


@given(st.text(max_size=30))
def test_a_path_that_is_let_through_has_no_steps_back(path: str) -> None:
    if _is_plain_path(path, path.encode("utf-8", "replace")):
        assert path.startswith("/")
        assert ".." not in path.split("/")
        assert "//" not in path


async def test_a_body_within_the_limit_is_read_and_one_beyond_it_refused() -> None:
    good = await exchange(request_to("/echo", "Content-Length: 5", method="POST", body="12345"))
    declared = await exchange(request_to("/echo", "Content-Length: 101", method="POST", body="x" * 101))
    chunks = request_to(
        "/echo", "Transfer-Encoding: chunked", method="POST", body="65\r\n" + "x" * 101 + "\r\n0\r\n\r\n"
    )
    chunked = await exchange(chunks)

    assert good.endswith(b"5")
    assert declared.startswith(b"HTTP/1.1 413 ")
    assert chunked.startswith(b"HTTP/1.1 413 ")
    assert b"connection: close" in chunked.lower()


@pytest.mark.parametrize("length", ["-1", "99999999999999999999999999", "0x10", "1, 2"])
async def test_a_length_that_is_no_length_is_refused(length: str) -> None:
    answer = await exchange(request_to("/echo", f"Content-Length: {length}", method="POST", body="x"))

    assert answer[9:12] in (b"400", b"413")


async def test_a_client_that_goes_while_its_request_is_read_leaves_no_error_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def reading(request: Request) -> Response:
        begun.set()
        try:
            return await echo(request)
        finally:
            ended.set()

    parts = ServerParts(routes=[Route("/echo", reading, methods=["POST"])])
    async with serve(PLAIN, parts) as server:
        async with raw_connection(server) as (_, writer):
            writer.write(request_to("/echo", "Content-Length: 50", method="POST", body="hello"))
            await asyncio.wait_for(begun.wait(), 60)
        await asyncio.wait_for(ended.wait(), 60)
    assert not [record for record in caplog.records if record.levelname in ("WARNING", "ERROR")]


async def test_a_flood_of_headers_is_refused() -> None:
    large = await exchange(request_to("/healthz", *(f"X-{number}: {'y' * 1000}" for number in range(100))))
    many = await exchange(request_to("/healthz", *(f"X-{number}: y" for number in range(1_000))))

    assert large.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 431 "))
    assert many.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 431 "))


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"\x00" * 1000 + b"\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: a\r\nHost: localhost\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip\r\nContent-Length: 3\r\n\r\n",
        b"GET /\xff\xfe HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ],
)
async def test_bytes_that_are_no_request_get_an_error_or_nothing(request_bytes: bytes) -> None:
    answer = await exchange(request_bytes)

    assert answer == b"" or answer[9:10] == b"4"


async def test_after_garbage_the_server_still_works() -> None:
    async with serve(PLAIN, ECHO) as server:
        for garbage in (
            b"\x00\xff" * 500,
            b"GET / HTTP/1.1\r\nHost",
            b"POST /echo HTTP/1.1\r\nContent-Length: 99\r\n\r\nx",
        ):
            async with raw_connection(server) as (_, writer):
                writer.write(garbage)
        async with raw_connection(server) as (reader, writer):
            writer.write(request_to("/healthz"))
            assert (await reader.readline()).startswith(b"HTTP/1.1 200")


async def test_a_websocket_is_not_spoken_here() -> None:
    upgrade = ("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Key: x", "Sec-WebSocket-Version: 13")

    assert (await exchange(request_to("/healthz", *upgrade))).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
async def test_another_site_cannot_make_a_browser_change_anything(headers: dict[str, str]) -> None:
    async with serving(PLAIN, ECHO) as client:
        assert (await client.send("POST", "/echo", headers=headers, body=b"x")).status == 403


async def test_pages_of_this_server_may_post() -> None:
    async with serving(PLAIN, ECHO) as client:
        headers = {"Origin": client.server.url, "Sec-Fetch-Site": "same-origin"}

        assert (await client.send("POST", "/echo", headers=headers, body=b"x")).status == 200


async def test_every_answer_carries_the_headers_that_keep_browsers_honest() -> None:
    async with serving(PLAIN, ECHO) as client:
        answers = [await client.get("/healthz"), await client.get("/unknown"), await client.get("//")]

    for got in answers:
        assert got.headers["X-Content-Type-Options"] == "nosniff"
        assert got.headers["X-Frame-Options"] == "DENY"
        assert got.headers["Cache-Control"] == "no-store"
        assert "default-src 'none'" in got.headers["Content-Security-Policy"]
        assert "Date" in got.headers
        assert "Server" not in got.headers


async def test_a_page_may_bring_its_own_content_security_policy() -> None:
    async def page(request: Request) -> Response:
        return PlainTextResponse("x", headers={"Content-Security-Policy": "default-src 'self'"})

    async with serving(PLAIN, ServerParts(routes=[Route("/page", page)])) as client:
        got = await client.get("/page")

    assert got.headers["Content-Security-Policy"] == "default-src 'self'"
