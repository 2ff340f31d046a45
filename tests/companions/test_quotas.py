"""CapacityScheduling on the embedded cluster, on a virtual clock."""

from __future__ import annotations

from tests.companions import quotas
from tests.companions.world import embedded_world


async def test_a_borrowed_quota_is_reclaimed_by_its_owner_and_no_pod_within_its_min_is_evicted() -> None:
    async with embedded_world() as world:
        await quotas.borrowed_quota_is_reclaimed(world)


async def test_what_is_no_quantity_is_refused() -> None:
    async with embedded_world() as world:
        await quotas.what_is_no_quantity_is_refused(world)
