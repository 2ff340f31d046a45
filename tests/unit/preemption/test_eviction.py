"""Evictions under way: a victim that is evicted is known to leave until it is gone, and nobody evicts it twice."""

from __future__ import annotations

from collections.abc import Coroutine
from types import SimpleNamespace
from typing import Any

import pytest

from bayplan.cluster.pod_info import PodInfo
from bayplan.framework.handle import LastingState
from bayplan.framework.offline import FixedNominator
from bayplan.preemption.eviction import Evictions, EvictionsUnderWay, kept_nomination
from bayplan.testing import Harness, pod


class Bench:
    """Evictions over a cluster, with the API calls written down; a pod in `fails_on` cannot be deleted."""

    def __init__(self, *victims: str) -> None:
        self.harness = Harness(nodes=["n1", "n2"], pods=[pod(name, node="n1") for name in victims])
        self.cache = self.harness.scheduler.cache
        self.deleted, self.fails_on = list[str](), set[str]()
        self.tasks, self.activated = list[Coroutine[Any, Any, None]](), list[str]()
        self.lasting = LastingState()
        handle = SimpleNamespace(
            lasting=self.lasting,
            cluster=self.harness.cluster,
            dry_run=self.harness.plugin("DefaultPreemption").handle.dry_run,
            nominator=FixedNominator(),
            api=SimpleNamespace(patch_pod_status=self._patch, delete_pod=self._delete),
            waiting_pods={},
            start_task=lambda name, work: self.tasks.append(work),
            activate=lambda infos: self.activated.extend(info.name for info in infos),
            recorder=SimpleNamespace(event=lambda pod, **said: None),
        )
        self.evictions = Evictions(SimpleNamespace(name="Test", handle=handle))  # type: ignore[arg-type]
        self.preemptor = self.harness.info(pod("new", priority=9))
        self.node = self.harness.cluster.nodes.at(0)

    async def _patch(self, pod: PodInfo, **fields: object) -> None:
        pass

    async def _delete(self, pod: PodInfo) -> None:
        if pod.name in self.fails_on:
            raise RuntimeError("gone wrong")
        self.deleted.append(pod.name)

    def victim(self, name: str) -> PodInfo:
        found = self.cache.pod(f"uid-default-{name}")
        assert found is not None
        return found


async def test_a_victim_leaves_until_the_watch_shows_that_it_is_gone() -> None:
    bench = Bench("a")
    evictions, victim = bench.evictions, bench.victim("a")
    evictions.start(bench.preemptor, "n1", [victim])
    assert evictions.is_leaving(victim)
    await bench.tasks[0]

    assert evictions.is_evicted(victim)
    assert evictions.is_awaited_on(bench.node, bench.preemptor)
    assert evictions.nominated_node(bench.preemptor) is bench.node
    assert kept_nomination(bench.preemptor, bench.node) == "n1"

    bench.cache.remove_pod(victim.uid)
    assert not evictions.is_awaited_on(bench.node, bench.preemptor)
    assert evictions.nominated_node(bench.preemptor) is None
    assert list(evictions.evicted()) == []


async def test_nobody_is_evicted_for_two_preemptors() -> None:
    bench = Bench("a", "b")
    a, b, other = bench.victim("a"), bench.victim("b"), bench.harness.info(pod("other", priority=99))
    bench.evictions.start(bench.preemptor, "n1", [a])
    bench.evictions.start(other, "n1", [a, b])
    for task in bench.tasks:
        await task

    assert bench.deleted == ["a", "b"]
    assert bench.evictions.is_awaited_on(bench.node, other)


@pytest.mark.parametrize("fails_on", ["a", "b"])
async def test_a_victim_that_could_not_be_evicted_may_be_chosen_again(fails_on: str) -> None:
    bench = Bench("a", "b")
    a, b = bench.victim("a"), bench.victim("b")
    bench.fails_on = {fails_on}
    bench.evictions.start(bench.preemptor, "n1", [a, b])
    with pytest.raises(RuntimeError, match="gone wrong"):
        await bench.tasks[0]

    assert bench.activated == ["new"]
    assert bench.evictions.is_evicted(a) == (fails_on == "b")
    assert not bench.evictions.is_evicted(b)


async def test_victims_of_preemptors_that_never_come_back_are_forgotten() -> None:
    names = [f"v{number}" for number in range(300)]
    bench = Bench(*names)
    for name in names:
        victim, preemptor = bench.victim(name), bench.harness.info(pod(f"for-{name}", priority=9))
        bench.evictions.start(preemptor, "n1", [victim])
        await bench.tasks.pop()
        bench.cache.remove_pod(victim.uid)

    known = bench.lasting.get(EvictionsUnderWay)
    assert len(known.leaving) <= 64
    assert len(known.victims) <= 64
