"""The transport over sockets: a lean pool for requests, aiohttp for streams.

Bindings are many and small, so each is one hand-rendered request on a kept connection. Lists and watches are few and
long, and aiohttp reads those at nearly the cost of hand-written code. Behind a proxy everything goes through aiohttp,
which knows how to ask a proxy for a tunnel.

A 401 makes the credential refresh itself once, and the request is sent once more. Nothing else is retried here.
Redirects are not followed: an API server does not send any, and a credential must not travel elsewhere.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from typing import TypedDict
from urllib.parse import quote, urlencode, urlsplit

import aiohttp
from yarl import URL

import bayplan
from bayplan.client.access import ClusterAccess
from bayplan.client.connection import HttpConnection
from bayplan.client.credentials import Identity, is_header_safe
from bayplan.client.errors import ConnectionFailed, RequestTimeout, api_error
from bayplan.client.pool import ConnectionPool, PoolSettings
from bayplan.client.tls import TlsContexts
from bayplan.client.transport import JSON, Response

CONNECT_TIMEOUT_SECONDS = 10.0


class _Options(TypedDict):
    headers: list[tuple[str, str]]
    allow_redirects: bool
    proxy: str | None
    ssl: ssl.SSLContext | bool
    server_hostname: str | None


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
        self._session: aiohttp.ClientSession | None = None
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
        response = await self._open_stream(target, identity)
        if response.status == 401 and self._access.credentials.reject(identity):
            fresh = await self._access.credentials.obtain()
            if fresh != identity:
                _give_up(response)
                response = await self._open_stream(target, fresh)
        try:
            if response.status >= 300:
                raise await _stream_refused(response)
            yield _chunks(response)
        finally:
            _give_up(response)

    async def close(self) -> None:
        self._is_closed = True
        self._pool.close()
        session, self._session = self._session, None
        if session is not None:
            await session.close()
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
        options = self._options(identity, [*self._headers(identity), *_parsed_headers(extra)])
        try:
            async with (
                asyncio.timeout(timeout),
                self._aiohttp().request(method, self._aiohttp_url(target), data=body, **options) as answer,
            ):
                return Response(answer.status, _lower_case(answer), await answer.read())
        except TimeoutError:
            raise RequestTimeout(f"no answer within {timeout:g} s", may_have_been_processed=True) from None
        except (aiohttp.ClientError, OSError) as error:
            raise self._failed(error) from error

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

    async def _connect(self, on_lost: Callable[[HttpConnection], None]) -> HttpConnection:
        loop = asyncio.get_running_loop()
        certificate = self._rendered_for.certificate if self._rendered_for else None
        context = self._tls.context(certificate) if self._is_tls else None
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_SECONDS):
                _, connection = await loop.create_connection(
                    lambda: HttpConnection(on_lost=on_lost),
                    self._url.hostname or "",
                    self._url.port or (443 if self._is_tls else 80),
                    ssl=context,
                    server_hostname=(self._access.tls.server_name or self._url.hostname) if context else None,
                )
                return connection
        except TimeoutError:
            what = f"cannot connect to {self._access.server} within {CONNECT_TIMEOUT_SECONDS:g} s"
            raise ConnectionFailed(what, may_have_been_processed=False) from None
        except OSError as error:
            raise self._failed(error, may_have_been_processed=False) from error

    def _failed(self, error: Exception, *, may_have_been_processed: bool = True) -> ConnectionFailed:
        if isinstance(error, aiohttp.ClientConnectorError):
            may_have_been_processed = False
        return ConnectionFailed(
            f"cannot reach {self._access.server}: {_explained(error)}", may_have_been_processed=may_have_been_processed
        )

    # aiohttp

    async def _open_stream(self, target: str, identity: Identity) -> aiohttp.ClientResponse:
        headers = [*self._headers(identity), ("Accept", JSON)]
        try:
            return await self._aiohttp().get(self._aiohttp_url(target), **self._options(identity, headers))
        except TimeoutError:
            what = f"cannot connect to {self._access.server} within {CONNECT_TIMEOUT_SECONDS:g} s"
            raise ConnectionFailed(what, may_have_been_processed=False) from None
        except (aiohttp.ClientError, OSError) as error:
            raise self._failed(error) from error

    def _aiohttp(self) -> aiohttp.ClientSession:
        if self._is_closed:
            raise ConnectionFailed("the client is closed", may_have_been_processed=False)
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_SECONDS),
                auto_decompress=False,
                read_bufsize=1 << 18,
            )
        return self._session

    def _aiohttp_url(self, target: str) -> URL:
        return URL(f"{self._url.scheme}://{self._url.netloc.rpartition('@')[2]}{target}", encoded=True)

    def _options(self, identity: Identity, headers: list[tuple[str, str]]) -> _Options:
        return {
            "headers": headers,
            "allow_redirects": False,
            "proxy": self._access.proxy_url,
            "ssl": self._tls.context(identity.certificate) if self._is_tls else True,
            "server_hostname": self._access.tls.server_name if self._is_tls else None,
        }


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


async def _chunks(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    try:
        async for chunk in response.content.iter_any():
            yield chunk
    except (aiohttp.ClientError, OSError) as error:
        raise ConnectionFailed(f"the stream broke: {_explained(error)}", may_have_been_processed=True) from error


def _give_up(response: aiohttp.ClientResponse) -> None:
    """Close the socket at once, without the farewell of TLS, which may wait for the other side for half a minute."""
    connection = response.connection
    if connection is not None and connection.transport is not None:
        connection.transport.abort()
    response.close()


async def _stream_refused(response: aiohttp.ClientResponse) -> Exception:
    try:
        body = await response.content.read(1 << 20)
    except (aiohttp.ClientError, OSError):
        body = b""
    return api_error(response.status, body, headers=_lower_case(response))


def _lower_case(response: aiohttp.ClientResponse) -> dict[str, str]:
    return {name.lower(): value for name, value in response.headers.items()}


def _explained(error: Exception) -> str:
    """One line that says what to do where the error is one people meet."""
    cause = getattr(error, "certificate_error", None) or getattr(error, "os_error", None) or error
    if isinstance(cause, ssl.SSLCertVerificationError):
        return (
            f"its certificate is not accepted: {cause.verify_message}; check `certificate-authority` and "
            "`tls-server-name` in the kubeconfig"
        )
    if isinstance(cause, ssl.SSLError):
        return (
            f"TLS failed: {cause.reason or 'unknown reason'}; check the port, and the client certificate if one is set"
        )
    if isinstance(cause, ConnectionRefusedError):
        return "connection refused; is the API server running there?"
    return str(getattr(cause, "strerror", None) or cause) or type(cause).__name__
