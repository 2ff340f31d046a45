"""Open connections to one server: the socket, TLS, and a proxy in between.

    http  server                    socket
    https server                    socket ─ TLS
    http  server, http(s) proxy     socket to the proxy (─ TLS); requests name the whole URL
    https server, http(s) proxy     socket to the proxy (─ TLS) ─ CONNECT ─ TLS

An HTTPS proxy is verified with the certificate authorities that the server is verified with, as Go programs do. All
connections of a connector read into the same buffers (docs/decisions/0007-tls-in-memory.md).
"""

from __future__ import annotations

import asyncio
import base64
import socket
import ssl
from collections.abc import Callable
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

from bayplan.client.connection import BUFFER_BYTES, MAX_RESPONSE_BYTES, HttpConnection
from bayplan.client.errors import ConnectionFailed
from bayplan.client.proxy_tunnel import ProxyTunnel
from bayplan.client.tls import ClientCertificate, TlsContexts, TlsSettings
from bayplan.client.tls_channel import TlsChannel

__all__ = ["CONNECT_TIMEOUT_SECONDS", "Connector"]

CONNECT_TIMEOUT_SECONDS: Final = 10.0
_SEALED_BYTES: Final = 64 << 10
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}

_Layer = HttpConnection | TlsChannel | ProxyTunnel


class Connector:
    """Opens connections to `server`, through the proxy at `proxy_url` if one is given."""

    def __init__(
        self,
        server: str,
        *,
        tls: TlsSettings,
        proxy_url: str | None = None,
        max_response_bytes: int = MAX_RESPONSE_BYTES,
    ) -> None:
        self._server = server
        self._url = urlsplit(server)
        self._proxy = urlsplit(proxy_url) if proxy_url else None
        self._server_name = tls.server_name or self._url.hostname
        self._contexts = TlsContexts(tls)
        self._max_response_bytes = max_response_bytes
        self._sealed = memoryview(bytearray(_SEALED_BYTES))
        self._opened = memoryview(bytearray(BUFFER_BYTES))

    @property
    def request_prefix(self) -> str:
        """What precedes the path in a request line: the origin of the server where a proxy forwards plain HTTP."""
        is_forwarded = self._proxy is not None and self._url.scheme == "http"
        return f"http://{_authority(self._url)}" if is_forwarded else ""

    @property
    def request_headers(self) -> list[tuple[str, str]]:
        """Headers of every request: its host, and the credentials of a proxy that forwards plain HTTP."""
        headers = [("Host", _authority(self._url))]
        credentials = _basic(self._proxy) if self._proxy is not None and self._url.scheme == "http" else None
        if credentials is not None:
            headers.append(("Proxy-Authorization", credentials))
        return headers

    async def open(
        self, on_lost: Callable[[HttpConnection], None], certificate: ClientCertificate | None = None
    ) -> HttpConnection:
        """A connection that is ready for a request. Raises `ConnectionFailed`, and what is wrong with TLS files."""
        connection = HttpConnection(on_lost=on_lost, buffer=self._opened, max_response_bytes=self._max_response_bytes)
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_SECONDS):
                await self._establish(connection, certificate)
                return connection
        except TimeoutError:
            what = f"cannot connect to {self._server} within {CONNECT_TIMEOUT_SECONDS:g} s"
            raise ConnectionFailed(what, may_have_been_processed=False) from None
        except OSError as error:
            what = f"cannot reach {self._server}: {_explained(error)}"
            raise ConnectionFailed(what, may_have_been_processed=False) from error

    async def _establish(self, connection: HttpConnection, certificate: ClientCertificate | None) -> None:
        """Build the layers from the connection down to the socket, then open the socket."""
        layers: list[TlsChannel | ProxyTunnel] = []
        bottom: _Layer = connection
        if self._url.scheme == "https":
            bottom = self._tls_layer(bottom, self._server_name, certificate)
            layers.append(bottom)
            if self._proxy is not None:
                bottom = ProxyTunnel(bottom, server=_host_and_port(self._url), authorization=_basic(self._proxy))
                layers.append(bottom)
        if self._proxy is not None and self._proxy.scheme == "https":
            bottom = self._tls_layer(bottom, self._proxy.hostname, certificate)
            layers.append(bottom)
        try:
            await _open_socket(self._proxy or self._url, bottom)
            for layer in reversed(layers):
                await layer.established
        except BaseException:
            for layer in layers:
                layer.established.cancel()
            if layers:
                layers[-1].abort()
            raise

    def _tls_layer(self, above: _Layer, server_name: str | None, certificate: ClientCertificate | None) -> TlsChannel:
        context = self._contexts.context(certificate)
        return TlsChannel(above, context=context, server_hostname=server_name, buffer=self._sealed)


async def _open_socket(url: SplitResult, protocol: _Layer) -> None:
    host, port = url.hostname or "", url.port or _DEFAULT_PORTS[url.scheme]
    transport, _ = await asyncio.get_running_loop().create_connection(lambda: protocol, host, port)
    # The system reports a peer that is gone: an idle watch sends nothing that could fail.
    sock: socket.socket | None = transport.get_extra_info("socket")
    if sock is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)


def _authority(url: SplitResult) -> str:
    """Host and port as the URL has them, without the user."""
    return url.netloc.rpartition("@")[2]


def _host_and_port(url: SplitResult) -> str:
    host = url.hostname or ""
    return f"{f'[{host}]' if ':' in host else host}:{url.port or _DEFAULT_PORTS[url.scheme]}"


def _basic(url: SplitResult) -> str | None:
    """The value of a Proxy-Authorization header, if the URL of the proxy has credentials."""
    if url.username is None:
        return None
    pair = f"{unquote(url.username)}:{unquote(url.password or '')}"
    return f"Basic {base64.b64encode(pair.encode()).decode('ascii')}"


def _explained(error: OSError) -> str:
    """The error on one line, with what to check where it is a common one."""
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
        return "connection refused; nothing listens there"
    return str(getattr(error, "strerror", None) or error) or type(error).__name__
