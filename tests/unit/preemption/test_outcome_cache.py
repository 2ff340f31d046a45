"""Remembered dry runs are the dry runs that would be made now."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from bayplan.api.pod import Pod
from bayplan.framework import Depends, NodeInfo, Plugin, PodInfo, Status, Unschedulable
from bayplan.plugins.intree.default_preemption import DefaultPreemption, Found
from bayplan.preemption.column_trial import find_victims_in_columns
from bayplan.testing import Harness, node, pdb, pod


def rows_of(harness: Harness) -> Any:
    return np.array(sorted(harness.scheduler.cache.cluster.nodes.row_of.values()), dtype=np.intp)


def searched(harness: Harness, wanted: Pod, rows: Any, *, remembered: bool) -> tuple[Any, ...]:
    """All that a search says about these rows."""
    plugin: DefaultPreemption = harness.plugin("DefaultPreemption")
    info = harness.info(wanted)
    state = harness.scheduler.decide(info).state
    found = Found()
    kept = plugin._outcomes
    if not remembered:
        plugin._outcomes = type(kept)()
    strategy = plugin._strategy(state, info)
    strategy.try_rows(rows, found)
    strategy.finish(rows, found)
    plugin._outcomes = kept
    refused = {status: sorted(rows) for status, rows in found.refused.items()}
    return sorted(plugin.all_candidates(found)), refused, found.candidate_count, found.unviolating_count


class World:
    """A full cluster in which things happen."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        running = [self.running(number) for number in range(24)]
        self.harness = Harness(nodes=[node(f"n{i}", cpu=4, memory="4Gi") for i in range(8)], pods=running)
        self.born = 24

    def running(self, number: int) -> Pod:
        return pod(
            f"r{number}",
            cpu=self.rng.choice((1, 2)),
            node=f"n{self.rng.randrange(8)}",
            priority=self.rng.randint(0, 3),
            labels={"app": self.rng.choice("ab")},
            started=f"2026-01-01T00:00:{number % 60:02}Z",
        )

    def step(self) -> None:
        cache, nominator = self.harness.scheduler.cache, self.harness.scheduler.nominator
        self.born += 1
        what = self.rng.randrange(7)
        if what == 0:
            cache.add_pod(self.running(self.born))
        elif what == 1:
            cache.remove_pod(f"uid-default-r{self.rng.randrange(self.born)}")
        elif what == 2:
            waiting = pod(f"w{self.rng.randrange(5)}", cpu=1, priority=self.rng.randint(0, 5))
            nominator.put(self.harness.info(_nominated(waiting, f"n{self.rng.randrange(8)}")))
        elif what == 3:
            nominator.drop(self.harness.info(pod(f"w{self.rng.randrange(5)}")).uid)
        elif what == 4:
            cache.add_node(node(f"n{self.rng.randrange(8)}", cpu=self.rng.choice((2, 4, 8)), memory="4Gi"))
        elif what == 5:
            cache.put_object(pdb("some", {"app": "a"}, allowed=self.rng.randint(0, 2)))
        else:
            self.harness.info(pod("odd", requests={f"example.com/r{self.born}": 1}))


def _nominated(waiting: Pod, name: str) -> Pod:
    return pod(waiting.name, cpu=1, priority=waiting.priority, nominated=name)


@pytest.mark.parametrize("seed", range(12))
def test_what_is_remembered_is_what_would_be_found_now(seed: int) -> None:
    world = World(seed)
    wanted = [pod(f"new{i}", cpu=cpu, priority=priority) for i, (cpu, priority) in enumerate([(3, 4), (4, 2), (9, 4)])]
    for _ in range(40):
        for _ in range(world.rng.randrange(3)):
            world.step()
        rows = rows_of(world.harness)
        rows = rows[np.sort(world.rng.sample(range(len(rows)), 5))]
        asking = world.rng.choice(wanted)

        now = searched(world.harness, asking, rows, remembered=False)
        assert searched(world.harness, asking, rows, remembered=True) == now
    assert world.harness.complaints == []


