"""Victims in columns are the victims found one by one."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from bayplan.api.pod import Pod
from bayplan.framework.status import Status
from bayplan.plugins.intree.default_preemption import DefaultPreemption
from bayplan.preemption.budgets import Budgets
from bayplan.preemption.one_node import OneNodeTrial, find_victims
from bayplan.testing import Harness, node, pod
from bayplan.testing.generate import CPUS, MEMORIES


def crowded(seed: int) -> tuple[Harness, Pod]:
    """Nodes full of pods that only resources tell apart, some nominated ones, and a pod that wants in."""
    rng = Random(seed)
    nodes = [node(f"n{i}", cpu=rng.choice((2, 4)), memory="4Gi", pods=rng.choice((3, 6, 110))) for i in range(8)]
    pods = [
        pod(
            f"p{i}",
            cpu=rng.choice(CPUS),
            memory=rng.choice(MEMORIES),
            requests={"example.com/gpu": 1} if rng.randrange(5) == 0 else None,
            node=f"n{rng.randrange(8)}",
            priority=rng.randint(0, 4),
            started=f"2026-01-01T00:00:{i:02}Z",
        )
        for i in range(40)
    ]
    waiting = [
        pod(f"w{i}", cpu="500m", priority=rng.randint(0, 6), nominated=f"n{rng.randrange(8)}")
        for i in range(rng.randint(0, 3))
    ]
    wanted = pod("new", cpu=rng.choice(CPUS), memory=rng.choice(MEMORIES), priority=rng.randint(1, 5))
    return Harness(nodes=nodes, pods=[*pods, *waiting]), wanted


@pytest.mark.parametrize("seed", range(25))
def test_columns_and_one_by_one_find_the_same_victims(seed: int) -> None:
    harness, wanted = crowded(seed)
    info = harness.info(wanted)
    decision = harness.scheduler.decide(info)
    if decision.diagnosis is None:
        return
    plugin: DefaultPreemption = harness.plugin("DefaultPreemption")
    rows = plugin.helpful_rows(decision.diagnosis)
    if not len(rows):
        return
    assert plugin.handle.dry_run.reads_counts_only(decision.state)
    found = plugin.search(decision.state, info, rows)
    in_columns = {each.node_name: [v.name for v in each.victims] for each in plugin.all_candidates(found)}

    assert in_columns == _one_by_one(plugin, decision.state, info, rows.tolist())
    cheapest = {each.node_name for each in plugin.choose(found)}
    assert cheapest <= set(in_columns)


def _one_by_one(plugin: DefaultPreemption, state: Any, info: Any, rows: list[int]) -> dict[str, list[str]]:
    table = plugin.handle.snapshot.nodes
    nominated = plugin._nominated(info)
    found = {}
    for row in rows:
        lower = [p for p in table.at(row).pods.values() if p.priority < info.priority]
        trial = OneNodeTrial(plugin.handle.dry_run, state, info, table, row, nominated.get(row, []))
        outcome = find_victims(trial, lower, Budgets([]))
        if not isinstance(outcome, Status) and outcome[0]:
            found[table.at(row).name] = [victim.name for victim in outcome[0]]
    return found


def test_victim_columns_follow_the_cluster() -> None:
    """Pods that come and go between two searches are seen by the second."""
    harness = Harness(nodes=["n1"], pods=[pod("a", cpu=3, node="n1", priority=1)])
    assert harness.explain(pod("new", cpu=3, priority=9)).victims == ("default/a",)
    harness.remove(pod("a"))
    many = [pod(f"p{i}", cpu="200m", node="n1", priority=1, started=f"2026-01-01T00:00:{i:02}Z") for i in range(20)]
    harness.add(*many)
    expected = tuple(f"default/p{i}" for i in range(15, 20))
    assert harness.explain(pod("new", cpu=1, priority=9)).victims == expected
    harness.add(pod("p19", cpu="200m", node="n1", priority=1, started="2025-01-01T00:00:00Z"))
    assert "default/p19" not in harness.explain(pod("new", cpu=1, priority=9)).victims
