"""HTTP to extenders, on loopback: plain, over TLS, slow, huge, and gone."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from aiohttp import web

from bayplan.client import extender as module
from bayplan.client.extender import ExtenderEndpoint, ExtenderFailed, ExtenderHttp
from bayplan.client.tls import Pem, TlsSettings

from .support import Certificates

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@contextlib.asynccontextmanager
async def serving(handler: Handler, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
    try:
        yield f"{'https' if tls else 'http'}://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@contextlib.asynccontextmanager
async def http() -> AsyncIterator[ExtenderHttp]:
    made = ExtenderHttp()
    try:
        yield made
    finally:
        await made.close()
        await made.close()


async def echo(request: web.Request) -> web.Response:
    return web.json_response({"path": request.path, "type": request.content_type, "said": await request.json()})


@pytest.mark.parametrize("slash", ["", "/"])
async def test_a_question_is_posted_below_the_prefix(slash: str) -> None:
    async with serving(echo) as url, http() as extender:
        endpoint = ExtenderEndpoint(url_prefix=f"{url}/a/b{slash}")
        answer = await extender.post(endpoint, "filter", {"Pod": 1})

    assert answer == {"path": "/a/b/filter", "type": "application/json", "said": {"Pod": 1}}


async def test_an_authority_of_the_configuration_is_what_counts(certificates: Certificates, tmp_path: Path) -> None:
    context = certificates.server_context(tmp_path)
    async with serving(echo, context) as url, http() as extender:
        trusted = TlsSettings(authority=Pem(data=certificates.authority))
        answer = await extender.post(ExtenderEndpoint(url_prefix=url, tls=trusted), "x", {})
        assert answer["path"] == "/x"
        answer = await extender.post(ExtenderEndpoint(url_prefix=url, tls=TlsSettings(insecure=True)), "y", {})
        assert answer["path"] == "/y"
        with pytest.raises(ExtenderFailed, match="cannot reach the extender at https://"):
            await extender.post(ExtenderEndpoint(url_prefix=url), "x", {})


async def test_an_answer_that_is_not_200_is_no_answer() -> None:
    async def away(request: web.Request) -> web.Response:
        raise web.HTTPFound("https://elsewhere.test/")

    async with serving(away) as url, http() as extender:
        with pytest.raises(ExtenderFailed) as raised:
            await extender.post(ExtenderEndpoint(url_prefix=url), "filter", {})

    assert str(raised.value) == f"failed filter with extender at URL {url}/filter, code 302"


async def test_the_time_is_for_the_whole_answer() -> None:
    async def trickle(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for _ in range(100):
            await response.write(b" ")
            await asyncio.sleep(0.02)
        return response

    async with serving(trickle) as url, http() as extender:
        with pytest.raises(ExtenderFailed, match=r"within 0\.1 s"):
            await extender.post(ExtenderEndpoint(url_prefix=url, timeout_seconds=0.1), "filter", {})


async def test_an_answer_without_end_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MAX_ANSWER_BYTES", 1000)

    async def flood(request: web.Request) -> web.Response:
        return web.Response(body=b"[" * 100_000)

    async with serving(flood) as url, http() as extender:
        with pytest.raises(ExtenderFailed, match="more than 1000 bytes"):
            await extender.post(ExtenderEndpoint(url_prefix=url), "filter", {})


@pytest.mark.parametrize("body", [b"", b"<html>", b"{", b"\xff\xfe", b"[" * 50_000])
async def test_what_is_not_json_is_refused(body: bytes) -> None:
    async def nonsense(request: web.Request) -> web.Response:
        return web.Response(body=body)

    async with serving(nonsense) as url, http() as extender:
        with pytest.raises(ExtenderFailed, match="is not JSON"):
            await extender.post(ExtenderEndpoint(url_prefix=url), "filter", {})


async def test_an_extender_that_is_not_there_is_named() -> None:
    async with http() as extender:
        with pytest.raises(ExtenderFailed, match=r"cannot reach the extender at http://127.0.0.1:1/filter: "):
            await extender.post(ExtenderEndpoint(url_prefix="http://127.0.0.1:1"), "filter", {})
