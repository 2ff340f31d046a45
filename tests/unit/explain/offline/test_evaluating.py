"""Pods one after the other, each with a whole explanation."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from bayplan.api.meta import KubeObject
from bayplan.app.offline import OfflineScheduler
from bayplan.config import default_config, resolve_profiles
from bayplan.explain.claims.pods import HeldBack
from bayplan.explain.offline.case import UnknownProfile
from bayplan.explain.offline.evaluating import Evaluator, machine_form
from bayplan.plugins.intree import default_registry
from bayplan.testing import node, pod


def session(objects: Iterable[KubeObject], **how: int) -> Evaluator:
    registry = default_registry()
    return Evaluator(OfflineScheduler(resolve_profiles(default_config(), registry), registry, objects), **how)


def test_a_placed_pod_counts_for_the_next() -> None:
    work = session([node("a", cpu=2), node("b", cpu=2)])

    assert [work.evaluate(pod(f"p{n}", cpu=2)).now.node for n in range(3)] == ["a", "b", ""]


def test_of_many_nodes_as_good_the_first_are_told_however_few_are_kept() -> None:
    nodes = [node(f"n{number:03}", cpu=8) for number in range(200)]
    every, some = (session(nodes, **how).evaluate(pod("p")) for how in ({}, {"most": 3}))

    assert [each.node for each in some.now.best] == ["n000", "n001", "n002"]
    assert some.now.best == every.now.best[:3] and some.verdict == every.verdict
    assert len(every.result["scores"]) == 200 and some.result == {"best": every.result["best"]}


def test_a_pending_pod_changes_nothing() -> None:
    work = session([node("a", cpu=2)])

    assert work.evaluate(pod("big", cpu=3)).outcome == "pending"
    assert work.evaluate(pod("small", cpu=2)).is_scheduled


def test_a_gated_pod_waits_with_the_reason_of_its_gate() -> None:
    report = session([node("a")]).evaluate(pod("p", gates=["g"]))

    assert report.outcome == "gated"
    assert isinstance(report.claim, HeldBack) and report.claim.gates == ("g",)
    assert report.now.message == "waiting for scheduling gates: [g]"
    assert report.verdict == "default/p is held back before scheduling by gate `g`."


def test_preemption_is_told_and_not_done() -> None:
    work = session([node("a", cpu=2), pod("low", cpu=2, node="a")])

    assert work.evaluate(pod("high", cpu=2, priority=9)).outcome == "preempts"
    assert work.evaluate(pod("low-too", cpu=2)).outcome == "pending"


def test_the_queue_puts_higher_priority_and_older_pods_first() -> None:
    young, old, urgent = pod("young"), pod("old"), pod("urgent", priority=5)
    young.metadata.creation_timestamp = "2026-01-02T00:00:00Z"
    old.metadata.creation_timestamp = "2026-01-01T00:00:00Z"
    urgent.metadata.creation_timestamp = "2026-01-03T00:00:00Z"

    ordered = session([]).in_queue_order([young, old, urgent])
    assert [item.name for item in ordered] == ["urgent", "old", "young"]
    assert session([]).in_queue_order([]) == []


def test_a_pod_for_another_scheduler_is_refused() -> None:
    with pytest.raises(UnknownProfile, match="did you mean `default-scheduler`"):
        session([node("a")]).evaluate(pod("p", scheduler="default-schedular"))


def test_the_machine_form_is_the_result_with_a_head() -> None:
    work = session([node("a", cpu=2)])
    placed, waiting = machine_form(work.evaluate(pod("p", cpu=2))), machine_form(work.evaluate(pod("q", cpu=2)))

    assert placed["chosen"] == "a" and placed["best"] == ["a"] and placed["total"] == placed["scores"]["a"]["total"]
    assert "chosen" not in waiting and waiting["outcome"] == "pending"
    assert waiting["fullMessage"].startswith(waiting["message"])
