"""What nominated pods change is remembered, and remembered right."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from bayplan.api.pod import Pod
from bayplan.framework import Depends, NodeInfo, Plugin, PodInfo, Status, Unschedulable
from bayplan.framework.runtime import filtering
from bayplan.framework.runtime.remembered.nominated_rejections import NominatedRejections
from bayplan.testing import Harness, node, pod


class Crowd(Plugin):
    """At most three pods of one app; looks at the pods of the node."""

    depends = Depends.ROW

    def filter(self, state: Any, pod: PodInfo, node: NodeInfo) -> Status | None:
        alike = [other for other in node.pods.values() if other.labels.get("app") == pod.labels.get("app")]
        return Unschedulable("crowded") if len(alike) > 2 else None


class World:
    """A cluster in which pods and nominations come and go."""

    def __init__(self, seed: int, plugins: list[type[Plugin]]) -> None:
        self.rng = Random(seed)
        self.harness = Harness(nodes=[node(f"n{i}", cpu=4, pods=6) for i in range(8)], plugins=plugins)
        self.born = 0

    def step(self) -> None:
        cache, nominator = self.harness.scheduler.cache, self.harness.scheduler.nominator
        self.born += 1
        what, where = self.rng.randrange(6), f"n{self.rng.randrange(8)}"
        if what == 0:
            cache.add_pod(pod(f"r{self.born}", cpu=1, node=where, labels={"app": self.rng.choice("ab")}))
        elif what == 1:
            cache.remove_pod(f"uid-default-r{self.rng.randrange(self.born)}")
        elif what in (2, 3):
            name, priority = f"w{self.rng.randrange(8)}", self.rng.randint(0, 5)
            waiting = pod(name, cpu=2, priority=priority, nominated=where, labels={"app": self.rng.choice("ab")})
            nominator.put(self.harness.info(waiting))
        elif what == 4:
            nominator.drop(self.harness.info(pod(f"w{self.rng.randrange(8)}")).uid)
        else:
            cache.add_node(node(where, cpu=self.rng.choice((2, 4, 8)), pods=6))

    def rejected(self, asking: Pod) -> dict[int, Status]:
        decision = self.harness.scheduler.decide(self.harness.info(asking))
        return {row: status for status, rows in decision.rejected_groups() for row in rows.tolist()}


@pytest.mark.parametrize("plugins", [[], [Crowd]])
@pytest.mark.parametrize("seed", range(8))
def test_what_is_remembered_is_what_would_be_found_now(seed: int, plugins: list[type[Plugin]]) -> None:
    world = World(seed, plugins)
    asking = [pod("a", cpu=2, priority=2, labels={"app": "a"}), pod("b", cpu=1, labels={"app": "b"})]
    asking.append(pod("w1", cpu=2, priority=3, labels={"app": "a"}))
    framework = world.harness.scheduler.framework("default-scheduler")
    for _ in range(60):
        for _ in range(world.rng.randrange(3)):
            world.step()
        one = world.rng.choice(asking)

        remembered = world.rejected(one)
        kept, framework.dry_runs.nominated_rejections = (
            framework.dry_runs.nominated_rejections,
            NominatedRejections(framework.cluster.nodes),
        )
        assert world.rejected(one) == remembered
        framework.dry_runs.nominated_rejections = kept
    assert world.harness.complaints == []


def test_only_nodes_that_changed_are_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []
    real = filtering._status_with

    def noted(framework: Any, state: Any, info: Any, row: int, pods: Any) -> Any:
        looked.append(row)
        return real(framework, state, info, row, pods)

    monkeypatch.setattr(filtering, "_status_with", noted)
    harness = Harness(nodes=[node(f"n{i}", cpu=4) for i in range(4)])
    for name in ("n1", "n2"):
        harness.scheduler.nominator.put(harness.info(pod(f"waits-for-{name}", cpu=3, priority=5, nominated=name)))
    small, large = pod("small", cpu=1), pod("large", cpu=2)
    decide = harness.scheduler.decide

    assert len(decide(harness.info(small)).rejected_groups()) == 0
    assert [rows.tolist() for _, rows in decide(harness.info(large)).rejected_groups()] == [[1, 2]]
    assert looked == [1, 2, 1, 2]

    looked.clear()
    harness.scheduler.cache.add_pod(pod("other", cpu=1, node="n0"))
    harness.scheduler.cache.add_pod(pod("another", cpu=1, node="n2"))

    assert [rows.tolist() for _, rows in decide(harness.info(small)).rejected_groups()] == [[2]]
    assert looked == [2]


def test_few_shapes_are_remembered() -> None:
    harness = Harness(nodes=[node("n0", cpu=4)])
    harness.scheduler.nominator.put(harness.info(pod("waits", cpu=1, priority=5, nominated="n0")))
    for number in range(50):
        harness.scheduler.decide(harness.info(pod("p", cpu=1, labels={"app": str(number)})))

    assert len(harness.scheduler.framework("default-scheduler").dry_runs.nominated_rejections._by_shape) == 32
