"""Victims in columns are the victims found one by one."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from bayplan.api.pod import Pod
from bayplan.framework.status import Status
from bayplan.plugins.intree.default_preemption import DefaultPreemption, Found
from bayplan.preemption.candidates import Candidate, pick_cheapest
from bayplan.preemption.node_trial import NodeTrial, candidate_on, find_victims
from bayplan.testing import Harness, node, pdb, pod
from bayplan.testing.generate import CPUS, MEMORIES


def crowded(seed: int, *, budgets: bool) -> tuple[Harness, Pod]:
    """Nodes full of pods that only resources and budgets tell apart, some nominated ones, and a pod that wants in."""
    rng = Random(seed)
    nodes = [node(f"n{i}", cpu=rng.choice((2, 4)), memory="4Gi", pods=rng.choice((3, 6, 110))) for i in range(8)]
    pods = [
        pod(
            f"p{i}",
            cpu=rng.choice(CPUS),
            memory=rng.choice(MEMORIES),
            requests={"example.com/gpu": 1} if rng.randrange(5) == 0 else None,
            labels={"app": rng.choice(("web", "db", "free")), "tier": rng.choice("ab")},
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
    objects = [
        pdb("web", {"app": "web"}, allowed=rng.randint(0, 2)),
        pdb("tier", {"tier": "a"}, allowed=rng.randint(0, 3), disrupted=rng.sample([p.name for p in pods], 8)),
        pdb("elsewhere", {"app": "db"}, namespace="other"),
    ]
    return Harness(nodes=nodes, pods=[*pods, *waiting], objects=objects if budgets else []), wanted


@pytest.mark.parametrize("budgets", [False, True])
@pytest.mark.parametrize("seed", range(25))
def test_columns_and_one_by_one_find_the_same_victims(seed: int, budgets: bool) -> None:
    harness, wanted = crowded(seed, budgets=budgets)
    info = harness.info(wanted)
    decision = harness.scheduler.decide(info)
    if decision.diagnosis is None:
        return
    plugin: DefaultPreemption = harness.plugin("DefaultPreemption")
    rows = plugin.helpful_rows(decision.diagnosis)
    if not len(rows):
        return
    assert plugin.handle.dry_run.reads_counts_only(decision.state)
    found = Found()
    strategy = plugin._strategy(decision.state, info)
    strategy.try_rows(rows, found)
    strategy.finish(rows, found)
    candidates = plugin.all_candidates(found)
    expected, refused = _one_by_one(plugin, decision.state, info, rows.tolist())

    assert sorted(candidates) == sorted(expected)
    assert {row: status for status, rows in found.refused.items() for row in rows} == refused
    assert sorted(plugin.choose(found)) == sorted(pick_cheapest(expected))
    assert found.unviolating_count == sum(candidate.violations == 0 for candidate in expected)


def _one_by_one(
    plugin: DefaultPreemption, state: Any, info: Any, rows: list[int]
) -> tuple[list[Candidate], dict[int, Status]]:
    table = plugin.handle.cluster.nodes
    nominator = plugin.handle.nominator
    found, refused = [], {}
    for row in rows:
        lower = [p for p in table.at(row).pods.values() if p.priority < info.priority]
        nominated = [p for p in nominator.nominated_pods(table.at(row).name) if p.priority >= info.priority]
        trial = NodeTrial(plugin.handle.dry_run, state, info, table, row, nominated)
        outcome = find_victims(trial, lower, plugin._current_budgets())
        if isinstance(outcome, Status):
            refused[row] = outcome
        elif outcome[0]:
            found.append(candidate_on(table, row, outcome))
    return found, refused


@pytest.mark.parametrize("nominated", ["", "n1"])
def test_resources_that_only_waiting_pods_name_do_not_matter(nominated: str) -> None:
    running = [pod("a", cpu=4, node="n1", priority=1), pod("b", cpu=4, node="n2", priority=2)]
    odd = pod("odd", requests={f"example.com/r{i}": 1 for i in range(60)}, priority=9, nominated=nominated)
    harness = Harness(nodes=["n1", "n2"], pods=[*running, odd] if nominated else running)
    harness.info(odd)

    assert harness.explain(pod("new", cpu=3, priority=9)).victims == ("default/a",)
    assert harness.complaints == []


def test_a_nominated_pod_that_is_on_the_node_already_counts_once() -> None:
    pods = [pod("a", cpu=1, node="n1", priority=1), pod("waiting", cpu=2, priority=9, nominated="n1")]
    harness = Harness(nodes=[node("n1", cpu=4)], pods=pods)
    harness.scheduler.cache.add_pod(pod("waiting", cpu=2, priority=9, node="n1"))

    assert harness.explain(pod("new", cpu=2, priority=9)).victims == ("default/a",)


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
