"""The fixture with a whole cluster in it."""

from __future__ import annotations

import pytest

from bayplan.framework import NodeInfo, Plugin, PodInfo
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
