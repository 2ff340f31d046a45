"""The dashboard on this machine, its questions passed on to a scheduler elsewhere with the credentials of its user.

Browsers do not carry Kubernetes credentials; this does. Pages and scripts are those of this package, so nothing that
the other side sends is run. Only /bayplan/v1 is passed on, and a what-if is the only thing that is posted.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from bayplan.client.errors import ClientError
from bayplan.client.transport import Transport
from bayplan.explain.endpoints import PREFIX
from bayplan.server.answers import Refusal
from bayplan.server.dashboard import dashboard_routes

__all__ = ["forwarding_routes"]


def forwarding_routes(transport: Transport) -> list[BaseRoute]:
    forwarder = _Forwarder(transport)
    return [
        Route(f"{PREFIX}/events", forwarder.events),
        Route(f"{PREFIX}/whatif", forwarder.ask, methods=["POST"]),
        Route(f"{PREFIX}/{{rest:path}}", forwarder.ask),
        *dashboard_routes(),
    ]


class _Forwarder:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def ask(self, request: Request) -> Response:
        body = await request.body() if request.method == "POST" else None
        path = request.scope.get("raw_path", request.url.path.encode()).decode("ascii").partition("?")[0]
        try:
            answer = await self._transport.request(
                request.method, path, query=dict(request.query_params) or None, body=body
            )
        except ClientError as error:
            raise Refusal(502, f"the scheduler does not answer: {str(error).splitlines()[0]}") from error
        return Response(answer.body, status_code=answer.status, media_type="application/json")

    async def events(self, request: Request) -> Response:
        headers = {"cache-control": "no-store"}
        return StreamingResponse(self._pieces(), media_type="text/event-stream", headers=headers)

    async def _pieces(self) -> AsyncIterator[bytes]:
        """Until either side ends it; the page asks again."""
        try:
            async with self._transport.stream(f"{PREFIX}/events") as pieces:
                async for piece in pieces:
                    yield piece
        except ClientError:
            yield b"retry: 3000\n\n"
