"""Decisions by template and outcome, and what a template is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.unit.explain.stage import Stage, raw_pod, staged

from bayplan.explain.claims.phrases import template_of
from bayplan.explain.pages.decision_log import LogPage, LogQuery, decisions_of, group_log
from bayplan.loop.record import DecisionRecord, Preemption, Victim
from bayplan.loop.recorder import DecisionRecorder
from bayplan.observe.clock import SystemClock
from bayplan.observe.time_slices import at_once


@pytest.mark.parametrize(
    ("name", "template"),
    [
        ("web-6d4b75cb6d-hwrb7", "web"),
        ("db-0", "db"),
        ("backup-29381760-x2vqz", "backup"),
        ("train-3-bcdfg", "train"),
        ("web-front", "web-front"),
        ("shop-db", "shop-db"),
        ("single", "single"),
        ("-0", "-0"),
    ],
)
def test_a_template_is_the_name_without_what_controllers_add(name: str, template: str) -> None:
    assert template_of(name) == template


def logged(stage: Stage, **query: object) -> LogPage:
    return at_once(group_log(stage.explaining.recorder, LogQuery(**query)))  # type: ignore[arg-type]  # by name


async def test_pods_of_one_template_with_one_outcome_are_one_row_that_unfolds() -> None:
    async with staged(3) as stage:
        await stage.create(
            *(raw_pod(f"web-{i}") for i in range(30)), *(raw_pod(f"big-{i}", cpu="900") for i in range(3))
        )
        await stage.settled(bound=30, failed=3)
        log = logged(stage)
        web = next(group for group in log.groups if group.template == "default/web")
        big = next(group for group in log.groups if group.template == "default/big")
        query = LogQuery(template="default/web", outcome="bound", limit=10)
        first = at_once(decisions_of(stage.explaining.recorder, query))
        rest = at_once(decisions_of(stage.explaining.recorder, LogQuery(template="default/web", offset=10, limit=100)))
        refused = at_once(decisions_of(stage.explaining.recorder, LogQuery(reason=big.reason)))

    assert len(log.groups) == 2 and log.outcomes["bound"] == 30
    assert (web.count, web.pods, web.outcome, web.reason) == (30, 30, "bound", "")
    assert 1 <= web.nodes <= 3
    assert big.reason == "NodeResourcesFit: Insufficient cpu" and big.pods == 3
    assert len(first) == 10 and len(rest) == 20
    assert {one.pod for one in first}.isdisjoint(one.pod for one in rest)
    assert {one.pod for one in refused} == {f"default/big-{i}" for i in range(3)}


async def test_filters_apply_to_names_outcomes_and_nodes() -> None:
    async with staged(3) as stage:
        await stage.create(raw_pod("web-0"), raw_pod("big-0", cpu="900"))
        await stage.settled(bound=1, failed=1)
        node = stage.explaining.recorder.of_pod("default/web-0")[0].node
        by_text, by_outcome, by_node = (
            logged(stage, text="BIG"),
            logged(stage, outcome="bound"),
            logged(stage, node=node),
        )
        elsewhere = logged(stage, namespace="other")

    assert [group.pod for group in by_text.groups] == ["default/big-0"]
    assert [group.pod for group in by_outcome.groups] == [group.pod for group in by_node.groups] == ["default/web-0"]
    assert set(by_outcome.outcomes) == {"bound", "unschedulable"}
    assert (elsewhere.groups, elsewhere.namespaces) == ([], {"default": 2})


async def test_attempts_of_an_earlier_process_are_in_the_log() -> None:
    async with staged(3) as stage:
        await stage.create(raw_pod("web-0"), raw_pod("big-0", cpu="900"))
        await stage.settled(bound=1, failed=1)
        records = [note.record() for note in reversed(stage.explaining.recorder.newest())]
    later = DecisionRecorder(SystemClock())
    later.restore(records)

    log = at_once(group_log(later, LogQuery()))
    reasons = {group.template: group.reason for group in log.groups}

    assert reasons == {"default/web": "", "default/big": "NodeResourcesFit: Insufficient cpu"}


async def test_reasons_that_name_the_pod_are_one_reason_of_its_template(tmp_path: Path) -> None:
    plugin = tmp_path / "naming.py"
    plugin.write_text(
        "from bayplan.framework import Plugin, Unschedulable\n\n\n"
        "class Naming(Plugin):\n"
        '    """Refuse every pod by its name."""\n\n'
        "    def filter(self, state, pod, node):\n"
        "        return Unschedulable(f'not {pod.name}')\n"
    )
    async with staged(2, plugins=[str(plugin)]) as stage:
        await stage.create(*(raw_pod(f"web-{i}") for i in range(3)))
        await stage.settled(bound=0, failed=3)
        (group,) = logged(stage).groups
        unfolded = at_once(
            decisions_of(stage.explaining.recorder, LogQuery(reason=group.reason, template="default/web"))
        )

    assert (group.pods, group.reason) == (3, "Naming: not web")
    assert {one.pod for one in unfolded} == {f"default/web-{i}" for i in range(3)}


def test_an_attempt_that_was_refused_after_a_preemption_is_not_said_to_preempt_again() -> None:
    preemption = Preemption(node="n1", victims=(Victim(pod="default/low"),), victim_count=1, attempt=1, time=1.0)
    common: dict[str, Any] = {
        "pod": "default/vip",
        "uid": "v",
        "profile": "p",
        "preemption": preemption,
        "outcome": "unschedulable",
    }
    recorder = DecisionRecorder(SystemClock())
    late = {"node": "n1", "stopped_at": "PreBind", "stopped_by": "Licences", "error": "none is free"}
    recorder.restore(
        [
            DecisionRecord(number=1, time=1.0, attempt=1, **common),
            DecisionRecord(number=2, time=2.0, attempt=2, **common, **late),
        ]
    )

    groups = at_once(group_log(recorder, LogQuery())).groups

    assert [group.reason for group in groups] == ["PreBind Licences: none is free", "preempts 1 pod on n1"]
