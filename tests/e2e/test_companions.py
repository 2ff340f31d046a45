"""The companion plugins against a real kube-apiserver: the scenarios of the embedded cluster, played again."""

from __future__ import annotations

import pytest

from tests.companions import gangs, numa, quotas
from tests.companions.world import real_world
from tests.controlplane import ControlPlane


async def test_a_gang_of_sixteen_with_room_for_fifteen_binds_nobody_and_says_why(
    empty_control_plane: ControlPlane,
) -> None:
    async with real_world(empty_control_plane.kubeconfig) as world:
        await gangs.sixteen_with_room_for_fifteen(world)


async def test_a_gang_of_sixteen_with_room_for_sixteen_is_bound_whole(empty_control_plane: ControlPlane) -> None:
    async with real_world(empty_control_plane.kubeconfig) as world:
        await gangs.sixteen_with_room_for_sixteen(world)


@pytest.mark.parametrize("seed", range(5))
async def test_two_gangs_that_compete_finish_one_after_the_other(empty_control_plane: ControlPlane, seed: int) -> None:
    async with real_world(empty_control_plane.kubeconfig) as world:
        await gangs.two_gangs_for_ten_places(world, seed=seed)


async def test_a_scheduler_killed_with_half_a_gang_waiting_leaves_nothing_bound(
    empty_control_plane: ControlPlane,
) -> None:
    async with real_world(empty_control_plane.kubeconfig) as world:
        await gangs.killed_with_half_a_gang_waiting(world)


async def test_a_borrowed_quota_is_reclaimed_by_its_owner_and_no_pod_within_its_min_is_evicted(
    empty_control_plane: ControlPlane,
) -> None:
    async with real_world(empty_control_plane.kubeconfig) as world:
        await quotas.borrowed_quota_is_reclaimed(world)


async def test_a_numa_bound_pod_avoids_the_node_whose_zones_are_too_fragmented_though_its_sum_fits(
    empty_control_plane: ControlPlane,
) -> None:
    async with real_world(empty_control_plane.kubeconfig) as world:
        await numa.a_fragmented_node_is_avoided(world)


async def test_a_finished_member_does_not_count(empty_control_plane: ControlPlane) -> None:
    async with real_world(empty_control_plane.kubeconfig) as world:
        await gangs.a_finished_member_does_not_count(world)


async def test_a_group_that_failed_lets_another_go_first(empty_control_plane: ControlPlane) -> None:
    async with real_world(empty_control_plane.kubeconfig) as world:
        await gangs.a_group_that_failed_lets_another_go_first(world)


async def test_a_victim_makes_its_cell_fit(empty_control_plane: ControlPlane) -> None:
    async with real_world(empty_control_plane.kubeconfig) as world:
        await numa.a_victim_makes_its_cell_fit(world)


async def test_what_is_no_quantity_is_refused(empty_control_plane: ControlPlane) -> None:
    async with real_world(empty_control_plane.kubeconfig) as world:
        await quotas.what_is_no_quantity_is_refused(world)
