"""The companion plugins against a real kube-apiserver: the scenarios of the embedded cluster again."""

from __future__ import annotations

import pytest

from tests.companions import gangs
from tests.companions.scenarios import SCENARIOS
from tests.companions.world import real_world
from tests.controlplane import ControlPlane


@pytest.mark.parametrize("scenario", SCENARIOS)
async def test_scenario(empty_control_plane: ControlPlane, scenario: str) -> None:
    async with real_world(empty_control_plane.kubeconfig) as world:
        await SCENARIOS[scenario](world)


@pytest.mark.parametrize("seed", range(5))
async def test_two_gangs_that_compete_finish_one_after_the_other(empty_control_plane: ControlPlane, seed: int) -> None:
    async with real_world(empty_control_plane.kubeconfig) as world:
        await gangs.two_gangs_for_ten_places(world, seed=seed)
