"""Calls of admission webhooks that answer well, badly, slowly and never."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.waiting import until

from bayplan.apiserver.objects.webhooks import Review, ReviewFailed
from bayplan.apiserver.server.tls import make_certificate
from bayplan.apiserver.server.webhook_calls import call_webhook

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]]
ALLOWED = json.dumps({"response": {"uid": "u", "allowed": True}}).encode()
HEAD = b"HTTP/1.1 200 OK\r\n"


class Hook:
    """A webhook on loopback; `open` counts the connections that its clients have not closed."""

    def __init__(self) -> None:
        self.url = ""
        self.authority = ""
        self.open = 0

    def review(self, *, seconds: int = 10) -> Review:
        client = {"url": self.url, "caBundle": self.authority}
        return Review({"name": "w", "clientConfig": client, "timeoutSeconds": seconds}, {"request": {"uid": "u"}})


@asynccontextmanager
async def hook(serve: Serve) -> AsyncIterator[Hook]:
    made, certificate = Hook(), make_certificate("127.0.0.1")

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        made.open += 1
        try:
            await reader.readuntil(b"\r\n\r\n")
            await serve(reader, writer)
            await reader.read()
        except OSError:
            pass
        finally:
            made.open -= 1
            writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=certificate.context())
    made.url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/review"
    made.authority = base64.b64encode(certificate.authority).decode()
    try:
        yield made
    finally:
        server.close()


def answering(*pieces: bytes, ends: bool = False) -> Serve:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
        if ends:
            writer.close()

    return serve


async def trickling(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(HEAD + b"Content-Length: 1000000\r\n\r\n")
    while True:
        writer.write(b"{")
        await writer.drain()
        await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("pieces", "ends"),
    [
        ((HEAD + b"Content-Length: %d\r\n\r\n" % len(ALLOWED), ALLOWED), False),
        ((HEAD + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(ALLOWED), ALLOWED),), False),
        ((b"HTTP/1.1 100 Continue\r\n\r\n" + HEAD + b"Content-Length: %d\r\n\r\n%b" % (len(ALLOWED), ALLOWED),), False),
        ((HEAD + b"\r\n" + ALLOWED,), True),
    ],
)
async def test_an_answer_is_read_however_it_is_divided(pieces: tuple[bytes, ...], ends: bool) -> None:
    async with hook(answering(*pieces, ends=ends)) as webhook:
        assert await call_webhook(webhook.review()) == {"uid": "u", "allowed": True}
        await until(lambda: webhook.open == 0)


async def test_a_webhook_that_trickles_is_left_in_time_and_holds_nothing() -> None:
    """A thread that reads from it would live as long as it sends, and keep the process from ending."""
    async with hook(trickling) as webhook:
        threads = threading.active_count()
        answers = await asyncio.gather(*(call_webhook(webhook.review(seconds=1)) for _ in range(20)))

        assert {str(answer) for answer in answers} == {"context deadline exceeded"}
        await until(lambda: webhook.open == 0)
        assert threading.active_count() <= threads


@pytest.mark.parametrize(
    ("pieces", "problem"),
    [
        ((b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n",), "status 500"),
        ((HEAD + b"Content-Length: 2\r\n\r\n{}",), "absent"),
        ((HEAD + b"Content-Length: 2\r\n\r\nxx",), "no JSON"),
        ((b"garbage\r\n\r\n",), "no HTTP"),
        ((HEAD + b"X: " + b"a" * 500_000,), "too large"),
        ((HEAD + b"Content-Length: 9000000\r\n\r\n" + b"a" * 8_700_000,), "too large"),
        ((HEAD + b"Content-Length: 9\r\n\r\n{}",), "closed the connection"),
    ],
)
async def test_a_bad_answer_is_a_failed_review(pieces: tuple[bytes, ...], problem: str) -> None:
    async with hook(answering(*pieces, ends=True)) as webhook:
        answer = await call_webhook(webhook.review())

    assert isinstance(answer, ReviewFailed)
    assert problem in str(answer)


@pytest.mark.parametrize("url", ["", "http://127.0.0.1:1", "https://", "https://[::1", "https://127.0.0.1:99999/"])
async def test_an_address_that_is_none_is_a_failed_review(url: str) -> None:
    webhook = Hook()
    webhook.url = url

    assert isinstance(await call_webhook(webhook.review()), ReviewFailed)


async def test_a_certificate_of_somebody_else_is_a_failed_review() -> None:
    async with hook(answering(HEAD)) as webhook:
        webhook.authority = base64.b64encode(make_certificate("127.0.0.1").authority).decode()
        answer = await call_webhook(webhook.review())

    assert isinstance(answer, ReviewFailed)
    assert isinstance(answer.__cause__, ssl.SSLError | None)


@pytest.mark.parametrize("bundle", ["!", "é", base64.b64encode(b"no certificate").decode()])
async def test_a_bundle_that_is_none_is_a_failed_review(bundle: str) -> None:
    async with hook(answering(HEAD)) as webhook:
        webhook.authority = bundle

        assert isinstance(await call_webhook(webhook.review()), ReviewFailed)
