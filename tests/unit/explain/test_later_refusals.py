"""Pods that got a node and were refused before they were bound: what each surface says about them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.unit.explain.stage import raw_pod, staged

from bayplan.explain.builders import later_refusal_of
from bayplan.explain.claims import NothingHelps, RefusedLater
from bayplan.explain.pages.decision_log import LogQuery, group_log
from bayplan.explain.wording import sentence

PLUGIN = '''
from bayplan.framework import Plugin, Unschedulable

class Licences(Plugin):
    """Refuses every pod at one extension point."""

    def events_to_register(self):
        return []

    {method}(self, state, pod, node_name):
        return Unschedulable("no licence is free")
'''
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    multiPoint:
      enabled: [{name: Licences}]
"""


@pytest.mark.parametrize(("method", "point"), [("def reserve", "Reserve"), ("def permit", "Permit")])
async def test_a_refusal_after_the_choice_is_told_as_what_it_is(method: str, point: str, tmp_path: Path) -> None:
    (tmp_path / "licences.py").write_text(PLUGIN.replace("{method}", method))
    (tmp_path / "config.yaml").write_text(CONFIG)
    async with staged(2, config=tmp_path / "config.yaml", plugins=[str(tmp_path / "licences.py")]) as stage:
        await stage.create(raw_pod("web"))
        await stage.settled(failed=1)
        service = stage.explaining.service
        explained = service.explain_pod("default/web")
        changes = await service.changes("default/web")
        board = await service.pending()
        events = await stage.get("/api/v1/namespaces/default/events")
        pod = await stage.get("/api/v1/namespaces/default/pods/web")

    assert isinstance(explained.claim, RefusedLater)
    assert explained.verdict.endswith(f"and then refused at {point} by Licences: no licence is free.")
    assert explained.decision is not None and explained.decision.stopped_at == point
    assert isinstance(changes.suggestions[0].claim, NothingHelps) and not changes.schedulable
    assert f"refused at {point} by Licences" in changes.suggestions[0].sentence
    assert board.causes[0].title == f"Licences at {point}: no licence is free"
    assert "no licence is free" in json.dumps(events) + json.dumps(pod["status"])


BINDS = (
    CONFIG
    + """    bind:
      disabled: [{name: DefaultBinder}]
"""
)


@pytest.mark.parametrize(("method", "point"), [("async def pre_bind", "PreBind"), ("async def bind", "Bind")])
async def test_a_refusal_while_it_is_bound_is_told_by_records_and_log(method: str, point: str, tmp_path: Path) -> None:
    (tmp_path / "licences.py").write_text(PLUGIN.replace("{method}", method))
    (tmp_path / "config.yaml").write_text(BINDS if point == "Bind" else CONFIG)
    async with staged(2, config=tmp_path / "config.yaml", plugins=[str(tmp_path / "licences.py")]) as stage:
        service = stage.explaining.service
        await stage.create(raw_pod("web"))
        await stage.until(lambda: stage.explaining.recorder.failed_count > 0)
        last = next(record for record in service.recorder.of_pod("default/web") if record.stopped_at)
        log = await service.listed(lambda _: group_log(service.recorder, LogQuery(outcome="unschedulable")))

    refusal = later_refusal_of(last)
    assert refusal is not None
    assert sentence(refusal).endswith(f"and then refused at {point} by Licences: no licence is free.")
    assert log.groups[0].reason == f"{point} Licences: no licence is free"
