"""The configuration is read again amid evictions: the new plugins know of what the old ones are evicting."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from bayplan.app.live import LiveScheduler
from bayplan.config.loading import load_config
from bayplan.config.profiles import resolve_profiles
from bayplan.plugins.intree import default_registry
from tests.companions import quotas
from tests.companions.test_late_events import DEFAULTS, late_world
from tests.companions.world import World
from tests.e2e.objects import node, pod, priority_class

SEEDS = range(3)


@asynccontextmanager
async def reloading(world: World, live: LiveScheduler, config: str) -> AsyncIterator[None]:
    """Reads the configuration again, several times a second."""

    async def reload() -> None:
        while True:
            registry, loaded = default_registry(), load_config(config)
            live.reload(loaded, resolve_profiles(loaded, registry), registry)
            await world.clock.sleep(0.3)

    task = asyncio.create_task(reload())
    try:
        yield
        assert not task.done()
    finally:
        task.cancel()


@pytest.mark.parametrize("seed", SEEDS)
async def test_quotas_take_back_what_was_lent_and_no_more_while_plugins_are_replaced(seed: int) -> None:
    async with late_world(seed) as (world, opened):
        await quotas.set_up(world)
        async with world.scheduling(quotas.CAPACITY) as live:
            await quotas.lend(world, wanted=8)
            async with reloading(world, live, quotas.CAPACITY):
                await quotas.ask_back(world)
                await quotas.see_given_back(world, seconds=300)

        assert len(opened[-1].deleted) == 4


@pytest.mark.parametrize("seed", SEEDS)
async def test_each_preemptor_evicts_one_pod_while_plugins_are_replaced(seed: int) -> None:
    async with late_world(seed) as (world, opened):
        await world.api.create(priority_class("high", 9), *(node(f"n{i}", cpu="4") for i in range(3)))

        async def high_are_placed() -> bool:
            return sum("/high-" in key for key in await world.bound()) == 6

        async with world.scheduling(DEFAULTS) as live:
            await world.api.create(*(pod(f"low-{i}", cpu="1") for i in range(12)))
            await world.until_bound(12)
            async with reloading(world, live, DEFAULTS):
                await world.api.create(*(pod(f"high-{i}", cpu="1", priorityClassName="high") for i in range(6)))
                await world.until(high_are_placed, what="six pods of high priority placed", seconds=300)

        assert len(opened[-1].deleted) == 6
