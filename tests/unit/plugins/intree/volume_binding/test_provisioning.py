"""Whether a volume could be made for a claim."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.plugins.small_cluster import node
from tests.unit.plugins.volume_cluster import VolumeCluster, capacity, claim, csi_driver, storage_class

from bayplan.plugins.intree.volume_binding.matching import ClaimError
from bayplan.plugins.intree.volume_binding.places import PlaceMasks
from bayplan.plugins.intree.volume_binding.provisioning import Obstacle, VolumeProvisioning, capacity_limit

IN_A = {"matchLabels": {"zone": "a"}}


@pytest.fixture
def cluster() -> VolumeCluster:
    return VolumeCluster(node("n0", labels={"zone": "a"}), node("n1", labels={"zone": "b"}))


@pytest.fixture
def provisioning(cluster: VolumeCluster) -> VolumeProvisioning:
    return VolumeProvisioning(cluster.state, PlaceMasks(cluster.state.nodes))


def obstacles(cluster: VolumeCluster, provisioning: VolumeProvisioning, wanted: Any) -> list[Obstacle | None]:
    """What stands in the way on each node, after checking it against the form for all nodes."""
    found = [provisioning.obstacle(wanted, cluster.state.nodes.at(row)) for row in range(2)]
    allowed, roomy = provisioning.allowed_rows(wanted), provisioning.rows_with_space(wanted)
    for row, obstacle in enumerate(found):
        is_allowed = allowed is None or bool(allowed[row])
        assert is_allowed == (obstacle is not Obstacle.NO_VOLUME)
        if is_allowed:
            assert (roomy is None or bool(roomy[row])) == (obstacle is None)
    return found


@pytest.mark.parametrize("provisioner", ["", "kubernetes.io/no-provisioner"])
def test_without_a_provisioner_nothing_is_made(
    cluster: VolumeCluster, provisioning: VolumeProvisioning, provisioner: str
) -> None:
    cluster.put(storage_class(provisioner=provisioner))

    assert obstacles(cluster, provisioning, claim("c")) == [Obstacle.NO_VOLUME] * 2


def test_allowed_topologies_must_match(cluster: VolumeCluster, provisioning: VolumeProvisioning) -> None:
    cluster.put(storage_class(allowedTopologies=[{"matchLabelExpressions": [{"key": "zone", "values": ["b"]}]}]))

    assert obstacles(cluster, provisioning, claim("c")) == [Obstacle.NO_VOLUME, None]


def test_room_is_checked_only_if_the_driver_says_so(cluster: VolumeCluster, provisioning: VolumeProvisioning) -> None:
    cluster.put(storage_class())

    assert obstacles(cluster, provisioning, claim("c")) == [None, None]
    for value in (None, False):
        cluster.put(csi_driver(storage_capacity=value))
        assert obstacles(cluster, provisioning, claim("c")) == [None, None]
    cluster.put(csi_driver())
    assert obstacles(cluster, provisioning, claim("c")) == [Obstacle.NO_SPACE] * 2


CAPACITIES: list[tuple[dict[str, Any], bool]] = [
    ({"capacity": "5Gi", "nodeTopology": IN_A}, True),
    ({"capacity": "4Gi", "nodeTopology": IN_A}, False),
    ({"capacity": "4Gi", "maximumVolumeSize": "5Gi", "nodeTopology": IN_A}, True),
    ({"capacity": "9Gi", "maximumVolumeSize": "4Gi", "nodeTopology": IN_A}, False),
    ({"capacity": "9Gi"}, False),
    ({"nodeTopology": IN_A}, False),
    ({"capacity": "plenty", "nodeTopology": IN_A}, False),
    ({"capacity": "9Gi", "nodeTopology": IN_A, "storage_class": "slow"}, False),
]


@pytest.mark.parametrize(("parts", "has_room"), CAPACITIES)
def test_a_reachable_capacity_of_the_class_must_be_large_enough(
    cluster: VolumeCluster, provisioning: VolumeProvisioning, parts: dict[str, Any], has_room: bool
) -> None:
    cluster.put(storage_class(), csi_driver(), capacity("x", **parts))

    expected = [None if has_room else Obstacle.NO_SPACE, Obstacle.NO_SPACE]
    assert obstacles(cluster, provisioning, claim("c")) == expected


def test_claims_that_ask_for_no_size_pass(cluster: VolumeCluster, provisioning: VolumeProvisioning) -> None:
    cluster.put(storage_class(), csi_driver())

    assert obstacles(cluster, provisioning, claim("c", size=None)) == [None, None]


def test_capacities_are_followed(cluster: VolumeCluster, provisioning: VolumeProvisioning) -> None:
    cluster.put(storage_class(), csi_driver(), capacity("x", capacity="9Gi", nodeTopology={}))
    assert obstacles(cluster, provisioning, claim("c")) == [None, None]

    cluster.put(capacity("x", capacity="1Gi", nodeTopology={}))
    assert obstacles(cluster, provisioning, claim("c")) == [Obstacle.NO_SPACE] * 2
    cluster.put(capacity("x", capacity="9Gi", nodeTopology=IN_A))
    assert obstacles(cluster, provisioning, claim("c")) == [None, Obstacle.NO_SPACE]
    cluster.cache.remove_object(capacity("x"))
    assert obstacles(cluster, provisioning, claim("c")) == [Obstacle.NO_SPACE] * 2


def test_claims_of_no_known_class_are_an_error(provisioning: VolumeProvisioning) -> None:
    with pytest.raises(ClaimError, match='no class for claim "default/c"'):
        provisioning.allowed_rows(claim("c", storage_class=None))
    with pytest.raises(ClaimError, match='failed to find storage class "fast"'):
        provisioning.allowed_rows(claim("c"))


def test_the_limit_of_a_capacity() -> None:
    assert capacity_limit(capacity("x", capacity="2Gi")) == "2Gi"
    assert capacity_limit(capacity("x", capacity="2Gi", maximumVolumeSize="1Gi")) == "1Gi"
    assert capacity_limit(capacity("x")) is None
