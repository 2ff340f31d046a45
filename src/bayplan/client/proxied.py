"""The way to an API server through a proxy: aiohttp, which knows how to ask one for a tunnel.

Only `HttpTransport` uses it, and only where a proxy is configured: importing aiohttp takes longer than reading a small
cluster.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Callable
from typing import TypedDict

import aiohttp
from yarl import URL

from bayplan.client.errors import ConnectionFailed, RequestTimeout
from bayplan.client.transport import Response

__all__ = ["Headers", "ProxiedHttp"]

Headers = list[tuple[str, str]]


class _Options(TypedDict):
    headers: Headers
    allow_redirects: bool
    proxy: str
    ssl: ssl.SSLContext | bool
    server_hostname: str | None


class ProxiedHttp:
    """Requests and streams by way of `proxy_url`. `failed` makes our error of one of aiohttp's."""

    def __init__(
        self,
        proxy_url: str,
        *,
        server_hostname: str | None,
        connect_timeout: float,
        failed: Callable[..., ConnectionFailed],
    ) -> None:
        self._proxy_url = proxy_url
        self._server_hostname = server_hostname
        self._connect_timeout = connect_timeout
        self._failed = failed
        self._session: aiohttp.ClientSession | None = None

    async def request(
        self,
        method: str,
        url: str,
        headers: Headers,
        context: ssl.SSLContext | None,
        body: bytes | None,
        timeout: float,
    ) -> Response:
        options = self._options(headers, context)
        try:
            async with (
                asyncio.timeout(timeout),
                self._sessions().request(method, URL(url, encoded=True), data=body, **options) as answer,
            ):
                return Response(answer.status, _lower_case(answer), await answer.read())
        except TimeoutError:
            raise RequestTimeout(f"no answer within {timeout:g} s", may_have_been_processed=True) from None
        except (aiohttp.ClientError, OSError) as error:
            raise self._explained(error) from error

    @contextlib.asynccontextmanager
    async def stream(
        self, url: str, headers: Headers, context: ssl.SSLContext | None
    ) -> AsyncIterator[tuple[int, dict[str, str], AsyncIterator[bytes]]]:
        try:
            response = await self._sessions().get(URL(url, encoded=True), **self._options(headers, context))
        except TimeoutError:
            what = f"no way through the proxy within {self._connect_timeout:g} s"
            raise ConnectionFailed(what, may_have_been_processed=False) from None
        except (aiohttp.ClientError, OSError) as error:
            raise self._explained(error) from error
        try:
            yield response.status, _lower_case(response), self._chunks(response)
        finally:
            _give_up(response)

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _chunks(self, response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
        try:
            async for chunk in response.content.iter_any():
                yield chunk
        except (aiohttp.ClientError, OSError) as error:
            raise self._explained(error) from error

    def _explained(self, error: Exception) -> ConnectionFailed:
        was_sent = not isinstance(error, aiohttp.ClientConnectorError)
        cause = getattr(error, "certificate_error", None) or getattr(error, "os_error", None) or error
        return self._failed(cause, may_have_been_processed=was_sent)

    def _sessions(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=self._connect_timeout),
                auto_decompress=False,
                read_bufsize=1 << 18,
            )
        return self._session

    def _options(self, headers: Headers, context: ssl.SSLContext | None) -> _Options:
        return {
            "headers": headers,
            "allow_redirects": False,
            "proxy": self._proxy_url,
            "ssl": True if context is None else context,
            "server_hostname": None if context is None else self._server_hostname,
        }


def _give_up(response: aiohttp.ClientResponse) -> None:
    """Close the socket at once, without the farewell of TLS, which may wait for the other side for half a minute."""
    connection = response.connection
    if connection is not None and connection.transport is not None:
        connection.transport.abort()
    response.close()


def _lower_case(response: aiohttp.ClientResponse) -> dict[str, str]:
    return {name.lower(): value for name, value in response.headers.items()}
