"""The companion plugins on the embedded cluster, on a virtual clock."""

from __future__ import annotations

import pytest

from tests.companions import gangs
from tests.companions.scenarios import SCENARIOS
from tests.companions.world import embedded_world

SEEDS = [seed if seed < 20 else pytest.param(seed, marks=pytest.mark.slow) for seed in range(100)]


@pytest.mark.parametrize("scenario", SCENARIOS)
async def test_scenario(scenario: str) -> None:
    async with embedded_world() as world:
        await SCENARIOS[scenario](world)


@pytest.mark.parametrize("seed", SEEDS)
async def test_two_gangs_that_compete_finish_one_after_the_other(seed: int) -> None:
    async with embedded_world() as world:
        await gangs.two_gangs_for_ten_places(world, seed=seed)
