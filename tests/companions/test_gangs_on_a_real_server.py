"""Two gangs that compete, a hundred times over, against a real kube-apiserver.

Ten minutes of it, so neither `make test` nor `make e2e` plays them all (the latter plays the first five):

    python -m pytest -m slow tests/companions
"""

from __future__ import annotations

import pytest

from tests.companions import gangs
from tests.companions.world import real_world
from tests.controlplane import ControlPlane
from tests.controlplane.fixtures import control_plane, empty_control_plane

__all__ = ["control_plane", "empty_control_plane"]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5, 100))
async def test_two_gangs_that_compete_finish_one_after_the_other(empty_control_plane: ControlPlane, seed: int) -> None:
    async with real_world(empty_control_plane.kubeconfig) as world:
        await gangs.two_gangs_for_ten_places(world, seed=seed)
