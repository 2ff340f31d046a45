"""A plugin with wrong answers on a whole cluster: its pods say why they wait, and explanations go on."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.unit.explain.stage import Stage, raw_pod, staged

FILE = """
from bayplan.framework import Plugin

class Wrong(Plugin):
    def {method}(self, *arguments):
        return {answer}
"""

CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{plugins: {multiPoint: {enabled: [{name: Wrong}]}}}]
"""


@pytest.mark.parametrize(("method", "answer"), [("filter", "False"), ("score", "'no'"), ("permit", "10")])
async def test_a_wrong_answer_is_an_event_and_a_condition_and_explanations_go_on(
    method: str, answer: str, tmp_path: Path
) -> None:
    file, config = tmp_path / "wrong.py", tmp_path / "config.yaml"
    file.write_text(FILE.format(method=method, answer=answer))
    config.write_text(CONFIG)
    reason = f"plugin `Wrong`: `{method}` returned {answer}"

    async with staged(config=config, plugins=[str(file)]) as stage:
        await stage.create(raw_pod("web"))
        await _until_told(stage, "/api/v1/namespaces/default/pods/web", reason)
        await _until_told(stage, "/apis/events.k8s.io/v1/namespaces/default/events", reason)
        service = stage.explaining.service
        explanation = service.explain_pod("default/web")
        board = await service.pending(with_change=True)
        await service.changes("default/web")

    assert "Wrong" in str(explanation)
    assert board.verdict


async def _until_told(stage: Stage, path: str, text: str) -> None:
    async with asyncio.timeout(60):
        while text not in str(await stage.get(path)).replace("\\", ""):  # noqa: ASYNC110 - polls a server
            await asyncio.sleep(0.01)
