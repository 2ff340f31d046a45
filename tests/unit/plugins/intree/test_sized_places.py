"""Things of a size, reachable from some nodes."""

from __future__ import annotations

import pytest
from tests.unit.plugins.intree.small_cluster import SmallCluster, node

from bayplan.api.node_selectors import NodeRequirement, NodeTerm
from bayplan.plugins.intree.node_places import EVERYWHERE, NOWHERE, PlaceMasks, Places
from bayplan.plugins.intree.sized_places import SizedPlaces


def at(key: str, *values: str) -> Places:
    return (NodeTerm((NodeRequirement(key, "In", values),), ()),)


@pytest.fixture
def cluster() -> SmallCluster:
    return SmallCluster(*(node(f"n{i}", labels={"host": f"n{i}", "zone": zone}) for i, zone in enumerate("aab")))


@pytest.fixture
def things(cluster: SmallCluster) -> SizedPlaces:
    things = SizedPlaces(cluster.state.nodes, PlaceMasks(cluster.state.nodes))
    things.put("on-n1", 5, at("host", "n1"), "red")
    things.put("in-a", 3, at("zone", "a"), "red")
    things.put("lost", 9, NOWHERE, "blue")
    return things


def reach(things: SizedPlaces, size: int, groups: list[int] | None = None) -> list[bool]:
    mask: list[bool] = things.reach(things.at_least(size, groups)).tolist()
    return mask


def names(things: SizedPlaces, row: int, size: int = 0) -> list[str]:
    slots = things.smallest_first(things.reachable_from(row, things.at_least(size)))
    return [things.name(slot) for slot in slots]


def test_large_enough_things_are_reached(things: SizedPlaces) -> None:
    assert reach(things, 0) == [True, True, False]
    assert reach(things, 3) == [True, True, False]
    assert reach(things, 4) == [False, True, False]
    assert reach(things, 6) == [False, False, False]


def test_a_thing_everywhere_is_reached_from_everywhere(things: SizedPlaces) -> None:
    things.put("anywhere", 7, EVERYWHERE, "red")

    assert reach(things, 6) == [True, True, True]
    assert names(things, 2) == ["anywhere"]


def test_what_a_row_reaches_comes_smallest_first(things: SizedPlaces) -> None:
    things.put("also-in-a", 3, at("zone", "a"), "red")

    assert names(things, 0) == ["also-in-a", "in-a"]
    assert names(things, 1) == ["also-in-a", "in-a", "on-n1"]
    assert names(things, 1, size=4) == ["on-n1"]
    assert names(things, 2) == []


def test_groups_and_names_can_be_left_out(things: SizedPlaces) -> None:
    assert things.groups == {"red": 0, "blue": 1}
    assert reach(things, 0, [1]) == [False, False, False]
    assert reach(things, 0, [0, 1]) == [True, True, False]
    assert reach(things, 0, []) == [False, False, False]
    assert things.reach(things.at_least(0, without=["in-a", "unknown"])).tolist() == [False, True, False]


def test_things_change_and_go(things: SizedPlaces) -> None:
    things.put("on-n1", 5, at("host", "n2"), "red")
    assert reach(things, 4) == [False, False, True]
    things.remove("on-n1")
    things.remove("on-n1")
    assert reach(things, 4) == [False, False, False]
    assert "on-n1" not in things
    assert len(things) == 2
    things.put("new", 8, at("host", "n0"), "green")
    assert reach(things, 4) == [True, False, False]
    assert "new" in things


def test_there_is_room_for_many(cluster: SmallCluster, things: SizedPlaces) -> None:
    for number in range(40):
        things.put(f"t{number}", 100 + number, at("host", f"n{number % 3}"), number)

    assert len(things) == 43
    assert reach(things, 138) == [True, False, True]
    assert names(things, 0, size=130) == ["t30", "t33", "t36", "t39"]
    assert things.places(things.at_least(139)[0]) == at("host", "n0")


def test_places_follow_the_labels_of_the_nodes(cluster: SmallCluster, things: SizedPlaces) -> None:
    assert reach(things, 4) == [False, True, False]
    cluster.cache.add_node(node("n1", labels={"host": "x"}))
    cluster.cache.add_node(node("n2", labels={"host": "n1", "zone": "a"}))
    assert reach(things, 4) == [False, False, True]
    assert reach(things, 3) == [True, False, True]
    cluster.cache.add_node(node("n3", labels={"host": "n1"}))
    assert reach(things, 4) == [False, False, True, True]


def test_negative_sizes_are_as_good_as_none(things: SizedPlaces) -> None:
    things.put("odd", -5, at("host", "n2"), "red")

    assert reach(things, -7) == [True, True, True]
    assert reach(things, 1) == [True, True, False]
