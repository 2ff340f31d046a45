"""Two schedulers at work at a time, as when the last requests of a leader arrive late.

Every pod with a claim is bound by one of them, and the other one takes nothing of it back.
"""

from __future__ import annotations

import pytest

from tests.companions.test_late_events import DEFAULTS, late_world
from tests.e2e.claim_controller import make_claims
from tests.e2e.device_objects import device_class, given, published, template, templated
from tests.e2e.objects import node

PODS = 12


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_a_pod_keeps_the_devices_that_it_was_bound_with(seed: int) -> None:
    async with late_world(seed) as (world, _):
        names = ["a", "b", "c"]
        await world.api.create(device_class(), template(1), *map(node, names), *(published(each, 8) for each in names))
        await world.api.create(*(templated(f"pod-{number}") for number in range(PODS)))
        await make_claims(world.api)
        running = [(await world.start_scheduler(DEFAULTS, seed=number))[1] for number in range(2)]
        await world.until_bound(PODS, seconds=300)
        await world.wait(30)
        for each in running:
            await world.end(each)
        pods, devices = await world.api.pods(), await given(world.api)

    places = {each["metadata"]["uid"]: [each["spec"]["nodeName"]] for each in pods}
    assert {uid: [pool for pool, _ in held] for uid, held in devices.items()} == places
