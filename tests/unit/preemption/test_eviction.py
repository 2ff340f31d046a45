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
        self.waiting = dict[str, Any]()
        self.on_delete = lambda: None
        handle = SimpleNamespace(
            lasting=self.lasting,
            cluster=self.harness.cluster,
            dry_run=self.harness.plugin("DefaultPreemption").handle.dry_run,
            nominator=FixedNominator(),
            api=SimpleNamespace(patch_pod_status=self._patch, delete_pod=self._delete),
            waiting_pods=self.waiting,
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
        self.on_delete()

    def hold(self, name: str, node: str) -> PodInfo:
        """A pod that has the node and waits at Permit."""
        held = self.cache.assume(self.harness.info(pod(name)), node)
        self.waiting[held.uid] = SimpleNamespace(preempt=lambda plugin, message: True)
        return held

    def release(self, held: PodInfo) -> None:
        """Its wait ends without success."""
        del self.waiting[held.uid]
        self.cache.forget(held.uid)

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


@pytest.mark.parametrize("node", ["n1", "n2"])
async def test_a_victim_that_was_held_at_permit_may_get_another_place(node: str) -> None:
    bench = Bench()
    held = bench.hold("gang", "n1")
    bench.evictions.start(bench.preemptor, "n1", [held])
    await bench.tasks[0]
    assert bench.evictions.is_evicted(held)

    bench.release(held)
    again = bench.hold("gang", node)
    assert not bench.evictions.is_leaving(again)
    assert not bench.evictions.is_awaited_on(bench.node, bench.preemptor)
    assert list(bench.evictions.evicted()) == []

    other = bench.harness.info(pod("other", priority=99))
    bench.evictions.start(other, node, [again])
    await bench.tasks[1]
    assert bench.evictions.is_evicted(again)
    assert bench.deleted == []


@pytest.mark.parametrize("node", ["n2", ""], ids=["elsewhere", "nowhere"])
async def test_a_pod_that_lost_its_place_while_others_were_evicted_is_left_alone(node: str) -> None:
    """The last victim is evicted after all others, which may take long: its group was given up meanwhile."""
    bench = Bench("a")
    held = bench.hold("gang", "n1")

    def give_up() -> None:
        bench.release(held)
        if node:
            bench.cache.add_pod(bench.harness.info(pod("gang", node=node)))

    bench.on_delete = give_up
    bench.evictions.start(bench.preemptor, "n1", [bench.victim("a"), held])
    await bench.tasks[0]

    assert bench.deleted == ["a"]
