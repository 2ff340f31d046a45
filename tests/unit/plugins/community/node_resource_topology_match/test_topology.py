"""What a NodeResourceTopology object says, and what of it is passed over."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.plugins.community.node_resource_topology_match.least_numa import average_distance, normalized
from bayplan.plugins.community.node_resource_topology_match.node_resource_topology import (
    NodeResourceTopology,
    TopologyAttribute,
    TopologyResource,
    Zone,
    ZoneCost,
)
from bayplan.plugins.community.node_resource_topology_match.topology import NumaCell, NumaTopology, TopologySettings


def _settings(policies: Any = None, **attributes: str) -> TopologySettings:
    listed = [TopologyAttribute(name=name, value=value) for name, value in attributes.items()]
    return TopologySettings.of(NodeResourceTopology(zones=[], topology_policies=policies, attributes=listed))


@pytest.mark.parametrize(
    ("policy", "scope", "meaning"),
    [
        ("SingleNUMANodePodLevel", "pod", "single-numa-node"),
        ("SingleNUMANodeContainerLevel", "container", "single-numa-node"),
        ("BestEffortPodLevel", "pod", "best-effort"),
        ("RestrictedContainerLevel", "container", "restricted"),
        ("None", "container", "none"),
        ("BestEffort", "container", "none"),
        ("", "container", "none"),
    ],
)
def test_legacy_policies(policy: str, scope: str, meaning: str) -> None:
    assert _settings([policy]) == TopologySettings(scope, meaning, 8)


def test_attributes_override_the_legacy_policy() -> None:
    settings = _settings(
        ["SingleNUMANodePodLevel"],
        topologyManagerScope="container",
        topologyManagerPolicy="restricted",
        topologyManagerMaxNUMANodes="16",
    )

    assert settings == TopologySettings("container", "restricted", 16)


@pytest.mark.parametrize(("text", "number"), [("1", 8), ("0", 8), ("-3", 8), ("many", 8), ("9999", 1024), ("²", 8)])
def test_odd_numbers_of_cells_are_passed_over_or_held_to_the_limit(text: str, number: int) -> None:
    assert _settings(topologyManagerMaxNUMANodes=text).max_numa_nodes == number
    assert _settings(topologyManagerScope="galaxy", topologyManagerPolicy="best").policy == "none"


def test_a_cell_whose_amounts_cannot_be_read_is_left_out() -> None:
    bad = TopologyResource(name="cpu", capacity="x", allocatable="x", available="lots")
    zones = [Zone(name="node-0", type="Node", resources=[bad]), Zone(name="node-1", type="Node")]

    assert [cell.number for cell in NumaTopology.of(NodeResourceTopology(zones=zones)).cells] == [1]


def test_the_fingerprint_is_an_attribute_or_the_old_annotation() -> None:
    topology = NodeResourceTopology(zones=[])
    topology.metadata.annotations = {"topology.node.k8s.io/fingerprint": "old"}
    assert NumaTopology.of(topology).fingerprint == "old"

    topology.attributes = [TopologyAttribute(name="nodeTopologyPodsFingerprint", value="new")]
    assert NumaTopology.of(topology).fingerprint == "new"


def test_what_is_assumed_is_taken_from_every_cell_and_never_below_zero() -> None:
    cells = tuple(NumaCell(number, {"cpu": amount}, {}, {}) for number, amount in ((0, 4000), (1, 1000)))
    topology = NumaTopology(TopologySettings(), cells, "", "").without({"cpu": 2000, "memory": 1})

    assert [cell.available for cell in topology.cells] == [{"cpu": 2000}, {"cpu": 0}]


@pytest.mark.parametrize(("count", "plain", "optimal"), [(1, 88, 94), (2, 76, 82), (8, 4, 10)])
def test_the_number_of_cells_becomes_a_score(count: int, plain: int, optimal: int) -> None:
    assert normalized(count, 8, is_optimal=False) == plain
    assert normalized(count, 8, is_optimal=True) == optimal
    assert normalized(20, 8, is_optimal=False) == 0


def test_distances_are_averaged_over_all_pairs_and_255_when_unknown() -> None:
    zone = Zone(name="node-0", type="Node", costs=[ZoneCost(name="node-0", value=10), ZoneCost(name="odd", value=1)])
    near = NumaTopology.of(NodeResourceTopology(zones=[zone])).cells[0]
    far = NumaCell(1, {}, {}, {})

    assert average_distance([near]) == 10
    assert average_distance([near, far]) == (10 + 255 * 3) / 4
