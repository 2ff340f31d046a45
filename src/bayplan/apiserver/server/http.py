"""The HTTP/1.1 transport: keep-alive, pipelining, chunked watches, limits; nothing about Kubernetes.

One protocol object a connection, parsed by httptools. Requests of a connection are answered in order, and while the
client reads what was answered. A watch takes its connection over until it ends. Bodies over the limit, malformed
requests and unknown methods get a Status, and the connection is closed when its state cannot be trusted any more.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import ssl
from collections import deque
from collections.abc import Awaitable, Callable

import httptools

from bayplan.apiserver.objects.watch import WatchStream
from bayplan.apiserver.objects.webhooks import ReviewNeeded
from bayplan.apiserver.protocol import errors
from bayplan.apiserver.protocol.exchange import ApiAnswer, Request, error_answer, parse_query
from bayplan.apiserver.protocol.identity import ANONYMOUS, ApiUser, certificate_user
from bayplan.apiserver.server.impersonation import REPEATED

_log = logging.getLogger("bayplan.apiserver.server.http")
_MAX_HEADER_BYTES = 64 * 1024
_MAX_URL_BYTES = 32 * 1024
_MAX_PIPELINED = 128
# As long as kube-apiserver waits for the head of a request; a body may take as long again.
_HEAD_SECONDS = 32.0
_REQUEST_SECONDS = 64.0
_STALLED_SECONDS = 64.0
"""A client that takes nothing of its answers for so long is dropped; watches have a limit of their own."""
_SWEEP_SECONDS = 4.0
_REASONS = {
    200: b"OK",
    201: b"Created",
    400: b"Bad Request",
    401: b"Unauthorized",
    403: b"Forbidden",
    404: b"Not Found",
    405: b"Method Not Allowed",
    406: b"Not Acceptable",
    409: b"Conflict",
    410: b"Gone",
    413: b"Request Entity Too Large",
    415: b"Unsupported Media Type",
    422: b"Unprocessable Entity",
    429: b"Too Many Requests",
    500: b"Internal Server Error",
    503: b"Service Unavailable",
    504: b"Gateway Timeout",
}
# Under load, events are gathered for this long before they are written, so that many events share one system call.
_GATHER_SECONDS = 0.005
Handle = Callable[[Request], ApiAnswer]
"""Answers a request, or raises `ReviewNeeded`."""
HandleWithReviews = Callable[[Request, ReviewNeeded], Awaitable[ApiAnswer]]


class HttpServer:
    """Listens and hands requests to a handler."""

    def __init__(self, handle: Handle, handle_with_reviews: HandleWithReviews) -> None:
        self.handle = handle
        self.handle_with_reviews = handle_with_reviews
        self.connections: set[Connection] = set()
        self._server: asyncio.Server | None = None
        self._sweeping: asyncio.TimerHandle | None = None
        self.port = 0

    async def start(self, host: str, port: int, *, tls: ssl.SSLContext | None = None) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: Connection(self), host, port, ssl=tls, backlog=1024)
        self.port = self._server.sockets[0].getsockname()[1]
        self._sweep(loop)

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        """Close connections whose request does not arrive; one timer for all costs less than one for each."""
        now = loop.time()
        for connection in list(self.connections):
            connection.close_if_overdue(now)
        self._sweeping = loop.call_later(_SWEEP_SECONDS, self._sweep, loop)

    async def stop(self) -> None:
        if self._server is None:
            return
        self._server.close()
        if self._sweeping is not None:
            self._sweeping.cancel()
        for connection in list(self.connections):
            connection.abort()
        for connection in list(self.connections):
            await connection.finished()
        await self._server.wait_closed()
        self._server = None


class Connection(asyncio.Protocol):
    """One client connection."""

    def __init__(self, server: HttpServer) -> None:
        self._server = server
        self._transport: asyncio.Transport | None = None
        self._user: ApiUser = ANONYMOUS
        self._parser = httptools.HttpRequestParser(self)
        self._url = b""
        self._headers: dict[str, str] = {}
        self._header_bytes = 0
        self._unparsed_bytes = 0
        """Received since the parser last handed something over: it gathers headers, trailers and sizes of chunks."""
        self._is_in_head = True
        self._began: float | None = asyncio.get_running_loop().time()
        """When the current request began to arrive; None between requests."""
        self._body: list[bytes] = []
        self._body_bytes = 0
        self._refusal: errors.RequestRefused | None = None
        self._waiting: deque[tuple[Request | errors.RequestRefused, bool]] = deque()
        self._streaming: asyncio.Task[None] | None = None
        self._reviewing: asyncio.Task[None] | None = None
        self._can_write = asyncio.Event()
        self._can_write.set()
        self._stalled_at: float | None = None
        """When the client stopped reading its answers; None while it reads."""

    # ---- asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]  # a stream server makes stream transports
        self._user = certificate_user(transport.get_extra_info("peercert"))
        self._server.connections.add(self)

    def connection_lost(self, problem: Exception | None) -> None:
        self._transport = None
        self._can_write.set()
        if self._reviewing is not None:
            self._reviewing.cancel()
        if self._streaming is not None:
            self._streaming.cancel()
        else:
            self._server.connections.discard(self)

    def pause_writing(self) -> None:
        self._can_write.clear()
        self._stalled_at = asyncio.get_running_loop().time()
        if self._streaming is None and self._transport is not None:
            # Answers that wait for their reader are enough. A watch keeps reading: that is how it learns of its end.
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        self._can_write.set()
        self._stalled_at = None
        if self._transport is not None:
            if self._began is not None:  # the rest of that request could not arrive meanwhile
                self._began = asyncio.get_running_loop().time()
            self._transport.resume_reading()
            self._work()

    def data_received(self, data: bytes) -> None:
        self._unparsed_bytes += len(data)
        try:
            self._parser.feed_data(data)
            if self._unparsed_bytes > _MAX_HEADER_BYTES + _MAX_URL_BYTES:
                # The parser hands a header over when it is complete, and would gather one without end.
                self._refuse_and_close(errors.bad_request("the request headers are too large"))
        except httptools.HttpParserUpgrade:
            self._refuse_and_close(errors.bad_request("this server upgrades no connections"))
        except (httptools.HttpParserError, httptools.HttpParserCallbackError) as problem:
            self._refuse_and_close(errors.bad_request(f"malformed HTTP request: {str(problem)[:120]}"))

    # ---- httptools callbacks

    def on_message_begin(self) -> None:
        self._url = b""
        self._headers = {}
        self._header_bytes = 0
        self._body = []
        self._body_bytes = 0
        self._refusal = None
        self._is_in_head = True
        if self._began is None:
            self._began = asyncio.get_running_loop().time()

    def on_url(self, url: bytes) -> None:
        self._url += url
        if len(self._url) > _MAX_URL_BYTES:
            self._refusal = errors.bad_request("the request URI is too long")
            self._url = b"/"

    def on_header(self, name: bytes, value: bytes) -> None:
        self._header_bytes += len(name) + len(value)
        if self._header_bytes > _MAX_HEADER_BYTES:
            self._refusal = errors.bad_request("the request headers are too large")
            return
        if self._is_in_head:  # after it come trailers, which say nothing that counts here
            known_as, text = name.decode("latin-1").lower(), value.decode("latin-1")
            if known_as in self._headers and known_as.startswith("impersonate-"):
                text = self._headers[known_as] + REPEATED + text
            self._headers[known_as] = text

    def on_headers_complete(self) -> None:
        self._is_in_head = False
        self._unparsed_bytes = 0
        if self._headers.get("expect", "").lower() == "100-continue" and self._transport is not None:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_chunk_header(self) -> None:
        self._unparsed_bytes = 0

    def on_body(self, body: bytes) -> None:
        self._unparsed_bytes = 0
        self._body_bytes += len(body)
        if self._body_bytes > errors.MAX_BODY_BYTES:
            self._refusal = errors.too_large()
            self._body = []
        else:
            self._body.append(body)

    def on_message_complete(self) -> None:
        keep_alive = self._parser.should_keep_alive()
        self._is_in_head = True
        self._unparsed_bytes = 0
        self._began = None
        self._waiting.append((self._refusal or self._request(), keep_alive))
        if len(self._waiting) > _MAX_PIPELINED:
            self._refuse_and_close(errors.too_many_requests("too many pipelined requests"))
            return
        self._work()

    # ---- answering

    def _request(self) -> Request | errors.RequestRefused:
        path, _, query = self._url.partition(b"?")
        try:
            parameters = parse_query(query.decode("latin-1"))
            text = path.decode("ascii")
        except (ValueError, UnicodeDecodeError):
            return errors.bad_request("the request URI cannot be understood")
        method = self._parser.get_method().decode("ascii")
        body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        return Request(method, text, parameters, self._headers, body, self._user)

    def _work(self) -> None:
        """Answer what waits, until a watch takes the connection over, a webhook has to be called, or nobody reads."""
        while self._waiting and self._can_answer():
            request, keep_alive = self._waiting.popleft()
            if not isinstance(request, Request):
                self._send(error_answer(request), keep_alive=False)
                continue
            try:
                answer = self._server.handle(request)
            except ReviewNeeded as needed:
                task = self._answer_reviewed(request, needed, keep_alive=keep_alive)
                self._reviewing = asyncio.get_running_loop().create_task(task, name="admission review")
            else:
                self._answer(request, answer, keep_alive=keep_alive)

    def _can_answer(self) -> bool:
        is_busy = self._streaming is not None or self._reviewing is not None
        return not is_busy and self._transport is not None and self._can_write.is_set()

    async def _answer_reviewed(self, request: Request, needed: ReviewNeeded, *, keep_alive: bool) -> None:
        answer = await self._server.handle_with_reviews(request, needed)
        self._reviewing = None
        self._answer(request, answer, keep_alive=keep_alive)
        self._work()

    def _answer(self, request: Request, answer: ApiAnswer, *, keep_alive: bool) -> None:
        if answer.stream is not None:
            self._start_stream(answer)
        else:
            self._send(answer, keep_alive=keep_alive, is_head=request.method == "HEAD")

    def _send(self, answer: ApiAnswer, *, keep_alive: bool, is_head: bool = False) -> None:
        if self._transport is None:
            return
        head = _head(answer, b"" if keep_alive else b"Connection: close\r\n")
        length = b"Content-Length: %d\r\n\r\n" % len(answer.body)
        self._transport.write(head + length + (b"" if is_head else answer.body))
        if not keep_alive:
            self._transport.close()

    def _start_stream(self, answer: ApiAnswer) -> None:
        stream = answer.stream
        if self._transport is None or stream is None:
            return
        self._transport.write(_head(answer, b"Transfer-Encoding: chunked\r\n") + b"\r\n")
        self._streaming = asyncio.get_running_loop().create_task(self._pump(stream), name="watch stream")
        self._streaming.add_done_callback(lambda task: self._stream_ended(task, stream))

    async def _pump(self, stream: WatchStream) -> None:
        loop = asyncio.get_running_loop()
        last = 0.0
        async for batch in stream:
            if self._transport is None:
                return
            self._transport.write(b"%x\r\n%b\r\n" % (len(batch), batch))
            await self._can_write.wait()
            now = loop.time()
            if now - last < _GATHER_SECONDS:
                await asyncio.sleep(_GATHER_SECONDS)
            last = now
        if self._transport is not None:
            self._transport.write(b"0\r\n\r\n")

    def _stream_ended(self, task: asyncio.Task[None], stream: WatchStream) -> None:
        stream.close()
        self._streaming = None
        if self._transport is None:
            self._server.connections.discard(self)
        else:
            self._work()
        if not task.cancelled() and task.exception() is not None:
            _log.error("a watch ended with an error", exc_info=task.exception())
            self.abort()

    def _refuse_and_close(self, problem: errors.RequestRefused) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        if self._streaming is None:
            self._send(error_answer(problem), keep_alive=False)
        else:
            self._transport.close()

    # ---- ending

    def close_if_overdue(self, now: float) -> None:
        if self._streaming is not None:
            return
        limit = _HEAD_SECONDS if self._is_in_head else _REQUEST_SECONDS
        if self._stalled_at is not None:
            is_overdue = now - self._stalled_at > _STALLED_SECONDS
        else:
            is_overdue = self._began is not None and now - self._began > limit
        if is_overdue:
            self.abort()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    async def finished(self) -> None:
        if self._streaming is not None:
            await asyncio.wait([self._streaming])


def _head(answer: ApiAnswer, extra: bytes) -> bytes:
    lines = _opening(answer.status, answer.content_type, extra)
    for name, value in answer.headers:
        lines += f"{name}: {value}\r\n".encode("latin-1", "replace")
    return lines


@functools.lru_cache(maxsize=256)
def _opening(status: int, content_type: str, extra: bytes) -> bytes:
    reason = _REASONS.get(status, b"OK" if status < 300 else b"Error")
    lines = b"HTTP/1.1 %d %b\r\nContent-Type: %b\r\nCache-Control: no-cache, private\r\n%b"
    return lines % (status, reason, content_type.encode("latin-1"), extra)
