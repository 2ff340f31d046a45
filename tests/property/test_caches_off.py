"""Caches are an optimisation only: with them off, every decision of a long history is the same."""

from __future__ import annotations

import pytest

from bayplan.api.pod import Pod
from bayplan.app.offline import OfflineScheduler
from bayplan.cache.check import check_cache
from bayplan.cluster import label_columns
from bayplan.testing import Harness
from tests.property.histories import Facts, History, facts_of, scheduler

STEPS = 250


@pytest.mark.parametrize("seed", range(12))
def test_decisions_do_not_depend_on_what_is_remembered(seed: int) -> None:
    """One scheduler remembers, one computes everything anew; over a long history both decide the same."""
    history = History(seed, scheduler(remember=True), scheduler(remember=False))
    told: list[str] = []
    for step in range(STEPS):
        told.append(history.change())
        pod = history.next_pod()

        remembering, forgetful = history.decide(pod)

        assert remembering == forgetful, f"step {step}, after {told[-8:]}"
        if remembering["node"] and history.rng.randrange(4):
            history.assume(pod, remembering["node"])
        if step % 50 == 49:
            assert [check_cache(each.cache) for each in history.schedulers] == [[], []], f"step {step}"


@pytest.mark.parametrize("seed", range(3))
def test_decisions_do_not_depend_on_which_label_columns_are_kept(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every change of a node drops all label columns but one or two, and their value ids with them."""
    monkeypatch.setattr(label_columns, "MOST_COLUMNS", 2)
    history = History(5000 + seed, scheduler(remember=True), scheduler(remember=False))
    for step in range(STEPS):
        history.change()
        pod = history.next_pod()

        remembering, forgetful = history.decide(pod)

        assert remembering == forgetful, f"step {step}"
        if remembering["node"] and history.rng.randrange(4):
            history.assume(pod, remembering["node"])
    assert [check_cache(each.cache) for each in history.schedulers] == [[], []]


@pytest.mark.parametrize("seed", range(6))
def test_explaining_does_not_change_a_decision(seed: int) -> None:
    """The path that keeps every score finds the same nodes and totals as the short path."""
    history = History(1000 + seed, scheduler(remember=True), scheduler(remember=True))
    for step in range(STEPS):
        history.change()
        pod = history.next_pod()
        short, explained = history.schedulers

        first = _facts(short, pod, explains=False)
        second = _facts(explained, pod, explains=True)

        assert first == second, f"step {step}"
        if first["node"] and history.rng.randrange(4):
            history.assume(pod, first["node"])


def _facts(one: OfflineScheduler, pod: Pod, *, explains: bool) -> Facts:
    decision = one.decide(one.info(pod), always_score=True, explains=explains)
    return facts_of(one, decision)


@pytest.mark.parametrize("seed", range(4))
def test_a_scheduler_that_starts_now_decides_like_one_that_saw_it_all(seed: int) -> None:
    """What a restart would decide: the objects alone, none of what led to them. Ties may fall another way."""
    history = History(3000 + seed, scheduler(remember=True))
    for step in range(160):
        history.change()
        pod = history.next_pod()
        (old,) = history.decide(pod)
        if step % 8 == 0:
            new = _fresh_facts(history, pod)
            same = ("total", "ties", "feasible", "message", "rejected", "blamed")
            assert {key: old[key] for key in same} == {key: new[key] for key in same}, f"step {step}"
        if old["node"] and history.rng.randrange(4):
            history.assume(pod, old["node"])


def _fresh_facts(history: History, pod: Pod) -> Facts:
    waiting = list(history.nominated.values())
    objects, nodes = list(history.objects.values()), list(history.nodes.values())
    harness = Harness(nodes=nodes, pods=[*history.running.values(), *waiting], objects=objects)
    return _facts(harness.scheduler, pod, explains=False)
