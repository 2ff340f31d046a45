"""No more victims than needed, however late the watch tells of what was evicted."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from bayplan.framework.resources import resource_info
from bayplan.plugins.community.capacity_scheduling.elastic_quota import ElasticQuota
from tests.companions import quotas
from tests.companions.late_events import LateEvents
from tests.companions.world import World, embedded_world
from tests.e2e.objects import node, pod, priority_class

DEFAULTS = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
podInitialBackoffSeconds: 1
podMaxBackoffSeconds: 2
"""
SEEDS = range(4)
LATE_SECONDS = (1.5, 0.3, 4.0, 8.0)
"""How late an event may be, by seed."""


@asynccontextmanager
async def late_world(seed: int) -> AsyncIterator[tuple[World, list[LateEvents]]]:
    async with embedded_world() as world:
        connect, opened = world.connect, list[LateEvents]()

        def late() -> LateEvents:
            most = LATE_SECONDS[seed % len(LATE_SECONDS)]
            opened.append(LateEvents(connect(), world.clock, seed=seed, most_seconds=most))
            return opened[-1]

        world.connect = late
        hurrying = asyncio.create_task(_keep_changing(world))
        try:
            yield world, opened
            assert not hurrying.done()
        finally:
            hurrying.cancel()


async def _keep_changing(world: World) -> None:
    """Nodes and quotas change all the time, and whoever waits tries again before the victims are seen to go."""
    for number in itertools.count():
        await world.clock.sleep(0.4)
        for metadata in [item["metadata"] for item in await world.api.items("/api/v1/nodes")]:
            allocatable = {"cpu": f"{4000 + number % 100}m"}
            path = f"/api/v1/nodes/{metadata['name']}/status"
            await world.api.call("PATCH", path, {"status": {"allocatable": allocatable}}, allow=[404])
        listed = await world.transport.request("GET", resource_info(ElasticQuota).path)
        for metadata in [item["metadata"] for item in json.loads(listed.body).get("items", ())]:
            path = f"{World.path_of(ElasticQuota, metadata['namespace'])}/{metadata['name']}"
            await world.api.call("PATCH", path, {"metadata": {"annotations": {"number": str(number)}}}, allow=[404])


@pytest.mark.parametrize("seed", SEEDS)
async def test_quotas_take_back_what_was_lent_and_no_more(seed: int) -> None:
    async with late_world(seed) as (world, opened):
        await quotas.borrowed_quota_is_reclaimed(world)

        assert len(opened[-1].deleted) == 4


@pytest.mark.parametrize("seed", SEEDS)
async def test_each_preemptor_evicts_one_pod_where_one_is_enough(seed: int) -> None:
    async with late_world(seed) as (world, opened):
        await world.api.create(priority_class("high", 9), *(node(f"n{i}", cpu="4") for i in range(3)))
        async with world.scheduling(DEFAULTS):
            await world.api.create(*(pod(f"low-{i}", cpu="1") for i in range(14)))
            await world.until_bound(12)
            await world.api.create(*(pod(f"high-{i}", cpu="1", priorityClassName="high") for i in range(6)))

            async def high_are_placed() -> bool:
                return sum("/high-" in key for key in await world.bound()) == 6

            await world.until(high_are_placed, what="six pods of high priority placed", seconds=300)
            await world.wait(30)

            bound = await world.bound()
            assert (len(bound), sum("/high-" in key for key in bound)) == (12, 6)
        assert len(opened[-1].deleted) == 6


TWO_PROFILES = f"{DEFAULTS}profiles: [{{schedulerName: default-scheduler}}, {{schedulerName: other-scheduler}}]\n"


@pytest.mark.parametrize("seed", SEEDS)
async def test_preemptors_of_two_profiles_evict_one_pod_each(seed: int) -> None:
    async with late_world(seed) as (world, opened):
        await world.api.create(priority_class("high", 9), *(node(f"n{i}", cpu="4") for i in range(3)))
        async with world.scheduling(TWO_PROFILES):
            await world.api.create(*(pod(f"low-{i}", cpu="1") for i in range(12)))
            await world.until_bound(12)
            names = ("default-scheduler", "other-scheduler")
            high = [pod(f"high-{i}", cpu="1", priorityClassName="high", schedulerName=names[i % 2]) for i in range(6)]
            await world.api.create(*high)

            async def high_are_placed() -> bool:
                return sum("/high-" in key for key in await world.bound()) == 6

            await world.until(high_are_placed, what="six pods of high priority placed", seconds=300)
        assert len(opened[-1].deleted) == 6


async def test_watches_that_freeze_are_noticed_and_pods_are_bound_nevertheless() -> None:
    """A proxy may hold back the watches and let everything else pass."""
    async with late_world(0) as (world, opened):
        await world.api.create(node("n0", cpu="4"))
        async with world.scheduling(DEFAULTS) as live:
            await world.api.create(pod("before"))
            await world.until_bound(1)
            await world.wait(5)
            assert live.watching.is_synced
            opened[-1].is_frozen = True
            await world.api.create(pod("meanwhile"))
            await world.until_bound(2, seconds=100)
            assert "/api/v1/pods (its watch fell silent)" in live.watching.unsynced()
            opened[-1].is_frozen = False

            async def is_synced() -> bool:
                return live.watching.is_synced

            await world.until(is_synced, what="watches heard again", seconds=300)
