"""The transport over sockets: a lean pool for requests, a connection of its own for every stream.

Bindings are many and small, so each is one hand-rendered request on a kept connection. Behind a proxy everything goes
through aiohttp instead (`proxied`), which knows how to ask a proxy for a tunnel.

A 401 makes the credential refresh itself once, and the request is sent once more. Nothing else is retried here.
Redirects are not followed: an API server does not send any, and a credential must not travel elsewhere.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode, urlsplit

import bayplan
from bayplan.client.access import ClusterAccess
from bayplan.client.connection import BUFFER_BYTES, HttpConnection
from bayplan.client.credentials import Identity, is_header_safe
from bayplan.client.errors import ConnectionFailed, RequestTimeout, api_error
from bayplan.client.pool import ConnectionPool, PoolSettings
from bayplan.client.tls import TlsContexts
from bayplan.client.tls_channel import TlsChannel
from bayplan.client.transport import JSON, Response

if TYPE_CHECKING:
    from bayplan.client.proxied import ProxiedHttp

CONNECT_TIMEOUT_SECONDS = 10.0

_MOST_OF_A_REFUSAL_BYTES = 1 << 20
_SEALED_BYTES = 64 << 10
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
    ) -> None:
        self._access = access
        self._url = urlsplit(access.server)
        self._base_path = quote(self._url.path.rstrip("/"), safe="/%:@!$&'()*+,;=~")
        self._is_tls = self._url.scheme == "https"
        self._tls = TlsContexts(access.tls)
        self._user_agent = user_agent
        self._default_timeout = default_timeout
        self._pool = ConnectionPool(self._connect, settings=pool or PoolSettings(), draw=draw)
        self._rendered_for: Identity | None = None
        self._rendered = ""
        self._streaming: set[HttpConnection] = set()
        self._sealed = memoryview(bytearray(_SEALED_BYTES))
        self._opened = memoryview(bytearray(BUFFER_BYTES))
        self._proxied: ProxiedHttp | None = None
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
    ) -> Response:
        target = self._target(path, query)
        extra = _rendered_headers(headers, body=body, content_type=content_type)
        send = self._send_directly if self._access.proxy_url is None else self._send_by_proxy
        seconds = self._default_timeout if timeout is None else timeout
        identity = self._access.credentials.cached() or await self._access.credentials.obtain()
        response = await send(method, target, extra, body, identity, seconds)
        if response.status == 401 and self._access.credentials.reject(identity):
            fresh = await self._access.credentials.obtain()
            if fresh != identity:
                response = await send(method, target, extra, body, fresh, seconds)
        return response

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
        if self._proxied is not None:
            await self._proxied.close()
        # Aborted sockets are really closed in the event loop's next turn, which may be its last.
        await asyncio.sleep(0)

    # requests

    async def _send_directly(
        self, method: str, target: str, extra: str, body: bytes | None, identity: Identity, timeout: float
    ) -> Response:
        head = f"{method} {target} HTTP/1.1\r\n{self._head(identity)}{extra}\r\n".encode("latin-1")
        connection = self._pool.take_resting() or await self._wait_for_connection(timeout)
        answer = connection.exchange(head + body if body else head, timeout)
        try:
            return await answer
        except asyncio.CancelledError:
            connection.close()
            raise
        finally:
            self._pool.release(connection)

    async def _wait_for_connection(self, timeout: float) -> HttpConnection:
        try:
            async with asyncio.timeout(timeout):
                return await self._pool.acquire()
        except TimeoutError:
            what = f"no connection to {self._access.server} was free within {timeout:g} s"
            raise RequestTimeout(what, may_have_been_processed=False) from None

    async def _send_by_proxy(
        self, method: str, target: str, extra: str, body: bytes | None, identity: Identity, timeout: float
    ) -> Response:
        headers = [*self._headers(identity), *_parsed_headers(extra)]
        context = self._context(identity)
        return await self._by_proxy().request(method, self._whole_url(target), headers, context, body, timeout)

    def _target(self, path: str, query: Mapping[str, str] | None) -> str:
        if not path.startswith("/") or not is_header_safe(path) or " " in path or "?" in path:
            raise ValueError(f"`{path}` is not an encoded path")
        return f"{self._base_path}{path}?{urlencode(query)}" if query else f"{self._base_path}{path}"

    def _head(self, identity: Identity) -> str:
        """The header lines that are the same for every request of one identity."""
        if identity is not self._rendered_for:
            if self._rendered_for is not None and self._rendered_for.certificate is not identity.certificate:
                # The certificate belongs to the connection, not to the request.
                self._pool.retire_all()
            lines = [("Host", self._url.netloc.rpartition("@")[2]), *self._headers(identity)]
            self._rendered = "".join(f"{name}: {value}\r\n" for name, value in lines)
            self._rendered_for = identity
        return self._rendered

    def _headers(self, identity: Identity) -> list[tuple[str, str]]:
        headers = [("User-Agent", self._user_agent), ("Accept-Encoding", "identity"), *self._access.headers]
        if identity.authorization is not None:
            headers.append(("Authorization", identity.authorization))
        return headers

    # connections

    def _context(self, identity: Identity | None) -> ssl.SSLContext | None:
        return self._tls.context(identity.certificate if identity else None) if self._is_tls else None

    async def _connect(self, on_lost: Callable[[HttpConnection], None]) -> HttpConnection:
        return await self._open_connection(on_lost, self._context(self._rendered_for))

    async def _open_connection(
        self, on_lost: Callable[[HttpConnection], None], context: ssl.SSLContext | None
    ) -> HttpConnection:
        connection = HttpConnection(on_lost=on_lost, buffer=self._opened)
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_SECONDS):
                if context is None:
                    await self._open_socket(connection)
                else:
                    await self._open_channel(connection, context)
                return connection
        except TimeoutError:
            what = f"cannot connect to {self._access.server} within {CONNECT_TIMEOUT_SECONDS:g} s"
            raise ConnectionFailed(what, may_have_been_processed=False) from None
        except OSError as error:
            raise self._failed(error, may_have_been_processed=False) from error

    async def _open_channel(self, connection: HttpConnection, context: ssl.SSLContext) -> None:
        name = self._access.tls.server_name or self._url.hostname
        channel = TlsChannel(connection, context=context, server_hostname=name, buffer=self._sealed)
        await self._open_socket(channel)
        try:
            await channel.secured
        except BaseException:
            channel.abort()
            raise

    async def _open_socket(self, protocol: asyncio.BufferedProtocol) -> None:
        host, port = self._url.hostname or "", self._url.port or (443 if self._is_tls else 80)
        transport, _ = await asyncio.get_running_loop().create_connection(lambda: protocol, host, port)
        _keep_alive(transport.get_extra_info("socket"))

    def _failed(self, error: Exception, *, may_have_been_processed: bool = True) -> ConnectionFailed:
        return ConnectionFailed(
            f"cannot reach {self._access.server}: {_explained(error)}", may_have_been_processed=may_have_been_processed
        )

    # streams

    def _streamed(self, target: str, identity: Identity) -> contextlib.AbstractAsyncContextManager[_Answer]:
        if self._is_closed:
            raise ConnectionFailed("the client is closed", may_have_been_processed=False)
        if self._access.proxy_url is None:
            return self._stream_directly(target, identity)
        headers = [*self._headers(identity), ("Accept", JSON)]
        return self._by_proxy().stream(self._whole_url(target), headers, self._context(identity))

    @contextlib.asynccontextmanager
    async def _stream_directly(self, target: str, identity: Identity) -> AsyncIterator[_Answer]:
        head = f"GET {target} HTTP/1.1\r\n{self._head(identity)}Accept: {JSON}\r\n\r\n".encode("latin-1")
        connection = await self._open_connection(self._streaming.discard, self._context(identity))
        self._streaming.add(connection)
        try:
            if self._is_closed:
                raise ConnectionFailed("the client is closed", may_have_been_processed=False)
            body = connection.stream(head)
            status, headers = await body.begun
            yield status, headers, body
        finally:
            connection.close()

    # proxies

    def _by_proxy(self) -> ProxiedHttp:
        if self._is_closed:
            raise ConnectionFailed("the client is closed", may_have_been_processed=False)
        if self._proxied is None:
            from bayplan.client.proxied import ProxiedHttp

            self._proxied = ProxiedHttp(
                self._access.proxy_url or "",
                server_hostname=self._access.tls.server_name,
                connect_timeout=CONNECT_TIMEOUT_SECONDS,
                failed=self._failed,
            )
        return self._proxied

    def _whole_url(self, target: str) -> str:
        return f"{self._url.scheme}://{self._url.netloc.rpartition('@')[2]}{target}"


def _keep_alive(sock: socket.socket | None) -> None:
    """Let the system find out when the other side is gone: a watch that is silent sends nothing by itself."""
    if sock is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)


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


def _parsed_headers(rendered: str) -> list[tuple[str, str]]:
    lines = [line.partition(": ") for line in rendered.split("\r\n") if line]
    return [(name, value) for name, _, value in lines if name != "Content-Length"]


async def _beginning_of(body: AsyncIterator[bytes]) -> bytes:
    """What a refusal says, as far as it can be read."""
    read = b""
    with contextlib.suppress(ConnectionFailed):
        async for piece in body:
            read += piece
            if len(read) >= _MOST_OF_A_REFUSAL_BYTES:
                break
    return read


def _explained(error: Exception) -> str:
    """One line that says what to do where the error is one people meet."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return (
            f"its certificate is not accepted: {error.verify_message}; check `certificate-authority` and "
            "`tls-server-name` in the kubeconfig"
        )
    if isinstance(error, ssl.SSLError):
        return (
            f"TLS failed: {error.reason or 'unknown reason'}; check the port, and the client certificate if one is set"
        )
    if isinstance(error, ConnectionRefusedError):
        return "connection refused; is the API server running there?"
    return str(getattr(error, "strerror", None) or error) or type(error).__name__
