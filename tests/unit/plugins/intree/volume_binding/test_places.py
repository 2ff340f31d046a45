"""Places by labels, their masks, and things of a size that are reachable from some nodes."""

from __future__ import annotations

import msgspec
import pytest
from tests.unit.plugins.small_cluster import SmallCluster, node
from tests.unit.plugins.volume_cluster import terms

from bayplan.api.meta import LabelSelector
from bayplan.api.node import NodeSelector
from bayplan.api.node_selectors import NodeRequirement, NodeTerm
from bayplan.api.storage import TopologyTerm
from bayplan.plugins.intree.volume_binding.places import (
    EVERYWHERE,
    NOWHERE,
    PlaceMasks,
    Places,
    SizedPlaces,
    is_reachable,
    places_of_affinity,
    places_of_selector,
    places_of_topologies,
)

NAME = [{"key": "metadata.name", "operator": "In", "values": ["n"]}]


def affinity(*listed: dict[str, object]) -> Places:
    return places_of_affinity(msgspec.convert({"nodeSelectorTerms": list(listed)}, NodeSelector))


def test_affinity() -> None:
    zone = terms("zone", "a")[0]

    assert places_of_affinity(None) is EVERYWHERE
    assert affinity() == NOWHERE
    assert affinity({}) == NOWHERE
    assert affinity(terms("zone", "a", operator="Near")[0]) == NOWHERE
    assert affinity({"matchFields": NAME}) is EVERYWHERE
    assert affinity({"matchFields": NAME, **zone}) == affinity(zone)
    assert affinity({"matchFields": [{"key": "spec.x", "operator": "In", "values": ["n"]}], **zone}) == NOWHERE
    assert is_reachable(affinity(zone), {"zone": "a"})
    assert not is_reachable(affinity(zone), {"zone": "b"})


def topologies(*listed: dict[str, object]) -> Places:
    return places_of_topologies(msgspec.convert(list(listed), list[TopologyTerm]))


def test_topologies() -> None:
    both = {"matchLabelExpressions": [{"key": "zone", "values": ["a", "b"]}, {"key": "disk", "values": ["ssd"]}]}

    assert places_of_topologies(None) is EVERYWHERE
    assert topologies() is EVERYWHERE
    assert topologies({}) == NOWHERE
    assert topologies({"matchLabelExpressions": [{"key": "zone", "values": []}]}) == NOWHERE
    assert is_reachable(topologies(both), {"zone": "b", "disk": "ssd"})
    assert not is_reachable(topologies(both), {"zone": "b"})
    assert is_reachable(topologies({}, both), {"zone": "a", "disk": "ssd"})


@pytest.mark.parametrize(
    ("selector", "labels", "expected"),
    [
        (None, {}, False),
        ({}, {}, True),
        ({"matchLabels": {"zone": "a"}}, {"zone": "a"}, True),
        ({"matchLabels": {"zone": "a"}}, {"zone": "b"}, False),
        ({"matchExpressions": [{"key": "zone", "operator": "NotIn", "values": ["a"]}]}, {}, True),
        ({"matchExpressions": [{"key": "zone", "operator": "Exists"}]}, {}, False),
        ({"matchExpressions": [{"key": "zone", "operator": "Near"}]}, {"zone": "a"}, False),
    ],
)
def test_selectors(selector: dict[str, object] | None, labels: dict[str, str], expected: bool) -> None:
    places = places_of_selector(None if selector is None else msgspec.convert(selector, LabelSelector))

    assert is_reachable(places, labels) is expected


def test_masks_follow_the_labels_of_the_nodes() -> None:
    cluster = SmallCluster(node("n0", labels={"zone": "a"}), node("n1", labels={"zone": "b"}))
    masks, places = PlaceMasks(cluster.state.nodes), affinity(terms("zone", "a")[0])
    assert places is not None

    assert masks.rows(places).tolist() == [True, False]
    assert masks.rows(places) is masks.rows(places)
    cluster.cache.add_node(node("n1", labels={"zone": "a"}))
    assert masks.rows(places).tolist() == [True, True]
    cluster.cache.add_node(node("n2"))
    assert masks.rows(places).tolist() == [True, True, False]
    cluster.cache.remove_node("n0")
    assert masks.rows(places).tolist() == [False, True, False]


def test_masks_are_cut_to_the_nodes_at_issue() -> None:
    cluster = SmallCluster(node("n0", labels={"zone": "a"}), node("n1"))
    masks, places = PlaceMasks(cluster.state.nodes), affinity(terms("zone", "a")[0])
    second = cluster.columns.take(cluster.columns.rows[1:])

    assert masks.of(EVERYWHERE, second) is None
    assert masks.of(places, second).tolist() == [False]  # type: ignore[union-attr]
    assert masks.of(places, cluster.columns).tolist() == [True, False]  # type: ignore[union-attr]


def test_masks_cannot_be_written_to() -> None:
    cluster = SmallCluster(node("n0"))

    with pytest.raises(ValueError, match="read-only"):
        PlaceMasks(cluster.state.nodes).rows(())[:] = True


def test_old_masks_are_forgotten_before_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bayplan.plugins.intree.volume_binding.places._MOST_MASKS", 2)
    masks = PlaceMasks(SmallCluster(node("n0", labels={"zone": "z2"})).state.nodes)
    for number in range(4):
        places = affinity(terms("zone", f"z{number}")[0])
        assert places is not None
        assert masks.rows(places).tolist() == [number == 2]

    assert len(masks._masks) == 2


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
