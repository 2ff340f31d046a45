"""The server: one listener on the caller's event loop, for as long as an `async with` lasts.

    async with serve(ServerOptions(port=0), ServerParts(metrics=render_metrics, review=ask_api_server)) as server:
        print(server.url)

The layers of a request, from outside in: limits of handshakes (`listener`) and of the connection (`protocol`), checks
and headers (`guard`), access control (`access`), the pages. Leaving the context stops listening, lets requests under
way finish for half a second, and drops the rest. No signal handlers, no threads.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import socket
from collections.abc import AsyncIterator

from starlette.routing import Router
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.config import Config
from uvicorn.server import ServerState

from bayplan.server.access import DelegatedAccess, LoopbackAccess
from bayplan.server.answers import Refusal
from bayplan.server.authentication import Authenticator
from bayplan.server.authorization import Authorizer
from bayplan.server.certificates import ServingTls
from bayplan.server.guard import Guard
from bayplan.server.health import HealthCounts, health_routes
from bayplan.server.listener import TlsListener
from bayplan.server.options import Limits, ServerOptions, ServerParts, ServingError
from bayplan.server.pages import page_routes
from bayplan.server.profiling import profiling_routes
from bayplan.server.protocol import GuardedProtocol
from bayplan.server.reviews import AccessReviews, TokenReviews

__all__ = ["Serving", "build_app", "serve"]

_log = logging.getLogger(__name__)
_BACKLOG = 128
_REACHABLE = {"0.0.0.0": "127.0.0.1", "::": "::1"}


class Serving:
    """A running server. One that is disabled has an empty `url` and port 0."""

    def __init__(self, *, url: str = "", port: int = 0, tls: ServingTls | None = None) -> None:
        self.url = url
        self.port = port
        self._tls = tls

    @property
    def certificate(self) -> bytes:
        """The certificate that clients can trust, as PEM; empty without TLS."""
        return self._tls.certificate if self._tls is not None else b""

    def reload_certificates(self) -> bool:
        """Read changed files now instead of at the next connection; True when new ones are in use."""
        return self._tls.reload() if self._tls is not None else False


@contextlib.asynccontextmanager
async def serve(options: ServerOptions, parts: ServerParts) -> AsyncIterator[Serving]:
    """Raises `ServingError` when it cannot listen there."""
    if not options.is_enabled:
        yield Serving()
        return
    tls = None if options.is_plain_http else ServingTls(options, parts.clock, hosts=_own_names(options))
    guard = Guard(build_app(options, parts), options.limits, parts.clock, turn=parts.turn)
    state = ServerState()
    listener = await _listen(options, guard, state, tls)
    try:
        port = listener.sockets[0].getsockname()[1]
        url = f"{'https' if tls else 'http'}://{_in_url(options.bind_address)}:{port}"
        _log.info("serving on %s", url)
        yield Serving(url=url, port=port, tls=tls)
    finally:
        await _stop(listener, guard, state, options.limits)


def build_app(options: ServerOptions, parts: ServerParts) -> ASGIApp:
    """The ASGI application with access control, without a listener."""
    counts = HealthCounts()
    built_in = [
        *health_routes(parts.health, counts),
        *page_routes(parts, counts),
        *profiling_routes(parts.is_profiling),
    ]
    routes = [*built_in, *parts.routes]
    pages = Router(routes=routes, redirect_slashes=False, default=_not_found)
    reviews = parts.review
    timeout = options.authentication.review_timeout_seconds
    access = AccessReviews(reviews, options.authorization, parts.clock, timeout_seconds=timeout) if reviews else None
    authorizer = Authorizer(options.authorization, access)
    if options.is_plain_http:
        return LoopbackAccess(pages, authorizer, token=options.loopback_token)
    tokens = TokenReviews(reviews, options.authentication, parts.clock) if reviews else None
    return DelegatedAccess(pages, Authenticator(options.authentication, tokens, parts.clock), authorizer)


async def _not_found(scope: Scope, receive: Receive, send: Send) -> None:
    raise Refusal(404, f'no page "{scope["path"]}"')


async def _listen(
    options: ServerOptions, app: Guard, state: ServerState, tls: ServingTls | None
) -> asyncio.Server | TlsListener:
    limits = options.limits
    config = _uvicorn_config(app, limits)
    # The name stands for two addresses, which would get two ports.
    host = "127.0.0.1" if options.bind_address == "localhost" else options.bind_address

    def connected() -> GuardedProtocol:
        return GuardedProtocol(config, state, limits)

    try:
        if tls is None:
            return await asyncio.get_running_loop().create_server(connected, host, options.port, backlog=_BACKLOG)
        listener = TlsListener(connected, tls.context, limits)
        await listener.listen(host, options.port)
        return listener
    except OSError as error:
        where = f"{options.bind_address}:{options.port}"
        raise ServingError(f"cannot listen on {where}: {error.strerror or error}\nhint: {_advice(error)}") from error


def _advice(error: OSError) -> str:
    if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
        return "the address must be one of this machine's; 127.0.0.1, 0.0.0.0, ::1 and :: are usual"
    if error.errno == errno.EACCES:
        return "ports below 1024 are for privileged processes; choose another"
    return "another process may use the port; choose another"


def _uvicorn_config(app: Guard, limits: Limits) -> Config:
    config = Config(
        app,
        interface="asgi3",
        http=GuardedProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        workers=1,
        timeout_keep_alive=limits.keep_alive_seconds,
        h11_max_incomplete_event_size=limits.header_bytes,
    )
    config.load()
    return config


async def _stop(listener: asyncio.Server | TlsListener, guard: Guard, state: ServerState, limits: Limits) -> None:
    listener.close()
    for connection in list(state.connections):
        connection.shutdown()
    if state.tasks:
        await asyncio.wait(set(state.tasks), timeout=limits.shutdown_seconds)
    guard.is_stopping = True
    for connection in list(state.connections):
        if connection.transport is not None:
            connection.transport.abort()
    # Let the connections process their loss, so that their requests end without an error.
    await asyncio.sleep(0)
    left = set(state.tasks)
    for task in left:
        task.cancel()
    if left:
        await asyncio.wait(left, timeout=limits.shutdown_seconds)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(limits.shutdown_seconds):
            await listener.wait_closed()


def _own_names(options: ServerOptions) -> list[str]:
    names = [socket.gethostname()]
    if options.bind_address not in (*_REACHABLE, "localhost"):
        names.append(options.bind_address)
    return names


def _in_url(address: str) -> str:
    address = _REACHABLE.get(address, address)
    return f"[{address}]" if ":" in address else address
