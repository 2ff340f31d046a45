"""A tunnel through an HTTP proxy, opened with CONNECT.

The layer sends one CONNECT request and reads the head of its answer. With a 2xx status it connects the layer above to
the socket and passes bytes through. Anything else ends the connection with the proxy's status in the error.
"""

from __future__ import annotations

import asyncio
from typing import Final

from bayplan.client.tls_channel import StreamReceiver

__all__ = ["ProxyRefused", "ProxyTunnel"]

_MAX_HEAD_BYTES: Final = 64 << 10


class ProxyRefused(ConnectionError):
    """The proxy did not open a tunnel."""


class ProxyTunnel(asyncio.BufferedProtocol):
    """Connects `inside` to `server` (host:port) once the proxy has opened the tunnel; `established` reports when."""

    def __init__(self, inside: StreamReceiver, *, server: str, authorization: str | None) -> None:
        self._inside = inside
        self._server = server
        self._authorization = authorization
        self._buffer = memoryview(bytearray(4096))
        self._head = b""
        self._transport: asyncio.Transport | None = None
        self._is_open = False
        self.established: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        lines = [f"CONNECT {self._server} HTTP/1.1", f"Host: {self._server}"]
        if self._authorization is not None:
            lines.append(f"Proxy-Authorization: {self._authorization}")
        self._transport.write("\r\n".join([*lines, "", ""]).encode("latin-1"))

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._inside.get_buffer(sizehint) if self._is_open else self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        if self._is_open:
            self._inside.buffer_updated(nbytes)
            return
        self._head += bytes(self._buffer[:nbytes])
        head, end, rest = self._head.partition(b"\r\n\r\n")
        if end:
            self._answered(head, rest)
        elif len(self._head) > _MAX_HEAD_BYTES:
            self._fail(ProxyRefused("the proxy's answer to CONNECT has no end"))

    def eof_received(self) -> bool | None:
        return self._inside.eof_received() if self._is_open else False

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        if self._is_open:
            self._inside.connection_lost(exc)
        elif not self.established.done():
            self.established.set_exception(
                exc or ProxyRefused("the proxy closed the connection before a tunnel opened")
            )

    def _answered(self, head: bytes, rest: bytes) -> None:
        status_line = head.split(b"\r\n", 1)[0].decode("latin-1")
        version, _, status = status_line.partition(" ")
        if not version.startswith("HTTP/1.") or not status[:3].isdigit():
            self._fail(ProxyRefused("the proxy's answer to CONNECT is not HTTP"))
        elif status.startswith("407"):
            self._fail(ProxyRefused(f"the proxy needs other credentials ({status}); check the user in the proxy's URL"))
        elif not status.startswith("2"):
            self._fail(ProxyRefused(f"the proxy opened no tunnel: {status}"))
        elif rest:
            # In TLS the client sends first: these bytes are the proxy's, not the server's.
            self._fail(ProxyRefused("the proxy sent data before the server could"))
        elif self._transport is not None:
            self._is_open = True
            self.established.set_result(None)
            self._inside.connection_made(self._transport)

    def _fail(self, error: ProxyRefused) -> None:
        self.abort()
        if not self.established.done():
            self.established.set_exception(error)
