"""One keep-alive HTTP/1.1 connection with little overhead: a binding is one write and one parse.

One request at a time; no pipelining, because some proxies break on it and a slow answer would delay the others. The
parser is llhttp through `httptools`. A connection with any irregularity (bytes without a request, a broken answer, a
cancelled wait) is closed and never used again.

`stream` passes on the body of one answer as it arrives, for watches; such a connection is never used again either.

Credentials, retries and Kubernetes objects are dealt with elsewhere. `ConnectionPool` keeps connections for requests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from typing import Final

import httptools

from bayplan.client.body_stream import BodyStream
from bayplan.client.errors import ClientError, ConnectionFailed, InvalidResponse, RequestTimeout
from bayplan.client.transport import Response

MAX_RESPONSE_BYTES: Final = 2 << 30
_MAX_HEADERS: Final = 256
_NEVER: Final = float("inf")
BUFFER_BYTES: Final = 16 << 10
"""As much as one record of TLS holds."""


class RawHeaders(Mapping[str, str]):
    """Header lines as received, decoded at the first access: most answers are judged by their status alone."""

    __slots__ = ("_decoded", "_lines")

    def __init__(self, lines: list[tuple[bytes, bytes]]) -> None:
        self._lines = lines
        self._decoded: dict[str, str] | None = None

    def __getitem__(self, name: str) -> str:
        return self._as_dict()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._as_dict())

    def __len__(self) -> int:
        return len(self._as_dict())

    def _as_dict(self) -> dict[str, str]:
        if self._decoded is None:
            self._decoded = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in self._lines}
        return self._decoded


class HttpConnection(asyncio.BufferedProtocol):
    """A socket to one server. `exchange` sends a request and returns the future of its answer."""

    def __init__(
        self,
        *,
        on_lost: Callable[[HttpConnection], None],
        buffer: memoryview,
        max_response_bytes: int = MAX_RESPONSE_BYTES,
    ) -> None:
        """`buffer` receives the bytes of answers; connections of one event loop may share it."""
        self._on_lost = on_lost
        self._max_response_bytes = max_response_bytes
        self._transport: asyncio.Transport | None = None
        self._loop = asyncio.get_running_loop()
        self.time = self._loop.time
        self._parser = httptools.HttpResponseParser(self)
        self._buffer = buffer
        self._answer: asyncio.Future[Response] | None = None
        self._stream: BodyStream | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._deadline = _NEVER
        self._timeout = 0.0
        self._has_answer_begun = False
        self._headers: list[tuple[bytes, bytes]] = []
        self._body: list[bytes] = []
        self._body_bytes = 0
        self._ends_with_connection = False
        self.is_open = False
        self.retire_at = float("inf")
        self.idle_since = 0.0

    def exchange(self, request: bytes, timeout: float) -> asyncio.Future[Response]:
        """Send `request`; the future fails with `ConnectionFailed`, `RequestTimeout` or `InvalidResponse`."""
        answer: asyncio.Future[Response] = self._loop.create_future()
        if not self.is_open or self._answer is not None or self._transport is None:
            answer.set_exception(ConnectionFailed("the connection is closed", may_have_been_processed=False))
            return answer
        self._answer = answer
        self._has_answer_begun = False
        self._set_deadline(timeout)
        self._transport.write(request)
        return answer

    def stream(self, request: bytes) -> BodyStream:
        """Send `request`; its answer is read as it arrives. There is no timeout: a watch may be silent for minutes."""
        transport = self._transport
        if not self.is_open or self._answer is not None or transport is None:
            raise ConnectionFailed("the connection is closed", may_have_been_processed=False)
        self.is_open = False
        self._has_answer_begun = False
        self._stream = BodyStream(pause=transport.pause_reading, resume=transport.resume_reading, close=self.close)
        transport.write(request)
        return self._stream

    def close(self, error: ClientError | None = None) -> None:
        """Close the socket at once. A request that waits for its answer fails with `error`."""
        self.is_open = False
        self._settle(error or self._broken("the connection was closed"))
        self._stop_timer()
        if self._transport is not None:
            self._transport.abort()

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]  # a stream protocol always gets a stream transport
        self.is_open = True

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        if self._answer is None and self._stream is None:
            # Bytes without a request must not become the answer to the next one.
            self.close()
            return
        self._has_answer_begun = True
        try:
            self._parser.feed_data(self._buffer[:nbytes])
        except httptools.HttpParserError as error:
            # An error of ours, raised in a callback, is the context of the parser's.
            self.close(InvalidResponse(f"the server's answer is not usable HTTP: {error.__context__ or error}"))

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_open = False
        if exc is None and self._ends_with_connection:
            self._complete()
        self._settle(self._broken(f"the connection was lost: {exc}" if exc else "the server closed the connection"))
        self._stop_timer()
        self._transport = None
        self._on_lost(self)

    # httptools

    def on_message_begin(self) -> None:
        if self._answer is None and self._stream is None:
            raise httptools.HttpParserError("an answer without a request")

    def on_header(self, name: bytes, value: bytes) -> None:
        if len(self._headers) >= _MAX_HEADERS:
            raise httptools.HttpParserError("too many headers")
        self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        if self._stream is not None and self._parser.get_status_code() >= 200:
            self._stream.begin(self._parser.get_status_code(), RawHeaders(self._headers))
        if not self._parser.should_keep_alive():
            names = {name.lower() for name, _ in self._headers}
            self._ends_with_connection = names.isdisjoint((b"content-length", b"transfer-encoding"))

    def on_body(self, body: bytes) -> None:
        if self._stream is not None:
            self._stream.feed(body)
            return
        self._body_bytes += len(body)
        if self._body_bytes > self._max_response_bytes:
            raise httptools.HttpParserError(f"more than {self._max_response_bytes} bytes")
        self._body.append(body)

    def on_message_complete(self) -> None:
        if self._parser.get_status_code() < 200:
            self._headers = []
            return
        if not self._parser.should_keep_alive():
            self.is_open = False
        self._complete()
        if not self.is_open and self._transport is not None:
            self._transport.abort()

    def _complete(self) -> None:
        if self._stream is not None:
            self._stream.end()
            return
        answer = self._answer
        response = Response(self._parser.get_status_code(), RawHeaders(self._headers), b"".join(self._body))
        self._forget_exchange()
        if answer is not None and not answer.done():
            answer.set_result(response)

    def _settle(self, error: ClientError) -> None:
        if self._stream is not None:
            self._stream.fail(error)
        answer = self._answer
        self._forget_exchange()
        if answer is not None and not answer.done():
            answer.set_exception(error)

    def _forget_exchange(self) -> None:
        self._answer = None
        self._headers = []
        self._body = []
        self._body_bytes = 0
        self._ends_with_connection = False
        self._deadline = _NEVER

    # deadlines

    def _set_deadline(self, timeout: float) -> None:
        """A running timer of an earlier request is kept and set again when it fires. Under load this sets one timer
        every half minute instead of two for every request."""
        self._timeout = timeout
        self._deadline = self._loop.time() + timeout
        if self._timer is not None and self._timer.when() > self._deadline:
            self._timer.cancel()
            self._timer = None
        if self._timer is None:
            self._timer = self._loop.call_at(self._deadline, self._check_deadline)

    def _check_deadline(self) -> None:
        self._timer = None
        if self._deadline == _NEVER:
            return
        if self._loop.time() < self._deadline:
            self._timer = self._loop.call_at(self._deadline, self._check_deadline)
            return
        what = f"no answer within {self._timeout:g} s{self._from_peer()}"
        self.close(RequestTimeout(what, may_have_been_processed=True))

    def _from_peer(self) -> str:
        """For messages; a socket that is gone has no peer."""
        peer = self._transport.get_extra_info("peername") if self._transport is not None else None
        return f" from {peer[0]}:{peer[1]}" if isinstance(peer, tuple) else ""

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _broken(self, what: str) -> ConnectionFailed:
        where = "in the middle of the answer" if self._has_answer_begun else "before an answer"
        return ConnectionFailed(f"{what} {where}", may_have_been_processed=True)
