"""The scenarios of the companion plugins, in one list: run on the embedded cluster and on a real API server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from tests.companions import gangs, numa, quotas
from tests.companions.world import World

SCENARIOS: dict[str, Callable[[World], Awaitable[None]]] = {
    "a gang of sixteen with room for fifteen has no pod bound and a reason": gangs.sixteen_with_room_for_fifteen,
    "a gang of sixteen with room for sixteen is bound whole": gangs.sixteen_with_room_for_sixteen,
    "a scheduler killed with half a gang waiting leaves nothing bound": gangs.killed_with_half_a_gang_waiting,
    "a finished member does not count": gangs.a_finished_member_does_not_count,
    "a group that failed lets another go first": gangs.a_group_that_failed_lets_another_go_first,
    "a borrowed quota is reclaimed, and no pod within its min is evicted": quotas.borrowed_quota_is_reclaimed,
    "an invalid quantity is refused": quotas.what_is_no_quantity_is_refused,
    "a node with fragmented cells is avoided though its sum fits": numa.a_fragmented_node_is_avoided,
    "a victim makes its cell fit": numa.a_victim_makes_its_cell_fit,
}
