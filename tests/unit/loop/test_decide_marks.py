"""The phases of a decision can be timed, and are not when nobody asks."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

from bayplan.loop.decide import decide
from bayplan.testing import Harness, node, pod


def phases(harness: Harness, name: str, **wanted: str) -> list[str]:
    scheduler = harness.scheduler
    ticks = count()
    decider = replace(scheduler.deciders["default-scheduler"], monotonic=lambda: float(next(ticks)))
    decision = decide(decider, scheduler.info(pod(name, **wanted)))
    assert [when for _, when in decision.marks] == sorted(when for _, when in decision.marks)
    return [phase for phase, _ in decision.marks]


def test_a_pod_that_fits_is_timed_through_score() -> None:
    harness = Harness(nodes=[node("n1"), node("n2")])

    assert phases(harness, "web") == ["", "PreFilter", "Filter", "Score"]


def test_a_pod_that_fits_nowhere_is_timed_through_post_filter() -> None:
    harness = Harness(nodes=[node("n1", cpu=1)])

    assert phases(harness, "web", cpu="64") == ["", "PreFilter", "Filter", "PostFilter"]


def test_nothing_is_noted_without_a_clock() -> None:
    harness = Harness(nodes=[node("n1")])
    scheduler = harness.scheduler

    assert decide(scheduler.deciders["default-scheduler"], scheduler.info(pod("web"))).marks == []
