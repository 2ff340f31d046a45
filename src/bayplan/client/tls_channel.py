"""TLS between a connection and its socket, encrypted and decrypted in memory.

The TLS layers of the event loops keep a buffer of 256 KiB for every connection, and connections that come and go make a
process grow with them. Here all connections of a client read into the same two buffers, one after the other, because
what arrives is consumed at once.

OpenSSL does the cryptography, the checks and the state machine. Channels nest: TLS to an HTTPS proxy carries TLS to the
server. This module is independent of HTTP.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import Protocol

__all__ = ["StreamReceiver", "TlsChannel"]


class StreamReceiver(Protocol):
    """The layer above: an `asyncio.BufferedProtocol` that receives plain bytes."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None: ...

    def get_buffer(self, sizehint: int) -> memoryview: ...

    def buffer_updated(self, nbytes: int) -> None: ...

    def eof_received(self) -> bool | None: ...

    def connection_lost(self, exc: Exception | None) -> None: ...


class TlsChannel(asyncio.BufferedProtocol, asyncio.Transport):
    """A protocol for the socket's transport, and the transport of the protocol inside."""

    def __init__(
        self, inside: StreamReceiver, *, context: ssl.SSLContext, server_hostname: str | None, buffer: memoryview
    ) -> None:
        """`buffer` receives encrypted bytes; channels of one event loop may share it."""
        asyncio.Transport.__init__(self)
        self._inside = inside
        self._buffer = buffer
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=server_hostname)
        self._transport: asyncio.Transport | None = None
        self._error: OSError | None = None
        self.established: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when the handshake has verified the peer; fails when it cannot."""

    # transport of the layer above

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._transport is None:
            return
        written = self._tls.write(data)
        while written < len(data):
            written += self._tls.write(memoryview(data)[written:])
        self._transport.write(self._outgoing.read())

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def pause_reading(self) -> None:
        if self._transport is not None:
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        if self._transport is not None:
            self._transport.resume_reading()

    # protocol of the layer below

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]  # a stream protocol always gets a stream transport
        self._shake_hands()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self._incoming.write(self._buffer[:nbytes])
        if not self.established.done():
            self._shake_hands()
        if self.established.done():
            self._open()

    def eof_received(self) -> bool:
        """The end of the socket without a TLS close_notify: the data may be truncated."""
        self._error = self._error or ConnectionResetError("it was cut off")
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        if self.established.done():
            self._inside.connection_lost(exc or self._error)
        else:
            self.established.set_exception(exc or self._error or ConnectionResetError("it was closed"))

    def _shake_hands(self) -> None:
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._flush()
        except ssl.SSLError as error:
            self._fail(error)
        else:
            self._flush()
            self._inside.connection_made(self)
            self.established.set_result(None)

    def _open(self) -> None:
        """Decrypt all that has arrived and pass it up."""
        tls, inside, incoming = self._tls, self._inside, self._incoming
        if not incoming.pending and not tls.pending():
            return
        try:
            while True:
                buffer = inside.get_buffer(-1)
                count: int = tls.read(len(buffer), buffer)  # type: ignore[assignment]  # how many, given a buffer
                if not count:
                    self.abort()
                    return
                inside.buffer_updated(count)
                # One read returns at most the rest of one record.
                if not incoming.pending and (count < len(buffer) or not tls.pending()):
                    break
        except ssl.SSLWantReadError:
            # An incomplete record, or a message of TLS itself.
            pass
        except ssl.SSLError as error:
            self._fail(error)
            return
        if self._outgoing.pending:
            self._flush()

    def _flush(self) -> None:
        if self._transport is not None:
            self._transport.write(self._outgoing.read())

    def _fail(self, error: ssl.SSLError) -> None:
        """Send the TLS alert, then close."""
        self._error = error
        self._flush()
        self.abort()
        if not self.established.done():
            self.established.set_exception(error)
