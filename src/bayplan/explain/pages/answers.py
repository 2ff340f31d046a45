"""The questions of pages, read from requests: filters, offsets and limits, each checked, and the answers to them."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request

from bayplan.app.live import LiveScheduler
from bayplan.explain.pages.decision_log import LogQuery, decisions_of, group_log
from bayplan.explain.pages.heat import HeatMaps
from bayplan.explain.pages.pod_list import PodFilter, find_by_name, list_pods
from bayplan.explain.pages.preemptions import IsThere, list_preemptions
from bayplan.explain.pages.timeline import SPANS
from bayplan.explain.service import ExplainService
from bayplan.server.answers import Refusal

__all__ = ["PageAnswers", "choice_in", "number_in", "text_in"]

_LONGEST_TEXT = 512
_MOST_ROWS = 200
_MOST_FOUND = 20
_SORTS = ("name", "age", "waiting")


class PageAnswers:
    def __init__(self, service: ExplainService) -> None:
        self._service = service
        self._heat = HeatMaps()

    async def pods(self, request: Request) -> Any:
        query = PodFilter(
            text=text_in(request, "q").strip(),
            namespace=text_in(request, "namespace"),
            states=frozenset(filter(None, text_in(request, "state").split(","))),
            node=text_in(request, "node"),
            reason=text_in(request, "reason"),
            sort=choice_in(request, "sort", _SORTS),
            offset=number_in(request, "offset", 0, least=0, most=10**9),
            limit=number_in(request, "limit", 50, most=_MOST_ROWS),
        )
        return await self._service.listed(lambda live: list_pods(live, query))

    async def search(self, request: Request) -> Any:
        text = text_in(request, "q").strip()
        limit = number_in(request, "limit", 8, most=_MOST_FOUND)
        return await self._service.listed(lambda live: find_by_name(live, text, limit=limit))

    async def log(self, request: Request) -> Any:
        recorder, query = self._service.recorder, _log_query(request)
        return await self._service.listed(lambda _: group_log(recorder, query))

    async def logged(self, request: Request) -> Any:
        recorder, query = self._service.recorder, _log_query(request)
        return await self._service.listed(lambda _: decisions_of(recorder, query))

    async def preemptions(self, request: Request) -> Any:
        recorder = self._service.recorder
        offset = number_in(request, "offset", 0, least=0, most=10**9)
        limit = number_in(request, "limit", 50, most=_MOST_ROWS)
        return await self._service.listed(
            lambda live: list_preemptions(recorder, offset=offset, limit=limit, is_there=_presence(live))
        )

    async def timeline(self, request: Request) -> Any:
        return self._service.timeline.page(choice_in(request, "span", tuple(SPANS)))

    async def nodes(self, request: Request) -> Any:
        return self._heat.of(self._service.live, text_in(request, "resource"))


def _presence(live: LiveScheduler) -> IsThere:
    def is_there(key: str, uid: str) -> bool:
        namespace, _, name = key.rpartition("/")
        pod = live.watching.pod(namespace, name)
        return pod is not None and pod.metadata.uid == uid

    return is_there


def _log_query(request: Request) -> LogQuery:
    return LogQuery(
        text=text_in(request, "q").strip(),
        namespace=text_in(request, "namespace"),
        outcome=text_in(request, "outcome"),
        node=text_in(request, "node"),
        template=text_in(request, "template"),
        reason=text_in(request, "reason", longest=8192) if "reason" in request.query_params else None,
        offset=number_in(request, "offset", 0, least=0, most=10**9),
        limit=number_in(request, "limit", 50, most=_MOST_ROWS),
    )


def text_in(request: Request, name: str, *, longest: int = _LONGEST_TEXT) -> str:
    text = request.query_params.get(name, "")
    if len(text) > longest:
        raise Refusal(400, f"`{name}` is limited to {longest} characters")
    return text


def choice_in(request: Request, name: str, choices: tuple[str, ...]) -> str:
    """The first choice where none is named."""
    text = request.query_params.get(name, "") or choices[0]
    if text not in choices:
        raise Refusal(400, f"`{name}` is one of {', '.join(choices)}")
    return text


def number_in(request: Request, name: str, default: int, *, least: int = 1, most: int) -> int:
    text = request.query_params.get(name, str(default))
    if not text.isascii() or not text.isdecimal() or len(text) > 10:
        raise Refusal(400, f"`{name}` is a number from {least} to {most}")
    return max(least, min(int(text), most))
