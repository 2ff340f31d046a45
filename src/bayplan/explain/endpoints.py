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

Routes for whoever serves them: `bayplan.server` in a cluster, behind its authentication, and `bayplan up`. What is
asked wrongly is answered with a Status that says so. Only reads; a what-if is played on a copy.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from math import inf
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from bayplan.explain.admission import Admit, ClientGone, Handler, QuestionAdmission, QuestionLimits
from bayplan.explain.pages.answers import PageAnswers, number_in, text_in
from bayplan.explain.service import ExplainService, NotReady, UnknownObject
from bayplan.explain.whatif import ScenarioError, read_scenario
from bayplan.observe.clock import Clock
from bayplan.observe.redaction import redacted
from bayplan.server.answers import Refusal

__all__ = ["PREFIX", "explain_routes"]

PREFIX = "/bayplan/v1"
_MOST_DECISIONS = 1000
_EVERY_SECONDS = 1.0
_encode = msgspec.json.Encoder().encode
_NOBODY_LISTENS = 499


def explain_routes(service: ExplainService, clock: Clock) -> list[BaseRoute]:
    """To be given to `ServerParts.routes`, or to any Starlette router."""
    admission = QuestionAdmission(clock)
    pages = _Pages(service, clock, admission.limits)
    lists = PageAnswers(service)
    quick: dict[str, Handler] = {
        "/overview": pages.overview,
        "/nodes": lists.nodes,
        "/timeline": lists.timeline,
        "/config": pages.config,
        "/decisions": pages.decisions,
        "/explain/pod/{namespace}/{name}": pages.pod,
        "/explain/node/{name}": pages.node,
    }
    listing: dict[str, Handler] = {
        "/pods": lists.pods,
        "/search": lists.search,
        "/log": lists.log,
        "/log/decisions": lists.logged,
        "/preemptions": lists.preemptions,
        "/plugins": pages.plugins,
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
    async def answer(request: Request) -> Response:
        try:
            return Response(_encode(await admit(request, handler)), media_type="application/json")
        except ClientGone:
            return Response(status_code=_NOBODY_LISTENS)
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

    async def overview(self, request: Request) -> Any:
        return self._service.overview()

    async def plugins(self, request: Request) -> Any:
        reloads = [{"time": time, "what": what, "problems": problems} for time, what, problems in self._service.reloads]
        return {"plugins": await self._service.plugins(), "reloads": reloads}

    async def config(self, request: Request) -> Any:
        return redacted(msgspec.to_builtins(self._service.config()))

    async def pending(self, request: Request) -> Any:
        namespace = text_in(request, "namespace")
        return await self._service.pending(with_change=_flag(request, "change"), namespace=namespace)

    async def decisions(self, request: Request) -> Any:
        limit = number_in(request, "limit", 100, most=_MOST_DECISIONS)
        pod = request.query_params.get("pod", "")
        recorder = self._service.recorder
        return recorder.of_pod(pod, most=limit) if pod else recorder.latest(limit)

    async def pod(self, request: Request) -> Any:
        key = _key(request)
        decision = await self._service.ask_extenders(key)
        return self._service.explain_pod(key, in_full=_flag(request, "full"), decision=decision)

    async def changes(self, request: Request) -> Any:
        return await self._service.changes(_key(request))

    async def node(self, request: Request) -> Any:
        return self._service.explain_node(request.path_params["name"])

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


def _key(request: Request) -> str:
    return f"{request.path_params['namespace']}/{request.path_params['name']}"


def _flag(request: Request, name: str) -> bool:
    return request.query_params.get(name, "").lower() in ("1", "true", "yes")
