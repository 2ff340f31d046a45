"""The live screen, drawn from figures."""

from __future__ import annotations

import asyncio
from io import StringIO

from rich.console import Console

from bayplan.cli.output import CommandError
from bayplan.cli.top import Figures, News, draw_screen
from bayplan.explain.model import PendingBoard
from bayplan.explain.pages.decision_log import DecisionGroup, LogPage
from bayplan.explain.pages.overview import Overview
from bayplan.explain.pages.timeline import TimelinePage
from bayplan.observe.clock import VirtualClock


def test_the_line_of_what_waits_has_the_pods_of_its_number_and_refusals_have_reasons() -> None:
    """Active, backing off and gated pods together, as in the figure beside it."""
    overview = Overview(
        time=3.0,
        nodes=3,
        pods=1,
        queue={"active": 0, "backoff": 1, "gated": 2, "unschedulable": 0},
        in_flight=0,
        attempts=1,
        bound=1,
        failed=0,
        arriving_per_second=0.0,
        bound_per_second=0.0,
        p50_ms=1.0,
        p99_ms=1.0,
        used={},
        reloads=0,
        profiles=["default-scheduler"],
    )
    nothing = [0, 0, 0]
    timeline = TimelinePage(
        span="5m",
        step_seconds=1.0,
        time=[1.0, 2.0, 3.0],
        active=nothing,
        backoff=[0, 1, 1],
        gated=[0, 0, 2],
        unschedulable=nothing,
        in_flight=nothing,
        arriving=[0.0] * 3,
        bound=[0.0] * 3,
        failed=[0.0] * 3,
        p50=[None] * 3,
        p99=[None] * 3,
        used={},
    )
    refused = DecisionGroup(
        template="ml/gang", outcome="unschedulable", reason="Permit Coscheduling: too few", node="n1", last=1.0
    )
    refused.pods = refused.nodes = 4
    log = LogPage(matching=1, looked_at=4, kept=4, dropped=0, groups=[refused], namespaces={}, outcomes={})
    console = Console(width=100, file=StringIO())
    for piece in draw_screen(overview, timeline, log, PendingBoard(verdict=""), height=20, width=100):
        console.print(piece)
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    waiting = next(line for line in lines if line.startswith("waiting"))

    assert waiting.split() == ["waiting", "3", "▁▃█"]
    assert "4 × ml/gang   unschedulable   Permit Coscheduling: too few" in lines[-1]
    assert lines[0].strip() == "3 nodes, 1 pod on them"


async def test_the_notice_says_how_old_the_figures_are_and_why() -> None:
    clock, woken = VirtualClock(), asyncio.Event()
    news = News("http://127.0.0.1:1", clock)
    answers: list[asyncio.Future[Figures]] = [asyncio.get_running_loop().create_future() for _ in range(4)]
    waiting = iter(answers)
    following = asyncio.create_task(news.follow(lambda: next(waiting), 1.0, woken))
    await clock.run_for(2.0)
    early = news.notice()
    await clock.run_for(3.0)
    first = news.notice()
    answers[0].set_result(Figures(*[None] * 4))  # type: ignore[arg-type]  # only that there are some matters here
    await clock.run_for(0.5)
    answered = news.notice()
    await clock.run_for(5.5)
    silent = news.notice()
    answers[1].set_exception(CommandError("it is\x1b gone"))
    await clock.run_for(0.5)
    gone = news.notice()
    following.cancel()

    assert (early, answered) == ("", "")
    assert first == "http://127.0.0.1:1 has been silent for 5 s"
    assert silent == "6 s old: http://127.0.0.1:1 has been silent for 5 s"
    assert gone == "6 s old: it is\\x1b gone"
