"""Pods that got a node and were refused before they were bound, at each extension point: what each surface says."""

from __future__ import annotations

import io
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from rich.console import Console
from tests.unit.explain.stage import Stage, raw_pod, staged

from bayplan.explain.claims.pods import NothingHelps, RefusedLater
from bayplan.explain.model import Changes, PodExplanation
from bayplan.explain.terminal.decision_printer import DecisionPrinter
from bayplan.explain.terminal.explanations import draw_changes, draw_pod
from bayplan.server import ServerOptions, ServerParts, serve

PLUGIN = '''
from bayplan.framework import Error, Plugin, Skip, Unschedulable, Wait

class Mute(Exception):
    def __str__(self):
        raise RuntimeError("no text")

class Licences(Plugin):
    """Refuses every pod at one extension point."""

    def events_to_register(self):
        return []

    {method}(self, state, pod, node_name):
        {answer}
'''
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
podInitialBackoffSeconds: 600
podMaxBackoffSeconds: 600
profiles:
- plugins:
    multiPoint:
      enabled: [{name: Licences}]
"""
BINDS = (
    CONFIG
    + """    bind:
      disabled: [{name: DefaultBinder}]
"""
)
POINTS = {
    "Reserve": "def reserve",
    "Permit": "def permit",
    "PreBind": "async def pre_bind",
    "Bind": "async def bind",
}
REFUSES, FAILS = 'return Unschedulable("no licence is free")', 'raise RuntimeError("the licence server is down")'
PODS, EVENTS = "/api/v1/namespaces/default/pods", "/apis/events.k8s.io/v1/namespaces/default/events"


@asynccontextmanager
async def refusing(point: str, folder: Path, answer: str = REFUSES) -> AsyncIterator[tuple[Stage, list[str]]]:
    """A pod that was refused once, and the log of `bayplan up`."""
    (folder / "licences.py").write_text(PLUGIN.replace("{method}", POINTS[point]).replace("{answer}", answer))
    (folder / "config.yaml").write_text(BINDS if point == "Bind" else CONFIG)
    log: list[str] = []
    printer = DecisionPrinter(log.append)
    async with staged(
        2, config=folder / "config.yaml", plugins=[str(folder / "licences.py")], observers=[printer]
    ) as stage:
        await stage.create(raw_pod("web"))
        service = stage.explaining.service
        await stage.until(lambda: any(record.stopped_at for record in service.recorder.of_pod("default/web")))
        await stage.until(lambda: stage.local.live.queue.place_of("default/web") is not None)
        yield stage, log


async def asked(stage: Stage, *paths: str) -> list[Any]:
    """What the browser gets."""
    parts = ServerParts(routes=stage.explaining.routes())
    async with (
        serve(ServerOptions(port=0, is_plain_http=True), parts) as serving,
        aiohttp.ClientSession() as session,
    ):
        return [await (await session.get(f"{serving.url}/bayplan/v1/{path}")).json() for path in paths]


def drawn(explanation: PodExplanation, changes: Changes) -> str:
    """What the terminal shows."""
    console = Console(file=io.StringIO(), width=140)
    for piece in (*draw_pod(explanation), *draw_changes(changes)):
        console.print(piece)
    assert isinstance(console.file, io.StringIO)
    return " ".join(console.file.getvalue().split())


async def condition_of(stage: Stage) -> dict[str, str]:
    pod = await stage.get(f"{PODS}/web")
    return next((each for each in pod["status"].get("conditions", ()) if each["type"] == "PodScheduled"), {})


@pytest.mark.parametrize("point", POINTS)
async def test_a_refusal_after_the_choice_is_told_as_what_it_is_on_every_surface(point: str, tmp_path: Path) -> None:
    """A pod that PreBind refuses is on its way again at once where nothing else waits, as in kube-scheduler."""
    async with refusing(point, tmp_path) as (stage, log):
        service = stage.explaining.service
        explained = service.explain_pod("default/web")
        changes = await service.changes("default/web")
        board = await service.pending()
        page, pending, decisions, grouped, pods = await asked(
            stage,
            "explain/pod/default/web",
            "pending",
            "decisions?pod=default/web",
            "log?outcome=unschedulable",
            "pods",
        )
        while not (condition := await condition_of(stage)):
            await stage.local.live.options.clock.sleep(0.01)
        while "FailedScheduling" not in (events := json.dumps(await stage.get(EVENTS))):
            await stage.local.live.options.clock.sleep(0.01)

    told = f"and then refused at {point} by Licences: no licence is free."
    # The log of `bayplan up`
    assert [line for line in log if line.endswith(told)], log
    # `bayplan explain`
    assert told in drawn(explained, changes)
    if explained.state == "pending":
        assert isinstance(explained.claim, RefusedLater) and explained.verdict.endswith(told)
        assert explained.decision is not None
        assert (explained.decision.stopped_at, explained.decision.stopped_by) == (point, "Licences")
    if point != "PreBind":
        assert isinstance(changes.suggestions[0].claim, NothingHelps) and not changes.schedulable
        assert f"refused at {point} by Licences" in changes.suggestions[0].sentence
    # `bayplan pending`
    assert board.causes[0].title == f"Licences at {point}: no licence is free"
    # The browser
    assert told in f"{page['verdict']} {page['note']}"
    assert pending["causes"][0]["title"] == board.causes[0].title
    assert (point, "no licence is free") in [(each.get("stoppedAt"), each.get("error")) for each in decisions]
    assert grouped["groups"][0]["reason"] == f"{point} Licences: no licence is free"
    assert pods["pods"][0]["state"] != "placed"
    # The pod's condition and events
    assert (condition["reason"], condition["status"]) == ("Unschedulable", "False")
    assert "no licence is free" in condition["message"]
    assert "no licence is free" in events


@pytest.mark.parametrize("point", POINTS)
async def test_a_plugin_that_fails_after_the_choice_is_told_as_what_it_is_on_every_surface(
    point: str, tmp_path: Path
) -> None:
    """An exception is no refusal: the pod backs off, and every surface names the plugin, the point and the error."""
    async with refusing(point, tmp_path, FAILS) as (stage, log):
        service = stage.explaining.service
        explained = service.explain_pod("default/web")
        changes = await service.changes("default/web")
        board = await service.pending()
        page, pending, decisions, grouped, pods = await asked(
            stage, "explain/pod/default/web", "pending", "decisions?pod=default/web", "log?outcome=error", "pods"
        )
        while not (condition := await condition_of(stage)):
            await stage.local.live.options.clock.sleep(0.01)
        while "FailedScheduling" not in (events := json.dumps(await stage.get(EVENTS))):
            await stage.local.live.options.clock.sleep(0.01)

    error = "RuntimeError: the licence server is down"
    told = f"and then failed at {point} in Licences: {error}."
    everything = [*log, drawn(explained, changes), json.dumps([page, pending, decisions, grouped])]
    assert not [text for text in everything if "refused at" in text]
    # The log of `bayplan up`
    assert [line for line in log if line.endswith(told)], log
    # `bayplan explain`
    assert told in drawn(explained, changes) and explained.verdict.endswith(told)
    assert isinstance(explained.claim, RefusedLater) and explained.claim.has_failed
    assert isinstance(changes.suggestions[0].claim, NothingHelps) and not changes.schedulable
    assert f"failed at {point} in Licences: {error}" in changes.suggestions[0].sentence
    # `bayplan pending`
    assert [cause.title for cause in board.causes] == [f"Licences failed at {point}: {error}"]
    # The browser
    assert page["verdict"] == explained.verdict
    assert pending["causes"][0]["title"] == board.causes[0].title
    in_full = f'running {point} plugin "Licences": {error}'
    assert (point, "Licences", in_full, "error") in [
        (each.get("stoppedAt"), each.get("stoppedBy"), each.get("error"), each["outcome"]) for each in decisions
    ]
    assert [group["reason"] for group in grouped["groups"]] == [f"{point} Licences: {error}"]
    assert pods["pods"][0]["state"] == "backoff"
    # The pod's condition and events
    assert (condition["reason"], condition["status"], condition["message"]) == ("SchedulerError", "False", in_full)
    assert json.dumps(in_full)[1:-1] in events


UNKNOWN = {
    "return 5": "WrongAnswer: plugin `Licences`: `{method}` returned 5 (int), expected `Status | None`",
    "return Skip()": "answered Skip, which means nothing there",
    "return Error()": "no reason given",
    "raise ValueError": "ValueError",
    "raise Mute": "Mute",
}
"""Answers that the contract does not know, answers and exceptions without a text, and what is said of them."""


@pytest.mark.parametrize(
    ("point", "answer"),
    [(point, answer) for point in POINTS for answer in UNKNOWN if (point, answer) != ("Bind", "return Skip()")],
)
async def test_a_wrong_answer_after_the_choice_is_told_with_what_is_wrong_about_it(
    point: str, answer: str, tmp_path: Path
) -> None:
    said = UNKNOWN[answer].replace("{method}", POINTS[point].split()[-1])
    async with refusing(point, tmp_path, answer) as (stage, log):
        explained = stage.explaining.service.explain_pod("default/web")
        board = await stage.explaining.service.pending()
        while not (condition := await condition_of(stage)):
            await stage.local.live.options.clock.sleep(0.01)
        while "FailedScheduling" not in (events := json.dumps(await stage.get(EVENTS))):
            await stage.local.live.options.clock.sleep(0.01)

    told = f"and then failed at {point} in Licences: {said}."
    assert [line for line in log if line.endswith(told)], log
    assert explained.verdict.endswith(told)
    assert [cause.title for cause in board.causes] == [f"Licences failed at {point}: {said}"]
    in_full = f'running {point} plugin "Licences": {said}'
    assert (condition["reason"], condition["message"]) == ("SchedulerError", in_full)
    assert json.dumps(in_full)[1:-1] in events


@pytest.mark.parametrize("point", POINTS)
async def test_a_refusal_without_a_reason_is_told_as_one(point: str, tmp_path: Path) -> None:
    async with refusing(point, tmp_path, "return Unschedulable()") as (stage, log):
        board = await stage.explaining.service.pending()
        while not (condition := await condition_of(stage)):
            await stage.local.live.options.clock.sleep(0.01)

    assert [line for line in log if line.endswith(f"refused at {point} by Licences: no reason given.")], log
    assert [cause.title for cause in board.causes] == [f"Licences at {point}: no reason given"]
    assert "no reason given" in condition["message"]


async def test_a_pod_that_every_bind_plugin_leaves_to_another_is_told_as_such(tmp_path: Path) -> None:
    async with refusing("Bind", tmp_path, "return Skip()") as (stage, log):
        explained = stage.explaining.service.explain_pod("default/web")
        board = await stage.explaining.service.pending()
        while not (condition := await condition_of(stage)):
            await stage.local.live.options.clock.sleep(0.01)

    told = "and then failed at Bind: no Bind plugin binds it."
    assert [line for line in log if line.endswith(told)], log
    assert explained.verdict.endswith(told)
    assert [cause.title for cause in board.causes] == ["failed at Bind: no Bind plugin binds it"]
    assert (condition["reason"], condition["message"]) == ("SchedulerError", "no Bind plugin binds it")


async def test_a_wait_at_permit_is_never_said_to_be_longer_than_it_can_be(tmp_path: Path) -> None:
    """Fifteen minutes are the most, and nothing waits for less than no time."""
    for asked, most in (("7200", "900 s"), ("float('inf')", "900 s"), ("-1", "0 s")):
        (tmp_path / asked).mkdir()
        log: list[str] = []
        file = tmp_path / asked / "licences.py"
        file.write_text(PLUGIN.replace("{method}", POINTS["Permit"]).replace("{answer}", f"return Wait({asked})"))
        async with staged(2, plugins=[str(file)], observers=[DecisionPrinter(log.append)]) as stage:
            await stage.create(raw_pod("web"))
            await stage.until(lambda log=log: any("is held at Permit" in line for line in log))
            record = stage.explaining.service.recorder.of_pod("default/web")[-1]

        assert record.permit is not None
        assert f"{record.permit.plugins['Licences']:g} s" == most
        assert [line for line in log if line.endswith(f"for {most} at most")], log


async def test_a_pod_whose_time_at_permit_is_up_is_told_of_the_wait_and_of_its_end(tmp_path: Path) -> None:
    async with refusing("Permit", tmp_path, "return Wait(0.3)") as (stage, log):
        service = stage.explaining.service
        explained = service.explain_pod("default/web")
        changes = await service.changes("default/web")
        board = await service.pending()
        page, grouped = await asked(stage, "explain/pod/default/web", "log?outcome=unschedulable")
        while not (condition := await condition_of(stage)):
            await stage.local.live.options.clock.sleep(0.01)
        while "FailedScheduling" not in (events := json.dumps(await stage.get(EVENTS))):
            await stage.local.live.options.clock.sleep(0.01)

    up = "rejected due to timeout after waiting 300ms at plugin Licences"
    told = f"and then refused at Permit by Licences: {up}."
    # The log of `bayplan up`
    assert [line for line in log if " is held at Permit by Licences on " in line and "for 0.3 s at most" in line], log
    assert [line for line in log if line.endswith(told)], log
    # `bayplan explain` and `bayplan pending`
    assert explained.verdict.endswith(told) and isinstance(explained.claim, RefusedLater)
    assert explained.decision is not None and explained.decision.permit is not None
    assert explained.decision.permit.plugins == {"Licences": 0.3}
    assert explained.decision.permit.seconds >= 0.3 and explained.decision.permit.result
    assert "until its time is up" in changes.suggestions[0].sentence
    assert [cause.title for cause in board.causes] == [f"Licences at Permit: {up}"]
    # The browser, the condition and the events
    assert page["verdict"] == explained.verdict
    assert [group["reason"] for group in grouped["groups"]] == [f"Permit Licences: {up}"]
    assert (condition["reason"], condition["status"]) == ("Unschedulable", "False")
    assert up in condition["message"] and up in events
