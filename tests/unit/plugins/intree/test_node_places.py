"""Places: where something is reachable by labels."""

from __future__ import annotations

import msgspec
import pytest
from tests.unit.plugins.intree.small_cluster import SmallCluster, node
from tests.unit.plugins.intree.volume_cluster import terms

from bayplan.api.meta import LabelSelector
from bayplan.api.node import NodeSelector
from bayplan.api.storage import TopologyTerm
from bayplan.plugins.intree.node_places import (
    EVERYWHERE,
    NOWHERE,
    PlaceMasks,
    Places,
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
    monkeypatch.setattr("bayplan.plugins.intree.node_places._MOST_MASKS", 2)
    masks = PlaceMasks(SmallCluster(node("n0", labels={"zone": "z2"})).state.nodes)
    for number in range(4):
        places = affinity(terms("zone", f"z{number}")[0])
        assert places is not None
        assert masks.rows(places).tolist() == [number == 2]

    assert len(masks._masks) == 2
