"""A fake API server that knows some tokens, a served set of parts, and a client that says what it got."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
from tests.controlplane.certificates import KeyPair

from bayplan.server import ServerOptions, ServerParts, Serving, serve


class Reviewer:
    """Answers reviews as an API server would: token to user and groups, user to paths they may get."""

    def __init__(self) -> None:
        self.users: dict[str, list[str]] = {"reader": ["monitoring"], "stranger": []}
        self.may: set[tuple[str, str, str]] = {("reader", "get", "/metrics"), ("certified", "get", "/metrics")}
        self.asked: list[Mapping[str, Any]] = []
        self.fault: Exception | None = None
        self.answer: Mapping[str, Any] | None = None
        self.hold: asyncio.Event | None = None

    async def __call__(self, path: str, question: Mapping[str, Any]) -> Mapping[str, Any]:
        self.asked.append(question)
        if self.hold is not None:
            await self.hold.wait()
        if self.fault is not None:
            raise self.fault
        if self.answer is not None:
            return self.answer
        spec = question["spec"]
        if question["kind"] == "TokenReview":
            assert path == "/apis/authentication.k8s.io/v1/tokenreviews"
            name = spec["token"].removeprefix("token-of-")
            if name not in self.users:
                return {"status": {"authenticated": False, "error": "invalid token"}}
            groups = [*self.users[name], "system:authenticated"]
            return {
                "status": {"authenticated": True, "user": {"username": name, "uid": f"uid-{name}", "groups": groups}}
            }
        assert path == "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        if "resourceAttributes" in spec:
            read = spec["resourceAttributes"]
            asked = (spec["user"], read["verb"], f"{read['resource']} in {read.get('namespace', 'all')}")
            return {"status": {"allowed": asked in self.may}}
        attributes = spec["nonResourceAttributes"]
        return {"status": {"allowed": (spec["user"], attributes["verb"], attributes["path"]) in self.may}}

    def kinds(self) -> list[str]:
        return [str(question["kind"]) for question in self.asked]


@dataclass(frozen=True)
class Got:
    status: int
    text: str
    headers: Mapping[str, str] = field(repr=False)


class Client:
    """One client of one server. `token` is sent as a bearer token."""

    def __init__(self, server: Serving, session: aiohttp.ClientSession, tls: ssl.SSLContext | bool) -> None:
        self.server = server
        self._session = session
        self._tls = tls

    async def get(self, path: str, *, token: str = "", **headers: str) -> Got:
        return await self.send("GET", path, token=token, headers=headers)

    async def send(
        self,
        method: str,
        path: str,
        *,
        token: str = "",
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
    ) -> Got:
        sent = dict(headers or {})
        if token:
            sent["Authorization"] = f"Bearer {token}"
        request = self._session.request(
            method, self.server.url + path, headers=sent, data=body, ssl=self._tls, allow_redirects=False
        )
        async with request as response:
            return Got(response.status, await response.text(), response.headers)


@contextlib.asynccontextmanager
async def serving(options: ServerOptions | None = None, parts: ServerParts | None = None) -> AsyncIterator[Client]:
    """Start a server and a client that trusts it."""
    async with serve(options or ServerOptions(port=0), parts or ServerParts()) as server, client_of(server) as client:
        yield client


@contextlib.asynccontextmanager
async def client_of(
    server: Serving, *, pair: KeyPair | None = None, authority: Path | None = None
) -> AsyncIterator[Client]:
    tls: ssl.SSLContext | bool = False
    if server.url.startswith("https"):
        tls = tls_of(server, pair=pair, authority=authority)
    connector = aiohttp.TCPConnector(force_close=True)
    async with aiohttp.ClientSession(connector=connector) as session:
        yield Client(server, session, tls)


def tls_of(server: Serving, *, pair: KeyPair | None = None, authority: Path | None = None) -> ssl.SSLContext:
    trusted = authority.read_text() if authority else server.certificate.decode()
    context = ssl.create_default_context(cadata=trusted)
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if pair is not None:
        context.load_cert_chain(pair.certificate, pair.key)
    return context


@contextlib.asynccontextmanager
async def raw_connection(server: Serving) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Bytes to and from a server, for requests that no client would send."""
    tls = tls_of(server) if server.url.startswith("https") else None
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=tls)
    try:
        yield reader, writer
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
