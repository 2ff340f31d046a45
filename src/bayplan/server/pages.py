"""/configz, /metrics, /metrics/resources, /metrics/slis, /flagz, /statusz and PUT /debug/flags/v.

Small pages over the callables of `ServerParts`. Long ones are sent in pieces, and the event loop runs between two
pieces, so that a scrape of a hundred thousand pods does not delay scheduling.
"""

from __future__ import annotations

import platform
from collections.abc import AsyncIterator, Iterable
from datetime import UTC, datetime, timedelta

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from bayplan.observe.exposition import PROMETHEUS_TEXT, render
from bayplan.observe.redaction import redacted
from bayplan.server.answers import Refusal
from bayplan.server.health import HealthCounts
from bayplan.server.options import ServerParts

__all__ = ["page_routes"]

_NOTICE = "For people, not for programs: the form of this page may change at any time."
_LONGEST_NUMBER = 2


def page_routes(parts: ServerParts, counts: HealthCounts) -> list[BaseRoute]:
    pages = _Pages(parts, counts)
    routes: list[BaseRoute] = [
        Route("/configz", pages.configz),
        Route("/metrics", pages.metrics),
        Route("/metrics/resources", pages.resource_metrics),
        Route("/metrics/slis", pages.slis),
        Route("/flagz", pages.flagz),
        Route("/statusz", pages.statusz),
    ]
    if parts.set_verbosity is not None:
        routes.append(Route("/debug/flags/v", pages.set_verbosity, methods=["PUT"]))
    return routes


class _Pages:
    def __init__(self, parts: ServerParts, counts: HealthCounts) -> None:
        self._parts = parts
        self._counts = counts
        self._started = parts.clock.now()

    async def configz(self, request: Request) -> Response:
        own = self._parts.own_config()
        return JSONResponse({"componentconfig": redacted(self._parts.config())} | ({"bayplan": own} if own else {}))

    async def metrics(self, request: Request) -> Response:
        body, content_type = self._parts.metrics(request.headers.get("accept", ""))
        return Response(body, media_type=content_type)

    async def resource_metrics(self, request: Request) -> Response:
        return StreamingResponse(self._in_turns(self._parts.resource_metrics()), media_type=PROMETHEUS_TEXT)

    async def slis(self, request: Request) -> Response:
        body, content_type = render(self._counts.registry, request.headers.get("accept", ""))
        return Response(body, media_type=content_type)

    async def flagz(self, request: Request) -> Response:
        flags = redacted({str(name): value for name, value in self._parts.flags().items()})
        lines = [f"{name}={flags[name]}" for name in sorted(flags)]
        return PlainTextResponse("\n".join([f"{self._parts.component} flagz", _NOTICE, "", *lines, ""]))

    async def statusz(self, request: Request) -> Response:
        up = timedelta(seconds=int(self._parts.clock.now() - self._started))
        lines = [
            f"Started: {datetime.fromtimestamp(self._started, UTC):%Y-%m-%d %H:%M:%S} UTC",
            f"Up: {up}",
            f"Python version: {platform.python_version()}",
            f"Version: {self._parts.version}",
            f"Paths: {' '.join(self._paths())}",
        ]
        return PlainTextResponse("\n".join([f"{self._parts.component} statusz", _NOTICE, "", *lines, ""]))

    def _paths(self) -> list[str]:
        paths = ["/configz", "/flagz", "/healthz", "/livez", "/metrics", "/metrics/resources", "/metrics/slis"]
        return [*(["/debug/pprof/"] if self._parts.is_profiling() else []), *paths, "/readyz", "/statusz"]

    async def set_verbosity(self, request: Request) -> Response:
        text = (await request.body())[:16].decode("latin-1").strip()
        if not text.isdecimal() or len(text) > _LONGEST_NUMBER or int(text) > 10 or self._parts.set_verbosity is None:
            raise Refusal(400, "the body is the verbosity, a number from 0 to 10")
        self._parts.set_verbosity(int(text))
        return PlainTextResponse(f"the verbosity is {int(text)} now\n")

    async def _in_turns(self, pieces: Iterable[bytes]) -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece
            await self._parts.turn()
