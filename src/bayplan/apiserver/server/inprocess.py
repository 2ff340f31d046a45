"""The same server without sockets: calls go to `Api.handle`, watches stream, faults can be injected.

Fulfils the transport port of the client room by shape. That room's exceptions are not imported here; the code that
wires the two together passes them in as `TransportErrors`. Time is the cluster's clock, so that delays and timeouts
cost no real time on a virtual one.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from bayplan.apiserver.objects.watch import WatchStream
from bayplan.apiserver.objects.webhooks import ReviewNeeded
from bayplan.apiserver.protocol import errors
from bayplan.apiserver.protocol.encoding import Json, decode_object, encode
from bayplan.apiserver.protocol.exchange import JSON_TYPE, ApiAnswer, Request, error_answer, parse_query
from bayplan.apiserver.server.api import Api
from bayplan.apiserver.server.faults import Fault, Faults

_CHUNK_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class InProcessResponse:
    """A complete answer; header names are lower-case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Json:
        return decode_object(self.body)


@dataclass(frozen=True, slots=True)
class TransportErrors:
    """How the absence of an answer, and a refused stream, are raised."""

    lost: Callable[[str, bool], Exception] = lambda what, may_have_been_processed: ConnectionResetError(what)
    """The connection broke; the flag says whether the server can have seen the request."""
    late: Callable[[str, bool], Exception] = lambda what, may_have_been_processed: TimeoutError(what)
    held_back: Callable[[str], Exception] = RuntimeError
    """The sender may no longer send; the server does not know of the request."""
    refused: Callable[[int, Mapping[str, str], bytes], Exception] = lambda status, headers, body: errors.RequestRefused(
        decode_object(body)
    )
    """A stream was requested and answered with a Status."""


class InProcessTransport:
    """A transport to an `Api` in the same process."""

    def __init__(self, api: Api, *, token: str = "", errors: TransportErrors | None = None) -> None:
        self._api = api
        self._token = token
        self._errors = errors or TransportErrors()
        self._streams: dict[WatchStream, str] = {}
        self._broken: set[WatchStream] = set()
        self._closed = False
        self.faults = Faults()
        self.calls = 0

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | Json | None = None,
        content_type: str = JSON_TYPE,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
        may_send: Callable[[], bool] = lambda: True,
    ) -> InProcessResponse:
        """One call and its answer, whatever its status; a watch is opened with `stream`."""
        request = self._request(method, path, query, body, content_type, headers)
        answer = await self._call(request, timeout, may_send)
        if answer.stream is not None:
            answer.stream.close()
            raise ValueError(f"{method} {path} is a watch: open it with `stream`")
        return InProcessResponse(answer.status, _headers(answer), answer.body)

    @asynccontextmanager
    async def stream(self, path: str, *, query: Mapping[str, str] | None = None) -> AsyncIterator[AsyncIterator[bytes]]:
        """GET something and read it piece by piece, as it arrives."""
        answer = await self._call(self._request("GET", path, query, None, "", None), None, lambda: True)
        if answer.status >= 300:
            raise self._errors.refused(answer.status, _headers(answer), answer.body)
        if answer.stream is None:
            yield _pieces(answer.body)
            return
        self._streams[answer.stream] = path
        try:
            yield self._events(answer.stream)
        finally:
            self._streams.pop(answer.stream, None)
            self._broken.discard(answer.stream)
            answer.stream.close()

    async def close(self) -> None:
        """End every stream; later calls raise as on a closed connection."""
        self._closed = True
        self.break_watches()

    # ---- faults that are not about one call

    def cut_watches(self, path: str = "") -> int:
        """End open watches as a server does that closes them in good order; answers how many."""
        found = [stream for stream, opened in self._streams.items() if path in opened]
        for stream in found:
            stream.close()
        return len(found)

    def break_watches(self, path: str = "") -> int:
        """End open watches as a broken network does; answers how many."""
        found = [stream for stream, opened in self._streams.items() if path in opened]
        self._broken.update(found)
        return self.cut_watches(path)

    def compact(self) -> None:
        """Forget the history, so that watches that resume from before now get 410 Expired."""
        self._api.store.compact()

    # ---- inside

    def _request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        body: bytes | Json | None,
        content_type: str,
        headers: Mapping[str, str] | None,
    ) -> Request:
        path, _, inline = path.partition("?")
        sent = {"authorization": f"Bearer {self._token}", "accept": JSON_TYPE, "user-agent": "in-process"}
        payload = b"" if body is None else body if isinstance(body, bytes) else encode(body)
        if payload:
            sent["content-type"] = content_type
        sent |= {name.lower(): value for name, value in (headers or {}).items()}
        parameters = dict(query) if query is not None else parse_query(inline)
        return Request(method, path, parameters, sent, payload)

    async def _call(self, request: Request, timeout: float | None, may_send: Callable[[], bool]) -> ApiAnswer:
        if self._closed:
            raise self._errors.lost("the transport is closed", False)
        self.calls += 1
        await asyncio.sleep(0)  # yield to other tasks, as a network call would
        if not may_send():
            raise self._errors.held_back(f"{request.method} {request.path} was not sent")
        faults = self.faults.striking(request)
        await self._delay(sum(fault.delay_seconds for fault in faults), timeout)
        failing = next((fault for fault in faults if fault.status or fault.breaks), None)
        if failing is not None and not failing.after_write:
            return self._fail(failing)
        try:
            answer = self._api.handle(request)
        except ReviewNeeded as needed:
            answer = await self._api.handle_with_reviews(request, needed)
        if failing is None:
            return answer
        if answer.stream is not None:
            answer.stream.close()
        return self._fail(failing)

    async def _delay(self, seconds: float, timeout: float | None) -> None:
        if timeout is not None and seconds > timeout:
            await self._api.clock.sleep(timeout)
            raise self._errors.late(f"no answer within {timeout:g} s", False)
        if seconds:
            await self._api.clock.sleep(seconds)

    def _fail(self, fault: Fault) -> ApiAnswer:
        if fault.breaks:
            raise self._errors.lost("injected fault: connection reset", fault.after_write)
        return error_answer(errors.RequestRefused(fault.status or {}))

    async def _events(self, stream: WatchStream) -> AsyncIterator[bytes]:
        async for batch in stream:
            if stream in self._broken:
                break
            yield batch
        if stream in self._broken:
            raise self._errors.lost("injected fault: the stream broke", True)


async def _pieces(body: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(body), _CHUNK_BYTES):
        yield body[start : start + _CHUNK_BYTES]


def _headers(answer: ApiAnswer) -> dict[str, str]:
    return {"content-type": answer.content_type} | {name.lower(): value for name, value in answer.headers}
