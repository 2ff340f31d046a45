"""Questions of the local dashboard go to the scheduler elsewhere, and nothing else does."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from bayplan.client.errors import ConnectionFailed
from bayplan.client.transport import Response
from bayplan.explain.http.forwarding import forwarding_routes
from bayplan.server import ServerOptions, ServerParts, serve


class Elsewhere:
    """Remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, Any, Any]] = []

    async def request(self, method: str, path: str, **given: Any) -> Response:
        self.asked.append((method, path, given.get("query"), given.get("body")))
        if path.endswith("/overview"):
            raise ConnectionFailed("connection refused", may_have_been_processed=False)
        return Response(404 if "missing" in path else 200, {}, b'{"message": "hello"}')

    @asynccontextmanager
    async def stream(self, path: str, **_: Any) -> AsyncIterator[AsyncIterator[bytes]]:
        async def pieces() -> AsyncIterator[bytes]:
            yield b"event: overview\ndata: {}\n\n"

        yield pieces()

    async def close(self) -> None:
        """Nothing is open."""


async def test_answers_come_from_elsewhere_and_pages_from_here() -> None:
    there = Elsewhere()
    parts = ServerParts(routes=forwarding_routes(there, "https://elsewhere:10259"))
    async with (
        serve(ServerOptions(port=0, is_plain_http=True), parts) as serving,
        aiohttp.ClientSession(serving.url) as session,
    ):
        page = await session.get("/dashboard/")
        pod = await session.get("/bayplan/v1/explain/pod/default/web-0?full=true")
        missing = await session.get("/bayplan/v1/explain/pod/default/missing")
        whatif = await session.post("/bayplan/v1/whatif", json={"drain": ["a"]})
        silent = await session.get("/bayplan/v1/overview")
        events = await session.get("/bayplan/v1/events")
        refused = await session.post("/bayplan/v1/pending", json={})
        rebound = await session.get("/bayplan/v1/nodes", headers={"host": "evil.example"})

        assert "<title>" in await page.text()
        assert (pod.status, await pod.json()) == (200, {"message": "hello"})
        assert (missing.status, whatif.status, silent.status) == (404, 200, 502)
        assert "https://elsewhere:10259 does not answer: connection refused" in await silent.text()
        assert await events.text() == "event: overview\ndata: {}\n\n"
        assert refused.status == 405
        assert rebound.status in (400, 403, 421)

    assert there.asked[0] == ("GET", "/bayplan/v1/explain/pod/default/web-0", {"full": "true"}, None)
    assert there.asked[2][0] == "POST" and there.asked[2][3] == b'{"drain": ["a"]}'
    assert len(there.asked) == 4
