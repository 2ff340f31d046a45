"""A small extender on loopback that answers what a test tells it to."""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncIterator, Callable
from typing import Any

from aiohttp import web

Reply = Callable[[Any], Any]
"""The question to the answer; a `web.Response` is sent as it is."""


class ExtenderServer:
    def __init__(self, **replies: Reply) -> None:
        self.replies = replies
        self.asked: list[tuple[str, Any]] = []
        self.hold: asyncio.Event | None = None
        """While it is not set, answers wait."""
        self.port = 0
        self.scheme = "http"

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}/api"

    def questions(self, verb: str) -> list[Any]:
        return [question for asked, question in self.asked if asked == verb]

    async def handle(self, request: web.Request) -> web.Response:
        question = await request.json()
        verb = request.match_info["verb"]
        self.asked.append((verb, question))
        if self.hold is not None:
            await self.hold.wait()
        if verb not in self.replies:
            return web.Response(status=404)
        answer = self.replies[verb](question)
        if isinstance(answer, web.Response):
            return answer
        return web.Response(text=json.dumps(answer), content_type="application/json")


@contextlib.asynccontextmanager
async def serving(server: ExtenderServer, tls: ssl.SSLContext | None = None) -> AsyncIterator[ExtenderServer]:
    app = web.Application(client_max_size=1 << 26)
    app.router.add_post("/api/{verb}", server.handle)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
    server.port = runner.addresses[0][1]
    server.scheme = "https" if tls else "http"
    try:
        yield server
    finally:
        await runner.cleanup()
