"""The HTTP side: every path answers, and what is asked wrongly is said to be wrong."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
from tests.unit.explain.stage import Stage, raw_pod, staged

from bayplan.server import ServerOptions, ServerParts, serve


@asynccontextmanager
async def served(stage: Stage) -> AsyncIterator[tuple[str, aiohttp.ClientSession]]:
    parts = ServerParts(routes=stage.explaining.routes())
    async with (
        serve(ServerOptions(port=0, is_plain_http=True), parts) as serving,
        aiohttp.ClientSession() as session,
    ):
        yield serving.url, session


async def test_every_question_has_an_answer() -> None:
    web, big = "explain/pod/default/web", "explain/pod/default/big"
    paths = ["overview", "nodes", "plugins", "config", "pending", "pending?change=true", "decisions"]
    paths += ["pods", "pods?q=w&namespace=default&state=placed,gated&sort=age&offset=0&limit=5", "search?q=we&limit=3"]
    paths += [
        "log?outcome=bound",
        "log/decisions?template=default/web&reason=",
        "preemptions?limit=5",
        "timeline?span=1h",
    ]
    paths += ["nodes?resource=memory"]
    paths += ["decisions?pod=default/web&limit=3", web, f"{web}?full=true", f"{web}/changes", big, f"{big}/changes"]
    async with staged() as stage:
        await stage.create(raw_pod("web"), raw_pod("big", cpu="900"))
        await stage.settled(bound=1, failed=1)
        async with served(stage) as (url, session):
            for path in paths:
                async with session.get(f"{url}/bayplan/v1/{path}") as response:
                    body = await response.json()
                    assert response.status == 200, (path, body)
            node = stage.explaining.service.explain_pod("default/web").node
            async with session.get(f"{url}/bayplan/v1/explain/node/{node}") as response:
                assert (await response.json())["node"] == node


async def test_wrong_questions_are_told_what_is_wrong() -> None:
    async with staged(1) as stage, served(stage) as (url, session):
        for path, status, message in (
            ("explain/pod/default/nobody", 404, "no pod `default/nobody`"),
            ("explain/node/nowhere", 404, "no node `nowhere`"),
            ("decisions?limit=many", 400, "`limit` is a number"),
            ("pods?sort=colour", 400, "`sort` is one of name, age, waiting"),
            ("pods?offset=-1", 400, "`offset` is a number"),
            (f"search?q={'x' * 600}", 400, "`q` is limited to 512 characters"),
            ("timeline?span=1y", 400, "`span` is one of 5m, 1h, 1d"),
        ):
            async with session.get(f"{url}/bayplan/v1/{path}") as response:
                body = await response.json()
                assert (response.status, body["kind"]) == (status, "Status")
                assert message in body["message"]
        for scenario in (b"nonsense", b'{"drian": []}', b'{"drain": ["nowhere"]}', b"[" * 5000):
            async with session.post(f"{url}/bayplan/v1/whatif", data=scenario) as response:
                assert response.status == 400, await response.text()


async def test_a_scenario_is_played() -> None:
    async with staged(2) as stage:
        await stage.create(raw_pod("big", cpu="900"))
        await stage.settled(failed=1)
        async with (
            served(stage) as (url, session),
            session.post(f"{url}/bayplan/v1/whatif", json={"disable": ["NodeResourcesFit"]}) as response,
        ):
            answer = await response.json()

    assert answer["verdict"] == "The pod would be placed, on 1 node."


async def test_live_figures_stream() -> None:
    async with (
        staged(3) as stage,
        served(stage) as (url, session),
        session.get(f"{url}/bayplan/v1/events") as response,
    ):
        assert response.content_type == "text/event-stream"
        lines = [await response.content.readline() for _ in range(4)]

    assert lines[2] == b"event: overview\n"
    assert json.loads(lines[3].removeprefix(b"data: "))["nodes"] == 3


async def test_the_dashboard_is_served_under_a_strict_policy() -> None:
    async with staged(1) as stage, served(stage) as (url, session):
        for path in (
            "/",
            "/dashboard",
            "/dashboard/",
            "/dashboard/app.js",
            "/dashboard/parts.css",
            "/dashboard/pages/pod.js",
        ):
            async with session.get(url + path) as response:
                policy = response.headers["content-security-policy"]
                assert response.status == 200
                assert "default-src 'none'" in policy and "unsafe" not in policy
        async with session.get(f"{url}/dashboard/../options.py") as response:
            assert response.status in (400, 404)
