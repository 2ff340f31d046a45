"""Explanations over HTTP: JSON under /bayplan/v1, live figures as server-sent events.

    GET  /bayplan/v1/overview                      GET  /bayplan/v1/nodes[?resource=]
    GET  /bayplan/v1/events                        GET  /bayplan/v1/plugins
    GET  /bayplan/v1/pods[?q=&namespace=&state=&node=&reason=&sort=&offset=&limit=]
    GET  /bayplan/v1/search?q=[&limit=]            GET  /bayplan/v1/timeline[?span=5m|1h|1d]
    GET  /bayplan/v1/log[?q=&namespace=&outcome=&node=&offset=&limit=]
    GET  /bayplan/v1/log/decisions[?template=&outcome=&reason=&offset=&limit=]
    GET  /bayplan/v1/preemptions[?offset=&limit=]
    GET  /bayplan/v1/pending[?change=true&namespace=]       GET  /bayplan/v1/config
    GET  /bayplan/v1/decisions[?pod=&limit=]       POST /bayplan/v1/whatif
    GET  /bayplan/v1/explain/pod/{namespace}/{name}[?full=true]
    GET  /bayplan/v1/explain/pod/{namespace}/{name}/changes
    GET  /bayplan/v1/explain/node/{name}

The routes are served by `bayplan.server` in a cluster, behind its authentication, and `bayplan up`. A
malformed request is answered with a Status that says what is wrong. Only reads; a what-if is played on a copy.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from math import inf
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from bayplan.explain.http.admission import Admit, Handler, QuestionAdmission, QuestionLimits
from bayplan.explain.pages.answers import PageAnswers, number_in, text_in
from bayplan.explain.service import ExplainService, NotReady, UnknownObject
from bayplan.explain.whatif.scenario import ScenarioError, read_scenario
from bayplan.loop.notes import Note, Restored
from bayplan.observe.clock import Clock
from bayplan.observe.redaction import redacted
from bayplan.observe.time_slices import Work
from bayplan.server.answers import Refusal
from bayplan.server.connected import CLIENT_CLOSED_REQUEST, ClientGone

__all__ = ["PREFIX", "explain_routes"]

PREFIX = "/bayplan/v1"
_MOST_DECISIONS = 1000
_RECORDS_AT_A_TIME = 10
_EVERY_SECONDS = 1.0
_encode = msgspec.json.Encoder().encode


def explain_routes(service: ExplainService, clock: Clock) -> list[BaseRoute]:
    """To be given to `ServerParts.routes`, or to any Starlette router."""
    admission = QuestionAdmission(clock, lambda: service.turns)
    pages = _Pages(service, clock, admission.limits)
    lists = PageAnswers(service)
    quick: dict[str, Handler] = {
        "/overview": pages.overview,
        "/nodes": lists.nodes,
        "/timeline": lists.timeline,
        "/config": pages.config,
        "/explain/pod/{namespace}/{name}": pages.pod,
    }
    listing: dict[str, Handler] = {
        "/pods": lists.pods,
        "/search": lists.search,
        "/log": lists.log,
        "/log/decisions": lists.logged,
        "/preemptions": lists.preemptions,
        "/plugins": pages.plugins,
        "/decisions": pages.decisions,
        "/explain/node/{name}": pages.node,
    }
    changes, on_copy = "/explain/pod/{namespace}/{name}/changes", admission.long("on a copy")
    in_turn = admission.long("lists")
    routes: list[BaseRoute] = [
        *(Route(PREFIX + path, _answering(handler, admission.quick)) for path, handler in quick.items()),
        *(Route(PREFIX + path, _answering(handler, in_turn)) for path, handler in listing.items()),
        Route(f"{PREFIX}/pending", _answering(pages.pending, admission.long("pending"))),
        Route(PREFIX + changes, _answering(pages.changes, on_copy)),
        Route(f"{PREFIX}/whatif", _answering(pages.whatif, on_copy), methods=["POST"]),
    ]
    routes.append(Route(f"{PREFIX}/events", pages.events))
    return routes


def _answering(handler: Handler, admit: Admit) -> Callable[[Request], Awaitable[Response]]:
    async def encoded(request: Request) -> bytes:
        return _encode(await handler(request))

    async def answer(request: Request) -> Response:
        try:
            return Response(await admit(request, encoded), media_type="application/json")
        except ClientGone:
            return Response(status_code=CLIENT_CLOSED_REQUEST)
        except UnknownObject as error:
            raise Refusal(404, str(error.args[0])) from error
        except NotReady as error:
            raise Refusal(503, str(error), headers={"retry-after": "1"}) from error
        except ScenarioError as error:
            raise Refusal(400, str(error)) from error

    return answer


class _Pages:
    def __init__(self, service: ExplainService, clock: Clock, limits: QuestionLimits) -> None:
        self._service = service
        self._clock = clock
        self._limits = limits
        self._tick: tuple[float, bytes] = (-inf, b"")
        self._config: tuple[object, Any] = (None, None)
        """The configuration at work, and the page about it."""

    async def overview(self, request: Request) -> Any:
        return self._service.overview()

    async def plugins(self, request: Request) -> Any:
        reloads = [{"time": time, "what": what, "problems": problems} for time, what, problems in self._service.reloads]
        return {"plugins": await self._service.plugins(), "reloads": reloads}

    async def config(self, request: Request) -> Any:
        settings = self._service.settings
        if self._config[0] is not settings:
            self._config = (settings, redacted(msgspec.to_builtins(self._service.config())))
        return self._config[1]

    async def pending(self, request: Request) -> Any:
        namespace = text_in(request, "namespace")
        return await self._service.pending(with_change=_flag(request, "change"), namespace=namespace)

    async def decisions(self, request: Request) -> Any:
        limit = number_in(request, "limit", 100, most=_MOST_DECISIONS)
        pod = request.query_params.get("pod", "")
        recorder = self._service.recorder
        if pod:
            return recorder.of_pod(pod, most=limit)
        return await self._service.listed(lambda _: _encoded_records(recorder.newest(limit)))

    async def pod(self, request: Request) -> Any:
        key = _key(request)
        decision = await self._service.ask_extenders(key)
        return self._service.explain_pod(key, in_full=_flag(request, "full"), decision=decision)

    async def changes(self, request: Request) -> Any:
        return await self._service.changes(_key(request))

    async def node(self, request: Request) -> Any:
        return await self._service.listed(lambda _: self._service.explaining_node(request.path_params["name"]))

    async def whatif(self, request: Request) -> Any:
        scenario = await request.body()
        if len(scenario) > self._limits.scenario_bytes:
            raise Refusal(413, f"a scenario is limited to {self._limits.scenario_bytes} bytes")
        return await self._service.whatif(read_scenario(scenario))

    async def events(self, request: Request) -> Response:
        return StreamingResponse(self._ticks(), media_type="text/event-stream", headers={"cache-control": "no-store"})

    async def _ticks(self) -> AsyncIterator[bytes]:
        """The overview once a second. A client that has gone away ends it."""
        yield b"retry: 2000\n\n"
        while True:
            try:
                yield self._overview_event()
            except NotReady:
                yield b": not ready\n\n"
            await self._clock.sleep(_EVERY_SECONDS)

    def _overview_event(self) -> bytes:
        """Made once in a while, however many clients listen."""
        made_at, event = self._tick
        now = self._clock.monotonic()
        if now >= made_at + _EVERY_SECONDS / 2:
            event = b"event: overview\ndata: " + _encode(self._service.overview()) + b"\n\n"
            self._tick = (now, event)
        return event


def _encoded_records(notes: Sequence[Note | Restored]) -> Work[msgspec.Raw]:
    """As a list of all of them; made and encoded a few at a time."""
    pieces = []
    for start in range(0, len(notes), _RECORDS_AT_A_TIME):
        pieces.append(_encode([note.record() for note in notes[start : start + _RECORDS_AT_A_TIME]])[1:-1])
        yield
    return msgspec.Raw(b"[" + b",".join(pieces) + b"]")


def _key(request: Request) -> str:
    return f"{request.path_params['namespace']}/{request.path_params['name']}"


def _flag(request: Request, name: str) -> bool:
    return request.query_params.get(name, "").lower() in ("1", "true", "yes")
