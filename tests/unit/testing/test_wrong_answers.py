"""A plugin with wrong answers on a whole cluster: its pods say why they wait, and explanations go on."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.unit.explain.stage import Stage, raw_pod, staged

FILE = """
from bayplan.framework import *

class Wrong(Plugin):
    {prefix}def {method}(self, *arguments):
        {body}
    {other}
"""
OTHERS = {
    "post_filter": "def filter(self, *arguments): return Unschedulable('full')",
    "pre_score": "def score(self, *arguments): return 1",
    "normalize": "def score(self, *arguments): return 1",
    "pre_bind_pre_flight": "async def pre_bind(self, *arguments): pass",
}
"""What a method needs beside it to be called at all."""

CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{plugins: {multiPoint: {enabled: [{name: Wrong}]}POINT}}]
"""
POINTS = {
    "less": ", queueSort: {disabled: [{name: PrioritySort}], enabled: [{name: Wrong}]}",
    "sort_key": ", queueSort: {disabled: [{name: PrioritySort}], enabled: [{name: Wrong}]}",
    "post_filter": ", postFilter: {disabled: [{name: DefaultPreemption}]}",
    "bind": ", bind: {disabled: [{name: DefaultBinder}], enabled: [{name: Wrong}]}",
}
"""Points at which the plugin takes the place of a default one."""


@pytest.mark.parametrize(
    ("method", "body", "reason"),
    [
        ("pre_enqueue", "return False", "plugin `Wrong`: `pre_enqueue` returned False (bool)"),
        ("pre_filter", "return 'no'", "plugin `Wrong`: `pre_filter` returned 'no' (str)"),
        ("pre_filter", "return PreFilterResult('a')", "PreFilterResult whose `node_names` is 'a' (str)"),
        ("filter", "return False", "plugin `Wrong`: `filter` returned False (bool)"),
        ("filter", "return Unschedulable(5)", "a reason of a status must be a text, found 5"),
        ("filter", "raise SystemExit(3)", "SystemExit: 3"),
        ("filter_nodes", "return None", "plugin `Wrong`: `filter_nodes` returned None (NoneType)"),
        ("post_filter", "return 10", "plugin `Wrong`: `post_filter` returned 10 (int)"),
        ("pre_score", "return True", "plugin `Wrong`: `pre_score` returned True (bool)"),
        ("score", "return 'no'", "plugin `Wrong`: `score` returned 'no' (str)"),
        ("score", "yield 1", "plugin `Wrong`: `score` returned <generator object"),
        ("score_nodes", "return 10", "plugin `Wrong`: `score_nodes` returned 10 (int)"),
        ("normalize", "return None", "plugin `Wrong`: `normalize` returned None (NoneType)"),
        ("reserve", "return []", "plugin `Wrong`: `reserve` returned [] (list)"),
        ("permit", "return 10", "plugin `Wrong`: `permit` returned 10 (int)"),
        ("permit", "return Wait('5')", "`Wait` takes a number of seconds, found '5'"),
        ("pre_bind_pre_flight", "return 'no'", "plugin `Wrong`: `pre_bind_pre_flight` returned 'no' (str)"),
        ("pre_bind", "return False", "plugin `Wrong`: `pre_bind` returned False (bool)"),
        ("bind", "return 10", "plugin `Wrong`: `bind` returned 10 (int)"),
    ],
)
async def test_a_wrong_answer_is_an_event_and_a_condition_and_explanations_go_on(
    method: str, body: str, reason: str, tmp_path: Path
) -> None:
    async with staged(config=_config(tmp_path, method), plugins=[_file(tmp_path, method, body)]) as stage:
        await stage.create(raw_pod("web"))
        await _until_told(stage, "/api/v1/namespaces/default/pods/web", reason)
        await _until_told(stage, "/apis/events.k8s.io/v1/namespaces/default/events", reason)
        service = stage.explaining.service
        explanation = service.explain_pod("default/web")
        board = await service.pending(with_change=True)
        await service.changes("default/web")

    assert "Wrong" in str(explanation)
    assert board.verdict


@pytest.mark.parametrize("method", ["less", "sort_key", "post_bind"])
@pytest.mark.parametrize("body", ["return 'no'", "raise SystemExit(3)"])
async def test_where_no_decision_depends_on_the_answer_pods_are_bound(method: str, body: str, tmp_path: Path) -> None:
    async with staged(config=_config(tmp_path, method), plugins=[_file(tmp_path, method, body)]) as stage:
        await stage.create(raw_pod("web"), raw_pod("app"))
        await stage.settled(bound=2)


@pytest.mark.parametrize("method", ["grants", "dry_copy", "object_remedies"])
@pytest.mark.parametrize("body", ["return 'no'", "raise ValueError('no idea')"])
async def test_a_plugin_that_fails_to_explain_itself_is_left_out_of_the_explanation(
    method: str, body: str, tmp_path: Path
) -> None:
    file = _file(tmp_path, method, body, "def filter(self, *arguments): return Unschedulable('full')")
    async with staged(config=_config(tmp_path, "filter"), plugins=[file]) as stage:
        await stage.create(raw_pod("web"))
        await stage.settled(failed=1)
        service = stage.explaining.service
        explanation = service.explain_pod("default/web")
        await service.changes("default/web")

    assert "full" in str(explanation)


def _config(folder: Path, method: str) -> Path:
    config = folder / "config.yaml"
    config.write_text(CONFIG.replace("POINT", POINTS.get(method, "")))
    return config


def _file(folder: Path, method: str, body: str, other: str = "") -> str:
    prefix = "async " if method in ("pre_bind", "bind") else ""
    file = folder / "wrong.py"
    file.write_text(FILE.format(prefix=prefix, method=method, body=body, other=other or OTHERS.get(method, "")))
    return str(file)


async def _until_told(stage: Stage, path: str, text: str) -> None:
    async with asyncio.timeout(60):
        while text not in str(await stage.get(path)).replace("\\", ""):  # noqa: ASYNC110 - polls a server
            await asyncio.sleep(0.01)
