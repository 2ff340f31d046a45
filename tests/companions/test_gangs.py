"""Coscheduling on the embedded cluster, on a virtual clock."""

from __future__ import annotations

import pytest

from tests.companions import gangs
from tests.companions.world import embedded_world


async def test_a_gang_of_sixteen_with_room_for_fifteen_binds_nobody_and_says_why() -> None:
    async with embedded_world() as world:
        await gangs.sixteen_with_room_for_fifteen(world)


async def test_a_gang_of_sixteen_with_room_for_sixteen_is_bound_whole() -> None:
    async with embedded_world() as world:
        await gangs.sixteen_with_room_for_sixteen(world)


SEEDS = [seed if seed < 20 else pytest.param(seed, marks=pytest.mark.slow) for seed in range(100)]


@pytest.mark.parametrize("seed", SEEDS)
async def test_two_gangs_that_compete_finish_one_after_the_other(seed: int) -> None:
    async with embedded_world() as world:
        await gangs.two_gangs_for_ten_places(world, seed=seed)


async def test_a_scheduler_killed_with_half_a_gang_waiting_leaves_nothing_bound() -> None:
    async with embedded_world() as world:
        await gangs.killed_with_half_a_gang_waiting(world)


async def test_a_finished_member_does_not_count() -> None:
    async with embedded_world() as world:
        await gangs.a_finished_member_does_not_count(world)


async def test_a_group_that_failed_lets_another_go_first() -> None:
    async with embedded_world() as world:
        await gangs.a_group_that_failed_lets_another_go_first(world)
