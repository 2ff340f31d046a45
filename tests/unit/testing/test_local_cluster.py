"""The fixture with a whole cluster in it."""

from __future__ import annotations

import pytest

from bayplan.framework import (
    CustomResource,
    EventHint,
    NodeInfo,
    NotFound,
    Plugin,
    PodInfo,
    ResourcePart,
    Status,
    Unschedulable,
)
from bayplan.framework.objects import Metadata
from bayplan.testing import cluster, node, pod


class PreferTwo(Plugin):
    """Prefers the node whose name ends in 2."""

    def score(self, state: object, pod: PodInfo, node: NodeInfo) -> int:
        return 100 if node.name.endswith("2") else 0


async def test_a_pod_is_scheduled_by_the_plugin_under_test() -> None:
    async with cluster(nodes=3, plugins=[PreferTwo]) as local:
        await local.create(pod("web"))

        assert await local.node_of("web") == "node-2"


async def test_a_pod_that_fits_nowhere_says_why() -> None:
    async with cluster(nodes=[node("small", cpu=1)]) as local:
        await local.create(pod("big", cpu="64"))

        assert "1 Insufficient cpu" in await local.pending_message("big")


async def test_a_pod_gets_its_node_once_there_is_room() -> None:
    async with cluster(nodes=[node("small", cpu=1)]) as local:
        await local.create(pod("first", cpu="800m"))
        await local.node_of("first")
        await local.create(pod("second", cpu="800m"))
        await local.pending_message("second")
        await local.delete(pod("first"))

        assert await local.node_of("second") == "small"


async def test_waiting_in_vain_shows_the_message() -> None:
    async with cluster(nodes=[node("small", cpu=1)]) as local:
        await local.create(pod("big", cpu="64"))
        await local.pending_message("big")

        with pytest.raises(AssertionError, match="Insufficient cpu"):
            await local.node_of("big", within=0.05)


class PoolSpec(ResourcePart):
    licenses: int = 0


class LicensePool(CustomResource, group="licensing.example.com", version="v1", plural="licensepools", owned=True):
    spec: PoolSpec


class Zone(CustomResource, group="licensing.example.com", version="v1", plural="zones", scope="Cluster"):
    """Watched only."""

    spec: PoolSpec


class LicenseFit(Plugin):
    """Takes nodes while the pool has licences."""

    watches = (LicensePool, Zone)

    def filter(self, state: object, pod: PodInfo, node: NodeInfo) -> Status | None:
        pool = self.handle.resources(LicensePool).get("ide", "default")
        return None if pool is not None and pool.spec.licenses else Unschedulable("no licence left")

    def events_to_register(self) -> list[EventHint]:
        return [EventHint(LicensePool.changes())]


async def test_custom_resources_of_plugins_are_created_patched_and_deleted() -> None:
    pool = LicensePool(metadata=Metadata(name="ide", namespace="default"), spec=PoolSpec(licenses=0))
    async with cluster(nodes=1, plugins=[LicenseFit]) as local:
        await local.create(pool, Zone(metadata=Metadata(name="z"), spec=PoolSpec()), pod("web"))
        message = await local.pending_message("web")
        patched = await local.patch(pool, {"spec": {"licenses": 2}})
        placed = await local.node_of("web")
        await local.delete(pool)
        with pytest.raises(NotFound):
            await local.get(pool)

    assert "no licence left" in message
    assert patched["spec"]["licenses"] == 2
    assert placed == "node-1"


async def test_custom_resources_may_be_there_from_the_start_and_given_as_data() -> None:
    pool = {
        "apiVersion": "licensing.example.com/v1",
        "kind": "LicensePool",
        "metadata": {"name": "ide", "namespace": "default"},
        "spec": {"licenses": 1},
    }
    async with cluster(nodes=1, plugins=[LicenseFit], objects=[pool]) as local:
        await local.create(pod("web"))

        assert await local.node_of("web") == "node-1"
        assert (await local.get(pool))["spec"] == {"licenses": 1}


async def test_a_kind_that_nobody_reads_is_named_with_the_way_to_use_it() -> None:
    async with cluster(nodes=1) as local:
        with pytest.raises(ValueError, match=r"`Widget` is no kind that scheduling reads or a plugin watches"):
            await local.create({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}})