def count_dry_runs(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    made: list[list[int]] = []
    real = find_victims_in_columns

    def counted(dry_run: Any, state: Any, info: Any, rows: Any, *rest: Any) -> Any:
        made.append(rows.tolist())
        return real(dry_run, state, info, rows, *rest)

    monkeypatch.setattr("bayplan.preemption.search.find_victims_in_columns", counted)
    return made


def test_only_rows_that_changed_are_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    running = [pod(f"r{i}", cpu=4, node=f"n{i}", priority=0) for i in range(4)]
    harness = Harness(nodes=[node(f"n{i}", cpu=4) for i in range(4)], pods=running)
    made = count_dry_runs(monkeypatch)
    rows = rows_of(harness)
    harness.scheduler.nominator.put(harness.info(pod("w", cpu=1, priority=9, nominated="n0")))
    for number in range(3):
        searched(harness, pod(f"new{number}", cpu=3, priority=5), rows, remembered=True)
    made.clear()

    searched(harness, pod("again", cpu=3, priority=5), rows, remembered=True)
    assert made == []
    harness.scheduler.nominator.put(harness.info(pod("w2", cpu=1, priority=9, nominated="n2")))
    harness.scheduler.cache.add_pod(pod("r9", cpu=1, node="n3", priority=1))
    searched(harness, pod("more", cpu=3, priority=5), rows, remembered=True)

    assert sorted(made[0]) == [2, 3]


def test_a_pod_that_is_nominated_itself_is_tried_without_its_own_nomination() -> None:
    harness = Harness(nodes=[node("n1", cpu=4)], pods=[pod("r", cpu=4, node="n1", priority=0)])
    rows = rows_of(harness)
    other = pod("other", cpu=3, priority=5)
    itself = pod("itself", cpu=3, priority=5, nominated="n1")

    before = searched(harness, other, rows, remembered=True)
    harness.scheduler.nominator.put(harness.info(itself))

    assert searched(harness, itself, rows, remembered=True) == before
    assert searched(harness, other, rows, remembered=True) != before


class Moody(Plugin):
    """Refuses by the name of the node, as long as it is told to; fails where told to."""

    refuses = ""
    fails_on = ""
    depends = Depends.NODE

    def filter(self, state: Any, pod: PodInfo, node: NodeInfo) -> Status | None:
        if node.name == self.fails_on:
            raise RuntimeError("moody")
        return Unschedulable("moody") if node.name == self.refuses else None


def test_a_plugin_that_forgets_is_asked_again() -> None:
    running = [pod(f"r{i}", cpu=4, node=f"n{i}", priority=0) for i in range(2)]
    harness = Harness(nodes=[node(f"n{i}", cpu=4) for i in range(2)], pods=running, plugins=[Moody])
    rows, wanted = rows_of(harness), pod("new", cpu=3, priority=5)
    assert len(searched(harness, wanted, rows, remembered=True)[0]) == 2
    plugin = harness.plugin("Moody")
    plugin.refuses = "n1"
    plugin.version += 1

    assert [candidate.node_name for candidate in searched(harness, wanted, rows, remembered=True)[0]] == ["n0"]


def test_a_filter_that_fails_elsewhere_does_not_end_the_search() -> None:
    """Rows that nobody asks about are tried along with those that somebody does; their failure is nobody's business."""
    running = [pod(f"r{i}", cpu=4, node=f"n{i}", priority=0) for i in range(4)]
    harness = Harness(nodes=[node(f"n{i}", cpu=4) for i in range(4)], pods=running, plugins=[Moody])
    rows, wanted = rows_of(harness), pod("new", cpu=3, priority=5)
    searched(harness, wanted, rows, remembered=True)
    for name in ("n1", "n2"):
        harness.scheduler.cache.add_pod(pod(f"more-{name}", cpu="1m", node=name, priority=0))
    plugin: DefaultPreemption = harness.plugin("DefaultPreemption")
    info = harness.info(wanted)
    state = harness.scheduler.decide(info).state
    harness.plugin("Moody").fails_on = "n2"
    found = Found()

    strategy = plugin._strategy(state, info)
    strategy.try_rows(rows[:2], found)
    strategy.finish(rows[:2], found)
    assert [candidate.node_name for candidate in plugin.all_candidates(found)] == ["n0", "n1"]


def test_few_shapes_are_outcomes() -> None:
    harness = Harness(nodes=[node("n0", cpu=4)], pods=[pod("r", cpu=4, node="n0", priority=0)])
    for number in range(20):
        searched(harness, pod(f"new{number}", cpu=3, priority=5 + number), rows_of(harness), remembered=True)

    assert len(harness.plugin("DefaultPreemption")._outcomes._by_shape) == 8
