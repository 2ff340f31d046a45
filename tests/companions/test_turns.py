"""A leader is killed amid its evictions, and the one that follows has heard nothing of them on its watch.

No more pods are evicted than one leader would have needed, and no room is given away twice.
"""

from __future__ import annotations

import asyncio

import pytest

from tests.companions import quotas
from tests.companions.late_events import LateEvents
from tests.companions.test_late_events import DEFAULTS, late_world
from tests.companions.world import World
from tests.e2e.ledger import overcommitted
from tests.e2e.objects import node, pod, priority_class

SEEDS = (1, 2)
_LATE_SECONDS = 5.0


class Turns:
    """One replica leads; another stands by, whose watch falls silent with the first eviction."""

    def __init__(self, world: World, opened: list[LateEvents], config: str) -> None:
        self._world = world
        self._opened = opened
        self._config = config
        self._may_lead = asyncio.Event()

    async def start_leader(self) -> None:
        _, self._leader = await self._world.start_scheduler(self._config)

    async def start_follower(self) -> None:
        _, self._follower = await self._world.start_scheduler(self._config, seed=1, may_lead=self._may_lead)
        self._opened[-1].most_seconds = 0.0

    @property
    def evicted(self) -> set[str]:
        return {path for each in self._opened for path in each.deleted}

    async def change_after(self, evictions: int) -> None:
        async def has_evicted() -> bool:
            self._opened[-1].is_frozen = bool(self.evicted)
            return len(self.evicted) >= evictions

        await self._world.until(has_evicted, what=f"{evictions} evicted", step=0.05)
        await self._world.kill(self._leader)
        self._may_lead.set()
        await self._world.wait(_LATE_SECONDS)
        self._opened[-1].is_frozen = False

    async def end(self) -> None:
        await self._world.end(self._follower)
        nodes = await self._world.api.items("/api/v1/nodes")
        assert overcommitted(nodes, await self._world.api.pods()) == []


@pytest.mark.parametrize("seed", SEEDS)
async def test_quotas_take_back_what_was_lent_and_no_more_when_the_leader_changes(seed: int) -> None:
    async with late_world(seed) as (world, opened):
        turns = Turns(world, opened, quotas.CAPACITY)
        await quotas.set_up(world)
        await turns.start_leader()
        await quotas.lend(world, wanted=8)
        await turns.start_follower()
        await quotas.ask_back(world)
        await turns.change_after(1 + seed % 3)
        await quotas.see_given_back(world, seconds=300)
        await turns.end()

        assert len(turns.evicted) == 4


@pytest.mark.parametrize("seed", SEEDS)
async def test_each_preemptor_evicts_one_pod_when_the_leader_changes(seed: int) -> None:
    async with late_world(seed) as (world, opened):
        turns = Turns(world, opened, DEFAULTS)
        await world.api.create(priority_class("high", 9), *(node(f"n{i}", cpu="4") for i in range(3)))
        await turns.start_leader()
        await world.api.create(*(pod(f"low-{i}", cpu="1") for i in range(12)))
        await world.until_bound(12)
        await turns.start_follower()
        await world.api.create(*(pod(f"high-{i}", cpu="1", priorityClassName="high") for i in range(6)))
        await turns.change_after(1 + seed % 5)

        async def high_are_placed() -> bool:
            return sum("/high-" in key for key in await world.bound()) == 6

        await world.until(high_are_placed, what="six pods of high priority placed", seconds=300)
        await world.wait(30)
        await turns.end()

        assert len(turns.evicted) == 6
