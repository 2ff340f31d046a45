"""A proxy between a client and the API server that breaks what it is told to break.

It listens on loopback, with TLS if it is given a context, and speaks to the server as the admin. Watches are passed on
as they come; everything else is read whole. A fault may be answered instead of the server, or after the server has
acted and the answer is lost: to the client both look alike, which is the point.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from enum import Enum
from pathlib import Path

import aiohttp
import yaml
from aiohttp import web

from tests.e2e.clusters import Cluster

_WRITES = ("POST", "PUT", "PATCH", "DELETE")


class Fault(Enum):
    UNAUTHORIZED = 401
    CONFLICT = 409
    TOO_MANY_REQUESTS = 429
    SERVER_ERROR = 500
    UNAVAILABLE = 503
    SILENCE = 0
    """Nothing is answered until the client gives up; the server never hears of the request."""
    LOST_ANSWER = -1
    """The server acts on the request; the connection breaks before the answer."""
    LATE_ANSWER = -2
    """The server acts on the request; the answer comes after the client has given up."""
    GARBAGE = -3
    """Something that is no answer of an API server, with status 200; the server never hears of the request."""
    SHORT_BODY = -4
    """The server acts on the request; the body of its answer ends early."""
    EXTRA_ANSWER = -5
    """The server acts on the request; its answer comes with one more, which nobody asked for."""


FAILED_WRITES = (
    Fault.CONFLICT,
    Fault.TOO_MANY_REQUESTS,
    Fault.SERVER_ERROR,
    Fault.UNAVAILABLE,
    Fault.SILENCE,
    Fault.LOST_ANSWER,
    Fault.LATE_ANSWER,
)
BROKEN_ANSWERS = (Fault.GARBAGE, Fault.SHORT_BODY, Fault.EXTRA_ANSWER)
Plan = Callable[[web.Request], Fault | None]
_SILENCE_SECONDS = 5.0
_EXTRA = b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
_EXPIRED = json.dumps(
    {
        "type": "ERROR",
        "object": {"kind": "Status", "status": "Failure", "reason": "Expired", "code": 410, "message": "too old"},
    }
).encode()


def no_fault(_: web.Request) -> Fault | None:
    return None


def failing_writes(share: float, dice: random.Random, kinds: Sequence[Fault] = FAILED_WRITES) -> Plan:
    """Break that share of all writes, each kind of fault as often as any other."""

    def plan(request: web.Request) -> Fault | None:
        if request.method not in _WRITES or dice.random() >= share:
            return None
        return dice.choice(kinds)

    return plan


def broken_answers(share: float, dice: random.Random) -> Plan:
    """Break the answers to that share of all requests, watches included."""
    return lambda request: dice.choice(BROKEN_ANSWERS) if dice.random() < share else None


class FaultyProxy:
    """Running while the `async with` lasts. `plan` may be replaced at any time, `tls` and `host` for the next move."""

    def __init__(self, cluster: Cluster, plan: Plan = no_fault, *, tls: ssl.SSLContext | None = None) -> None:
        self.plan = plan
        self.tls = tls
        self.host = "127.0.0.1"
        self.faults: Counter[Fault] = Counter()
        self._url = cluster.url
        self._tls = ssl.create_default_context(cafile=str(cluster.ca_file))
        self._tls.load_cert_chain(cluster.client_cert, cluster.client_key)
        self._session: aiohttp.ClientSession | None = None
        self._watches: dict[int, web.Request] = {}
        self._flows = asyncio.Event()
        self._flows.set()
        self._is_expired = False
        self._runner: web.AppRunner | None = None
        self.port = 0

    async def __aenter__(self) -> FaultyProxy:
        connector = aiohttp.TCPConnector(ssl=self._tls, limit=0)
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=5)
        self._session = aiohttp.ClientSession(connector=connector, timeout=timeout, auto_decompress=False)
        app = web.Application(client_max_size=1 << 24)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, handle_signals=False, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await self._listen()
        self.port = self._runner.addresses[0][1]
        return self

    async def _listen(self) -> None:
        assert self._runner is not None
        await web.TCPSite(self._runner, self.host, self.port, ssl_context=self.tls).start()

    async def __aexit__(self, *_: object) -> None:
        assert self._runner is not None
        assert self._session is not None
        self.cut_watches()
        await self._runner.cleanup()
        await self._session.close()

    def kubeconfig(
        self, folder: Path, *, cluster: Mapping[str, object] | None = None, user: Mapping[str, object] | None = None
    ) -> Path:
        """How a client gets here; more fields of its cluster and its user may be given."""
        server = f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "proxy", "cluster": {"server": server, **(cluster or {})}}],
            "users": [{"name": "nobody", "user": dict(user or {})}],
            "contexts": [{"name": "proxy", "context": {"cluster": "proxy", "user": "nobody"}}],
            "current-context": "proxy",
        }
        path = folder / "proxy-kubeconfig"
        path.write_text(yaml.safe_dump(document))
        return path

    def cut_connections(self) -> None:
        """Break every connection, whatever happens on it."""
        assert self._runner is not None
        assert self._runner.server is not None
        for connection in self._runner.server.connections:
            if connection.transport is not None:
                connection.transport.abort()

    def cut_watches(self) -> int:
        """Break every watch that is open; how many there were."""
        watches = list(self._watches.values())
        for request in watches:
            _abort(request)
        return len(watches)

    @contextlib.contextmanager
    def frozen_watches(self) -> Iterator[None]:
        """Pass nothing on of any watch, old or new, while the block lasts; all else works."""
        self._flows.clear()
        try:
            yield
        finally:
            self._flows.set()

    def expire_watches(self) -> int:
        """Say 410 in the middle of every watch that is open, and to the next that resumes; how many there were."""
        self._is_expired = True
        return self.cut_watches()

    async def move(self, away: Callable[[], Awaitable[None]]) -> None:
        """Listen nowhere during `away`, then at the same port again; connections stay."""
        assert self._runner is not None
        for site in list(self._runner.sites):
            await site.stop()
        self.cut_watches()
        await away()
        await self._listen()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        fault = self.plan(request)
        if fault is not None:
            self.faults[fault] += 1
        if fault is Fault.SILENCE:
            await asyncio.sleep(_SILENCE_SECONDS)
            return _abort(request)
        if fault is not None and fault.value > 0:
            return _refusal(fault.value)
        if fault is Fault.GARBAGE:
            return web.Response(text="<html>a page that a proxy made</html>", content_type="text/html")
        try:
            return await self._forward(request, fault)
        except (aiohttp.ClientError, OSError):
            return _abort(request)

    async def _forward(self, request: web.Request, fault: Fault | None) -> web.StreamResponse:
        assert self._session is not None
        headers = {name: request.headers[name] for name in ("Accept", "Content-Type") if name in request.headers}
        headers["Accept-Encoding"] = "identity"
        body = await request.read() if request.can_read_body else None
        # What a client asks a proxy for has the server before the path.
        target = f"{self._url}{request.rel_url.raw_path_qs}"
        async with self._session.request(request.method, target, data=body, headers=headers) as answer:
            if "watch" in request.query:
                return await self._pass_on(request, answer, is_short=fault is Fault.SHORT_BODY)
            content = await answer.read()
        if fault is Fault.LATE_ANSWER:
            await asyncio.sleep(_SILENCE_SECONDS)
        if fault in (Fault.LOST_ANSWER, Fault.LATE_ANSWER):
            return _abort(request)
        if fault is Fault.SHORT_BODY:
            return await _cut_short(request, answer, content)
        response = web.Response(status=answer.status, body=content, headers=_kept(answer))
        if fault is Fault.EXTRA_ANSWER and request.transport is not None:
            asyncio.get_running_loop().call_soon(request.transport.write, _EXTRA)
        return response

    async def _pass_on(
        self, request: web.Request, answer: aiohttp.ClientResponse, *, is_short: bool
    ) -> web.StreamResponse:
        response = web.StreamResponse(status=answer.status, headers=_kept(answer))
        await response.prepare(request)
        self._watches[id(request)] = request
        try:
            if self._is_expired:
                self._is_expired = False
                await response.write(_EXPIRED)
                return response
            async for chunk in answer.content.iter_any():
                await self._flows.wait()
                await response.write(chunk[: len(chunk) // 2] if is_short else chunk)
                if is_short:
                    return _abort(request)
        finally:
            del self._watches[id(request)]
        return response


async def _cut_short(request: web.Request, answer: aiohttp.ClientResponse, content: bytes) -> web.StreamResponse:
    response = web.StreamResponse(status=answer.status, headers=_kept(answer))
    response.content_length = len(content)
    await response.prepare(request)
    await response.write(content[: len(content) // 2])
    return _abort(request)


def _kept(answer: aiohttp.ClientResponse) -> dict[str, str]:
    return {name: answer.headers[name] for name in ("Content-Type", "Retry-After") if name in answer.headers}


def _abort(request: web.Request) -> web.Response:
    """Break the connection; the answer goes nowhere."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response(status=500)


def _refusal(code: int) -> web.Response:
    reasons = {
        401: "Unauthorized",
        409: "Conflict",
        429: "TooManyRequests",
        500: "InternalError",
        503: "ServiceUnavailable",
    }
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "reason": reasons[code],
        "message": "made up by the proxy",
        "code": code,
    }
    headers = {"Retry-After": "1"} if code == 429 else {}
    return web.Response(status=code, text=json.dumps(status), content_type="application/json", headers=headers)


@contextlib.asynccontextmanager
async def cutting_watches(proxy: FaultyProxy, *, every: float) -> AsyncIterator[list[int]]:
    """Cut all watches again and again while the block lasts; the list says how many each time."""
    cuts: list[int] = []

    async def cut() -> None:
        while True:
            await asyncio.sleep(every)
            cuts.append(proxy.cut_watches())

    task = asyncio.create_task(cut())
    try:
        yield cuts
    finally:
        task.cancel()
        await asyncio.wait([task])
