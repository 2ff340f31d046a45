"""NodeResourceTopologyMatch on the embedded cluster, on a virtual clock."""

from __future__ import annotations

from tests.companions import numa
from tests.companions.world import embedded_world


async def test_a_numa_bound_pod_avoids_the_node_whose_zones_are_too_fragmented_though_its_sum_fits() -> None:
    async with embedded_world() as world:
        await numa.a_fragmented_node_is_avoided(world)


async def test_a_victim_makes_its_cell_fit() -> None:
    async with embedded_world() as world:
        await numa.a_victim_makes_its_cell_fit(world)
