"""The same server without sockets: calls go straight to `Api.handle`, watches really stream, faults can be ordered.

Meant for tests and simulations. `Faults` says which calls fail, are delayed, or get through; cutting watches and
compacting history are there too. Nothing is kept about past calls except their number.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field

from bayplan.apiserver import errors
from bayplan.apiserver.api import Api
from bayplan.apiserver.encoding import Json, decode_object, encode
from bayplan.apiserver.exchange import Answer, Request, error_answer, parse_query
from bayplan.apiserver.watch import WatchStream

Match = Callable[[Request], bool]


@dataclass(slots=True)
class Fault:
    """One thing that goes wrong: at the `call`-th matching call (from 1), for `times` calls."""

    call: int
    match: Match
    times: int = 1
    status: Json | None = None
    """Answer with this Status instead."""
    exception: Exception | None = None
    """Break the connection with this exception instead."""
    after_write: bool = False
    """Let the server do its work first, and then lose the answer."""
    delay_seconds: float = 0.0
    seen: int = 0

    def strikes(self, request: Request) -> bool:
        if not self.match(request):
            return False
        self.seen += 1
        return self.call <= self.seen < self.call + self.times


@dataclass(slots=True)
class Faults:
    """The faults ordered so far."""

    _faults: list[Fault] = field(default_factory=list)

    def fail_call(
        self,
        call: int = 1,
        *,
        status: int = 500,
        reason: str = "InternalError",
        times: int = 1,
        match: Match | None = None,
        method: str = "",
        path: str = "",
        after_write: bool = False,
    ) -> None:
        """Answer the `call`-th matching call with an error Status."""
        document = errors.failure(status, reason, f"injected fault: {reason}")
        chosen = match or matching(method=method, path=path)
        self._faults.append(Fault(call, chosen, times, status=document, after_write=after_write))

    def break_call(
        self,
        call: int = 1,
        *,
        times: int = 1,
        match: Match | None = None,
        method: str = "",
        path: str = "",
        after_write: bool = False,
        exception: Exception | None = None,
    ) -> None:
        """Lose the connection at the `call`-th matching call, before or after the server did its work."""
        problem = exception or ConnectionResetError("injected fault: connection reset")
        chosen = match or matching(method=method, path=path)
        self._faults.append(Fault(call, chosen, times, exception=problem, after_write=after_write))

    def delay_call(
        self,
        call: int = 1,
        *,
        seconds: float,
        times: int = 1,
        match: Match | None = None,
        method: str = "",
        path: str = "",
    ) -> None:
        """Let the `call`-th matching call wait on the clock before the server sees it."""
        chosen = match or matching(method=method, path=path)
        self._faults.append(Fault(call, chosen, times, delay_seconds=seconds))

    def clear(self) -> None:
        self._faults.clear()

    def striking(self, request: Request) -> list[Fault]:
        return [fault for fault in self._faults if fault.strikes(request)]


def matching(*, method: str = "", path: str = "") -> Match:
    """Calls with this method and with this text in their path; empty means any."""
    return lambda request: (not method or request.method == method) and path in request.path


@dataclass(frozen=True, slots=True)
class InProcessResponse:
    """A complete answer."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Json:
        return decode_object(self.body)


class InProcessStream:
    """An answer that goes on: iterate for chunks of bytes, close when done."""

    def __init__(self, status: int, headers: dict[str, str], stream: WatchStream | None, body: bytes) -> None:
        self.status = status
        self.headers = headers
        self._stream = stream
        self._body = body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self._body:
            yield self._body
        if self._stream is not None:
            async for batch in self._stream:
                yield batch

    async def lines(self) -> AsyncIterator[bytes]:
        """The stream cut at newlines: one watch event each."""
        async for chunk in self:
            for line in chunk.splitlines():
                yield line

    async def aclose(self) -> None:
        if self._stream is not None:
            self._stream.close()


class InProcessTransport:
    """Talks to an `Api` in the same process."""

    def __init__(self, api: Api, *, token: str = "") -> None:
        self._api = api
        self._token = token
        self.faults = Faults()
        self.calls = 0

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | str = "",
        headers: Mapping[str, str] | None = None,
        body: bytes | Json = b"",
    ) -> InProcessResponse:
        """One call; a watch must be opened with `stream`."""
        answer = await self._call(method, path, query, headers, body)
        if answer.stream is not None:
            answer.stream.close()
            raise ValueError(f"{method} {path} is a watch; open it with `stream`")
        return InProcessResponse(answer.status, _headers(answer), answer.body)

    async def stream(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | str = "",
        headers: Mapping[str, str] | None = None,
        body: bytes | Json = b"",
    ) -> InProcessStream:
        """One call whose answer is read piece by piece."""
        answer = await self._call(method, path, query, headers, body)
        return InProcessStream(answer.status, _headers(answer), answer.stream, answer.body)

    def cut_watches(self, resource: str = "") -> int:
        """End open watches as a broken network would; answers how many."""
        return self._api.reader.cut_watches(resource)

    def compact(self) -> None:
        """Forget the history, so that watches that resume get 410 Expired."""
        self._api.store.compact()

    async def _call(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | str,
        headers: Mapping[str, str] | None,
        body: bytes | Json,
    ) -> Answer:
        await asyncio.sleep(0)  # a call is never instantaneous: others get their turn, as on a network
        path, _, inline = path.partition("?")
        parameters = parse_query(query or inline) if isinstance(query, str) else dict(query)
        sent = {name.lower(): value for name, value in (headers or {}).items()}
        sent.setdefault("authorization", f"Bearer {self._token}")
        payload = body if isinstance(body, bytes) else encode(body)
        request = Request(method, path, parameters, sent, payload)
        self.calls += 1
        return await self._with_faults(request)

    async def _with_faults(self, request: Request) -> Answer:
        faults = self.faults.striking(request)
        for fault in faults:
            if fault.delay_seconds:
                await self._api.clock.sleep(fault.delay_seconds)
        failing = next((fault for fault in faults if fault.status or fault.exception), None)
        if failing is None:
            return self._api.handle(request)
        if failing.after_write:
            lost = self._api.handle(request)
            if lost.stream is not None:
                lost.stream.close()
        if failing.exception is not None:
            raise failing.exception
        return error_answer(errors.ApiError(failing.status or {}))


def _headers(answer: Answer) -> dict[str, str]:
    return {"content-type": answer.content_type} | {name.lower(): value for name, value in answer.headers}
