"""Questions over HTTP take a bounded part of the scheduler's thread, however many and however large they are."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from tests.unit.explain.stage import Stage, raw_pod, staged
from tests.waiting import until

from bayplan.api.node import Node
from bayplan.explain.http.admission import QuestionAdmission, QuestionLimits
from bayplan.explain.http.endpoints import PREFIX
from bayplan.explain.whatif import scenario
from bayplan.explain.whatif.templates import twins_of
from bayplan.observe.clock import SystemClock
from bayplan.observe.time_slices import Turns
from bayplan.server import ServerOptions, ServerParts, serve
from bayplan.server.connected import ClientGone

HUGE = b'{"addNodes": [{"like": "%s", "count": 10000}]}'


def endless(stage: Stage) -> bytes:
    """A question that takes many seconds: 9,000 pods on as many nodes."""
    like = next(iter(stage.local.live.cache.cluster.nodes.row_of)).encode()
    pod = b'{"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}]}}'
    return b'{"addNodes": [{"like": "%s", "count": 9000}], "addPods": [{"count": 9000, "pod": %s}]}' % (like, pod)


async def asked(url: str, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
    reader, writer = await opened(url, method, path, body)
    try:
        answer = await reader.read()
    finally:
        writer.close()
    head, _, rest = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), rest


async def opened(
    url: str, method: str, path: str, body: bytes = b""
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, _, port = url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    head = (
        f"{method} {path} HTTP/1.1\r\nhost: {host}:{port}\r\nconnection: close\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    writer.write(head.encode() + body)
    await writer.drain()
    return reader, writer


@asynccontextmanager
async def served(stage: Stage) -> AsyncIterator[str]:
    parts = ServerParts(routes=stage.explaining.routes())
    async with serve(ServerOptions(port=0, is_plain_http=True), parts) as serving:
        yield serving.url


@pytest.mark.parametrize("count", [-5, 0, 10_001, 10**30])
async def test_a_count_that_makes_no_sense_is_refused(count: int) -> None:
    async with staged(1) as stage, served(stage) as url:
        for body in (
            b'{"addNodes": [{"like": "node-0", "count": %d}]}' % count,
            b'{"addPods": [{"pod": {}, "count": %d}]}' % count,
        ):
            status, answer = await asked(url, "POST", f"{PREFIX}/whatif", body)

            assert (status, b"count" in answer) == (400, True)


async def test_a_scenario_of_a_megabyte_is_refused() -> None:
    async with staged(1) as stage, served(stage) as url:
        status, _ = await asked(url, "POST", f"{PREFIX}/whatif", b'{"drain": ["%s"]}' % (b"x" * 2**20))

    assert status == 413


async def test_pods_are_bound_and_probes_answered_while_ten_thousand_nodes_are_added() -> None:
    async with staged(3) as stage, served(stage) as url:
        like = next(iter(stage.local.live.cache.cluster.nodes.row_of))
        question = asyncio.create_task(asked(url, "POST", f"{PREFIX}/whatif", HUGE % like.encode()))
        assert (await asked(url, "GET", "/livez"))[0] == 200
        assert not question.done()
        for number in range(5):
            await stage.create(raw_pod(f"web-{number}"))
        await stage.settled(bound=5)

        status, answer = await question
        assert (status, b'"nodeCount":10003' in answer) == (200, True)


async def test_pods_are_bound_while_a_question_that_takes_long_is_at_work(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = asyncio.Event()

    def noted(*given: Any, **named: Any) -> Iterator[Node]:
        begun.set()
        return twins_of(*given, **named)

    monkeypatch.setattr(scenario, "twins_of", noted)
    async with staged(3) as stage, served(stage) as url:
        question = asyncio.create_task(asked(url, "POST", f"{PREFIX}/whatif", endless(stage)))
        await begun.wait()
        for number in range(5):
            await stage.create(raw_pod(f"web-{number}"))
        await stage.settled(bound=5)

        assert not question.done()
        question.cancel()
        await asyncio.gather(question, return_exceptions=True)


async def test_a_question_ends_with_the_client_that_asked_it() -> None:
    async with staged(1) as stage, served(stage) as url:
        _, writer = await opened(url, "POST", f"{PREFIX}/whatif", endless(stage))
        waiting = asyncio.create_task(asked(url, "POST", f"{PREFIX}/whatif", b"{}"))
        await asyncio.sleep(0.1)
        assert not waiting.done()
        writer.close()

        async with asyncio.timeout(15):
            status, _ = await waiting
        assert status == 200


class _Bench:
    """One page behind an admission, and a client."""

    def __init__(self, limits: QuestionLimits) -> None:
        self.turns = Turns()
        self.admission = QuestionAdmission(SystemClock(), lambda: self.turns, limits)
        self.let_go = asyncio.Event()
        self.at_work = self.most_at_work = self.asked = self.answered = 0

    async def work(self, request: Request) -> str:
        self.at_work += 1
        self.most_at_work = max(self.most_at_work, self.at_work)
        try:
            await self.let_go.wait()
        finally:
            self.at_work -= 1
        self.answered += 1
        return "done"

    async def page(self, request: Request) -> Response:
        self.asked += 1
        admit = self.admission.quick if request.url.path == "/quick" else self.admission.long("one")
        try:
            return JSONResponse(await admit(request, self.work))
        except ClientGone:
            return Response(status_code=499)

    @asynccontextmanager
    async def served(self) -> AsyncIterator[str]:
        parts = ServerParts(routes=[Route("/quick", self.page), Route("/long", self.page)])
        async with serve(ServerOptions(port=0, is_plain_http=True), parts) as serving:
            yield serving.url


@pytest.mark.parametrize("path", ["/quick", "/long"])
async def test_questions_wait_for_each_other_and_too_many_are_sent_away(path: str) -> None:
    bench = _Bench(QuestionLimits(quick_waiting=2, long_waiting=2))
    async with bench.served() as url:
        tasks: set[asyncio.Task[Any]] = {asyncio.create_task(asked(url, "GET", path)) for _ in range(5)}
        refused: set[asyncio.Task[Any]] = set()
        while len(refused) < 2:
            done, tasks = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            refused |= done
        bench.let_go.set()
        answers = [await task for task in tasks]

    assert [task.result()[0] for task in refused] == [429, 429]
    assert [status for status, _ in answers] == [200, 200, 200]
    assert bench.most_at_work == 1


@pytest.mark.parametrize("path", ["/quick", "/long"])
async def test_clients_that_wait_for_one_answer_share_one_that_was_begun_after_they_asked(path: str) -> None:
    bench = _Bench(QuestionLimits())
    async with bench.served() as url:
        first = asyncio.create_task(asked(url, "GET", path))
        await until(lambda: bench.at_work == 1)
        others = [asyncio.create_task(asked(url, "GET", path)) for _ in range(4)]
        different = asyncio.create_task(asked(url, "GET", f"{path}?other"))
        await until(lambda: bench.asked == 6)
        bench.let_go.set()
        statuses = [(await task)[0] for task in (first, *others, different)]

    assert statuses == [200] * 6
    assert bench.answered == 3


async def test_a_question_that_takes_too_long_is_given_up() -> None:
    bench = _Bench(QuestionLimits(long_seconds=0.05))
    async with bench.served() as url:
        status, answer = await asked(url, "GET", "/long")

    assert (status, b"more than 0.05 s" in answer) == (503, True)
    assert bench.at_work == 0
