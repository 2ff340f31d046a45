"""The transport over sockets: a pool of connections for requests, and one connection for every stream.

Bindings are many and small, so each is one hand-rendered request on a kept connection. `connector` opens connections,
also through proxies.

After a 401 the credential is refreshed once and the request sent once more. Nothing else is retried here. Redirects are
not followed: an API server sends none, and a credential must not be sent elsewhere.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from urllib.parse import quote, urlencode, urlsplit

import bayplan
from bayplan.client.access import ClusterAccess
from bayplan.client.connection import MAX_RESPONSE_BYTES, HttpConnection
from bayplan.client.connector import Connector
from bayplan.client.credentials import Identity, is_header_safe
from bayplan.client.errors import ConnectionFailed, NotSent, RequestTimeout, api_error
from bayplan.client.pool import ConnectionPool, PoolSettings
from bayplan.client.transport import JSON, Response, always

_MOST_OF_A_REFUSAL_BYTES = 1 << 20
_Answer = tuple[int, Mapping[str, str], AsyncIterator[bytes]]


class HttpTransport:
    """A `Transport` to the server of a `ClusterAccess`."""

    def __init__(
        self,
        access: ClusterAccess,
        *,
        draw: Callable[[], float],
        user_agent: str = f"bayplan/{bayplan.__version__}",
        default_timeout: float = 30.0,
        pool: PoolSettings | None = None,
        max_response_bytes: int = MAX_RESPONSE_BYTES,
    ) -> None:
        self._access = access
        self._connector = Connector(
            access.server, tls=access.tls, proxy_url=access.proxy_url, max_response_bytes=max_response_bytes
        )
        path = quote(urlsplit(access.server).path.rstrip("/"), safe="/%:@!$&'()*+,;=~")
        self._base = f"{self._connector.request_prefix}{path}"
        self._user_agent = user_agent
        self._default_timeout = default_timeout
        self._pool = ConnectionPool(self._connect, settings=pool or PoolSettings(), draw=draw)
        self._rendered_for: Identity | None = None
        self._rendered = ""
        self._streaming: set[HttpConnection] = set()
        self._is_closed = False

    def __repr__(self) -> str:
        return f"HttpTransport({self._access.server!r})"

    @property
    def open_connections(self) -> int:
        """How many connections the pool for requests holds."""
        return self._pool.open_connections

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = JSON,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
        may_send: Callable[[], bool] = always,
    ) -> Response:
        target = self._target(path, query)
        extra = _rendered_headers(headers, body=body, content_type=content_type)
        seconds = self._default_timeout if timeout is None else timeout
        identity = self._access.credentials.cached() or await self._access.credentials.obtain()
        is_refreshed = False
        while True:
            head = f"{method} {target} HTTP/1.1\r\n{self._head(identity)}{extra}\r\n".encode("latin-1")
            connection = self._pool.take_resting() or await self._wait_for_connection(seconds)
            try:
                if not may_send():
                    raise NotSent(f"{method} {target} was not sent: this replica no longer leads")
                response = await connection.exchange(head + body if body else head, seconds)
            except asyncio.CancelledError:
                connection.close()
                raise
            finally:
                self._pool.release(connection)
            if response.status != 401 or is_refreshed or not self._access.credentials.reject(identity):
                return response
            refused, identity = identity, await self._access.credentials.obtain()
            if identity == refused:
                return response
            is_refreshed = True

    @contextlib.asynccontextmanager
    async def stream(self, path: str, *, query: Mapping[str, str] | None = None) -> AsyncIterator[AsyncIterator[bytes]]:
        target = self._target(path, query)
        identity = self._access.credentials.cached() or await self._access.credentials.obtain()
        async with contextlib.AsyncExitStack() as opened:
            status, headers, body = await opened.enter_async_context(self._streamed(target, identity))
            if status == 401 and self._access.credentials.reject(identity):
                fresh = await self._access.credentials.obtain()
                if fresh != identity:
                    await opened.aclose()
                    status, headers, body = await opened.enter_async_context(self._streamed(target, fresh))
            if status >= 300:
                raise api_error(status, await _beginning_of(body), headers=headers)
            yield body

    async def close(self) -> None:
        self._is_closed = True
        self._pool.close()
        for connection in list(self._streaming):
            connection.close()
        # Aborted sockets are closed in the next iteration of the event loop, which may be its last.
        await asyncio.sleep(0)

    def _check_open(self) -> None:
        if self._is_closed:
            raise ConnectionFailed("the client is closed", may_have_been_processed=False)

    # requests

    async def _wait_for_connection(self, timeout: float) -> HttpConnection:
        try:
            async with asyncio.timeout(timeout):
                return await self._pool.acquire()
        except TimeoutError:
            what = f"no connection to {self._access.server} was free within {timeout:g} s"
            raise RequestTimeout(what, may_have_been_processed=False) from None

    def _target(self, path: str, query: Mapping[str, str] | None) -> str:
        if not path.startswith("/") or not is_header_safe(path) or " " in path or "?" in path:
            raise ValueError(f"`{path}` is not an encoded path")
        return f"{self._base}{path}?{urlencode(query)}" if query else f"{self._base}{path}"

    def _head(self, identity: Identity) -> str:
        """The header lines that are the same for every request of one identity."""
        if identity is not self._rendered_for:
            if self._rendered_for is not None and self._rendered_for.certificate is not identity.certificate:
                # The certificate belongs to the connection, not to the request.
                self._pool.retire_all()
            lines = [*self._connector.request_headers, *self._headers(identity)]
            self._rendered = "".join(f"{name}: {value}\r\n" for name, value in lines)
            self._rendered_for = identity
        return self._rendered

    def _headers(self, identity: Identity) -> list[tuple[str, str]]:
        headers = [("User-Agent", self._user_agent), ("Accept-Encoding", "identity"), *self._access.headers]
        if identity.authorization is not None:
            headers.append(("Authorization", identity.authorization))
        return headers

    async def _connect(self, on_lost: Callable[[HttpConnection], None]) -> HttpConnection:
        return await self._connector.open(on_lost, self._rendered_for.certificate if self._rendered_for else None)

    # streams

    @contextlib.asynccontextmanager
    async def _streamed(self, target: str, identity: Identity) -> AsyncIterator[_Answer]:
        self._check_open()
        head = f"GET {target} HTTP/1.1\r\n{self._head(identity)}Accept: {JSON}\r\n\r\n".encode("latin-1")
        connection = await self._connector.open(self._streaming.discard, identity.certificate)
        self._streaming.add(connection)
        try:
            self._check_open()
            body = connection.stream(head)
            status, headers = await body.begun
            yield status, headers, body
        finally:
            connection.close()


def _rendered_headers(headers: Mapping[str, str] | None, *, body: bytes | None, content_type: str) -> str:
    if not headers:
        accept, more = f"Accept: {JSON}\r\n", ""
    else:
        accept = "" if any(name.lower() == "accept" for name in headers) else f"Accept: {JSON}\r\n"
        for name, value in headers.items():
            if not is_header_safe(name) or not is_header_safe(value) or ":" in name:
                raise ValueError(f"the header `{name}` holds characters that a header cannot")
        more = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    if body is None:
        return accept + more
    return f"{accept}{more}Content-Type: {content_type}\r\nContent-Length: {len(body)}\r\n"


async def _beginning_of(body: AsyncIterator[bytes]) -> bytes:
    """The body of a refusal, up to a limit, as far as it can be read."""
    read = b""
    with contextlib.suppress(ConnectionFailed):
        async for piece in body:
            read += piece
            if len(read) >= _MOST_OF_A_REFUSAL_BYTES:
                break
    return read
