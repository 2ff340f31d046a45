"""One keep-alive HTTP/1.1 connection, as lean as Python allows: a binding is one write and one parse.

One request at a time; no pipelining, because a proxy in between may not survive it and a slow answer would hold up the
others. The parser is llhttp through `httptools`. A connection that has seen anything irregular (bytes nobody asked for,
a broken answer, a cancelled wait) is closed and never used again.

A watch is an answer whose body is handed over while it comes (`stream`); such a connection is never used again.

It knows nothing of credentials, of retries or of Kubernetes. `ConnectionPool` keeps connections for requests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

import httptools

from bayplan.client.body_stream import BodyStream
from bayplan.client.errors import ClientError, ConnectionFailed, InvalidResponse, RequestTimeout
from bayplan.client.transport import Response
from bayplan.client.whole_answer import RawHeaders, whole_answer

MAX_RESPONSE_BYTES: Final = 2 << 30
_MAX_HEADERS: Final = 256
_SHORT_BYTES: Final = 4 << 10
_NEVER: Final = float("inf")
BUFFER_BYTES: Final = 16 << 10
"""As much as one record of TLS holds."""


class HttpConnection(asyncio.BufferedProtocol):
    """A socket to one server. `exchange` sends a request and returns the future of its answer."""

    def __init__(
        self,
        *,
        on_lost: Callable[[HttpConnection], None],
        buffer: memoryview,
        max_response_bytes: int = MAX_RESPONSE_BYTES,
    ) -> None:
        """`buffer` is where answers are read to; it may be that of other connections of the same event loop."""
        self._on_lost = on_lost
        self._max_response_bytes = max_response_bytes
        self._short_bytes = min(_SHORT_BYTES, max_response_bytes)
        self._transport: asyncio.Transport | None = None
        self._loop = asyncio.get_running_loop()
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
        """Send `request`, whose answer is read as it comes. There is no timeout: a watch may be silent for minutes."""
        transport = self._transport
        if not self.is_open or self._answer is not None or transport is None:
            raise ConnectionFailed("the connection is closed", may_have_been_processed=False)
        self.is_open = False
        self._has_answer_begun = False
        self._stream = BodyStream(pause=transport.pause_reading, resume=transport.resume_reading, close=self.close)
        transport.write(request)
        return self._stream

    def close(self, error: ClientError | None = None) -> None:
        """Give the socket up at once. A request that waits for its answer fails with `error`."""
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
            # Nobody asked. Whatever it is, it must not become the answer to the next request.
            self.close()
            return
        if not self._has_answer_begun and self._answer is not None and nbytes <= self._short_bytes:
            whole = whole_answer(bytes(self._buffer[:nbytes]))
            if whole is not None:
                self._hand_over(whole)
                return
        self._has_answer_begun = True
        try:
            self._parser.feed_data(self._buffer[:nbytes])
        except httptools.HttpParserError as error:
            # An error of ours, raised in a callback, is the context of the parser's.
            self.close(InvalidResponse(f"the server's answer is not HTTP as we take it: {error.__context__ or error}"))

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
        self._hand_over(Response(self._parser.get_status_code(), RawHeaders(self._headers), b"".join(self._body)))

    def _hand_over(self, response: Response) -> None:
        answer = self._answer
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
        """A timer that is still running from an earlier request is left to run: it looks again when its time comes.
        Under load it is set every half minute instead of twice for every request."""
        self._timeout = timeout
        self._deadline = self._loop.time() + timeout
        if self._timer is not None and self._timer.when() > self._deadline:
            self._timer.cancel()
            self._timer = None
        if self._timer is None:
            self._timer = self._loop.call_at(self._deadline, self._look_at_time)

    def _look_at_time(self) -> None:
        self._timer = None
        if self._deadline == _NEVER:
            return
        if self._loop.time() < self._deadline:
            self._timer = self._loop.call_at(self._deadline, self._look_at_time)
            return
        self.close(RequestTimeout(f"no answer within {self._timeout:g} s", may_have_been_processed=True))

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _broken(self, what: str) -> ConnectionFailed:
        where = "in the middle of the answer" if self._has_answer_begun else "before an answer"
        return ConnectionFailed(f"{what} {where}", may_have_been_processed=True)
