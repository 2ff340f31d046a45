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
from bayplan.explain.http.endpoints import PREFIX
from bayplan.server.answers import Refusal
from bayplan.server.dashboard import dashboard_routes

__all__ = ["forwarding_routes"]


def forwarding_routes(transport: Transport, server: str) -> list[BaseRoute]:
    """`server` is where the transport leads to, in words."""
    forwarder = _Forwarder(transport, server)
    return [
        Route(f"{PREFIX}/events", forwarder.events),
        Route(f"{PREFIX}/whatif", forwarder.ask, methods=["POST"]),
        Route(f"{PREFIX}/{{rest:path}}", forwarder.ask),
        *dashboard_routes(),
    ]


class _Forwarder:
    def __init__(self, transport: Transport, server: str) -> None:
        self._transport = transport
        self._server = server

    async def ask(self, request: Request) -> Response:
        body = await request.body() if request.method == "POST" else None
        path = request.scope.get("raw_path", request.url.path.encode()).decode("ascii").partition("?")[0]
        try:
            answer = await self._transport.request(
                request.method, path, query=dict(request.query_params) or None, body=body
            )
        except ClientError as error:
            reason = str(error).splitlines()[0].removeprefix(f"cannot reach {self._server}: ")
            raise Refusal(502, f"{self._server} does not answer: {reason}") from error
        return Response(answer.body, status_code=answer.status, media_type="application/json")

    async def events(self, request: Request) -> Response:
        headers = {"cache-control": "no-store"}
        return StreamingResponse(self._pieces(), media_type="text/event-stream", headers=headers)

    async def _pieces(self) -> AsyncIterator[bytes]:
        """Pass pieces on until either side closes the stream; the page then opens another."""
        try:
            async with self._transport.stream(f"{PREFIX}/events") as pieces:
                async for piece in pieces:
                    yield piece
        except ClientError:
            yield b"retry: 3000\n\n"
