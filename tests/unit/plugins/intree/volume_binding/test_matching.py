"""Finding an existing volume for a claim. The rules on random clusters are in `test_pod_volumes.py`."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.plugins.small_cluster import node
from tests.unit.plugins.volume_cluster import VolumeCluster, claim, terms, volume

from bayplan.api.storage import PersistentVolume
from bayplan.plugins.intree.volume_binding.assumed_objects import AssumedObjects
from bayplan.plugins.intree.volume_binding.matching import ClaimError, VolumeMatcher, requested_bytes
from bayplan.plugins.intree.volume_binding.places import PlaceMasks


@pytest.fixture
def cluster() -> VolumeCluster:
    return VolumeCluster(node("n0", labels={"zone": "a"}), node("n1", labels={"zone": "b"}))


@pytest.fixture
def matcher(cluster: VolumeCluster) -> VolumeMatcher:
    state = cluster.state
    assumed = AssumedObjects(state.objects, PersistentVolume)
    return VolumeMatcher(state, assumed, PlaceMasks(state.nodes))


def chosen(cluster: VolumeCluster, matcher: VolumeMatcher, wanted: Any, *excluded: str) -> list[str | None]:
    """The volume on each node, after checking it against the form for all nodes."""
    nodes = [cluster.state.nodes.at(row) for row in range(2)]
    found = [matcher.choose(wanted, each, excluded) for each in nodes]
    if not excluded:
        rows = matcher.choose_all([wanted])[0]
        everywhere = [False, False] if rows is None else rows.tolist()
        assert everywhere == [each is not None for each in found]
    return [None if each is None else each.name for each in found]


def test_the_smallest_volume_that_is_large_enough_wins(cluster: VolumeCluster, matcher: VolumeMatcher) -> None:
    cluster.put(volume("tiny", size="4Gi"), volume("large", size="9Gi"), volume("right", size="5Gi"))

    assert chosen(cluster, matcher, claim("c")) == ["right", "right"]
    assert chosen(cluster, matcher, claim("c"), "right") == ["large", "large"]
    assert chosen(cluster, matcher, claim("c", size="10Gi")) == [None, None]


def test_of_equal_volumes_the_first_by_name_wins(cluster: VolumeCluster, matcher: VolumeMatcher) -> None:
    cluster.put(volume("b"), volume("a"))

    assert chosen(cluster, matcher, claim("c")) == ["a", "a"]


def test_volumes_are_where_their_affinity_says(cluster: VolumeCluster, matcher: VolumeMatcher) -> None:
    cluster.put(volume("here", affinity=terms("zone", "a")), volume("anywhere", size="90Gi"))

    assert chosen(cluster, matcher, claim("c")) == ["here", "anywhere"]


MISFITS: list[dict[str, Any]] = [
    {"storage_class": "slow"},
    {"phase": "Pending"},
    {"phase": "Released"},
    {"claim": "other"},
    {"claim": "c:another-uid"},
    {"volumeMode": "Block"},
    {"volumeAttributesClassName": "gold"},
    {"accessModes": ["ReadOnlyMany"]},
    {"deletionTimestamp": "2026-01-01T00:00:00Z"},
    {"size": "1Gi"},
]


@pytest.mark.parametrize("parts", MISFITS)
def test_a_volume_that_differs_is_passed_over(
    cluster: VolumeCluster, matcher: VolumeMatcher, parts: dict[str, Any]
) -> None:
    cluster.put(volume("v", **parts))

    assert chosen(cluster, matcher, claim("c")) == [None, None]


def test_a_volume_set_aside_for_the_claim_is_taken_or_none_is(cluster: VolumeCluster, matcher: VolumeMatcher) -> None:
    cluster.put(volume("own", claim="c", affinity=terms("zone", "b"), size="90Gi"), volume("small"))

    assert chosen(cluster, matcher, claim("c")) == [None, "own"]


def test_a_volume_set_aside_need_not_be_available_or_offer_the_modes(
    cluster: VolumeCluster, matcher: VolumeMatcher
) -> None:
    cluster.put(volume("own", claim="c", phase="Bound", accessModes=["ReadOnlyMany"], labels={}))

    assert chosen(cluster, matcher, claim("c", selector={"matchLabels": {"x": "y"}})) == ["own", "own"]


def test_a_volume_set_aside_that_does_not_fit_does_not_count(cluster: VolumeCluster, matcher: VolumeMatcher) -> None:
    cluster.put(volume("own", claim="c", size="1Gi"), volume("other", claim="c", storage_class="slow"), volume("open"))

    assert chosen(cluster, matcher, claim("c")) == ["open", "open"]


def test_a_selector_chooses_among_volumes(cluster: VolumeCluster, matcher: VolumeMatcher) -> None:
    cluster.put(volume("plain", size="6Gi"), volume("labelled", labels={"kind": "x"}))

    assert chosen(cluster, matcher, claim("c", selector={"matchLabels": {"kind": "x"}})) == ["labelled", "labelled"]
    assert chosen(cluster, matcher, claim("c", selector={})) == ["plain", "plain"]


def test_a_selector_that_makes_no_sense_is_an_error(cluster: VolumeCluster, matcher: VolumeMatcher) -> None:
    bad = claim("c", selector={"matchExpressions": [{"key": "k", "operator": "In", "values": []}]})

    with pytest.raises(ClaimError, match="internal label selector for claim: default/c"):
        matcher.choose_all([bad])


def test_volumes_are_followed(cluster: VolumeCluster, matcher: VolumeMatcher) -> None:
    assert chosen(cluster, matcher, claim("c")) == [None, None]
    cluster.put(volume("v", phase="Pending"))
    assert chosen(cluster, matcher, claim("c")) == [None, None]
    cluster.put(volume("v"))
    assert chosen(cluster, matcher, claim("c")) == ["v", "v"]
    cluster.put(volume("v", claim="other"))
    assert chosen(cluster, matcher, claim("c")) == [None, None]
    cluster.put(volume("v", claim="c"))
    assert chosen(cluster, matcher, claim("c")) == ["v", "v"]
    cluster.put(volume("v", storage_class="slow"))
    assert chosen(cluster, matcher, claim("c")) == [None, None]
    assert chosen(cluster, matcher, claim("c", storage_class="slow")) == ["v", "v"]
    cluster.cache.remove_object(volume("v"))
    assert chosen(cluster, matcher, claim("c", storage_class="slow")) == [None, None]


def test_a_volume_of_a_class_nobody_asked_for_yet_can_go(cluster: VolumeCluster, matcher: VolumeMatcher) -> None:
    chosen(cluster, matcher, claim("c"))
    cluster.put(volume("odd", storage_class="rare", phase="Pending"))
    chosen(cluster, matcher, claim("c"))
    cluster.cache.remove_object(volume("odd", storage_class="rare", phase="Pending"))

    assert chosen(cluster, matcher, claim("c")) == [None, None]


def test_two_claims_of_a_class_never_share_a_volume(cluster: VolumeCluster, matcher: VolumeMatcher) -> None:
    cluster.put(volume("v", affinity=terms("zone", "a")), volume("w"))
    found = matcher.choose_all([claim("c"), claim("d")])

    assert [rows is not None and rows.tolist() for rows in found] == [[True, True], [True, False]]


def test_claims_of_different_classes_do_not_meet(cluster: VolumeCluster, matcher: VolumeMatcher) -> None:
    cluster.put(volume("v"), volume("w", storage_class="slow"))
    found = matcher.choose_all([claim("c"), claim("d", storage_class="slow")])

    assert [rows is not None and rows.tolist() for rows in found] == [[True, True], [True, True]]


def test_a_claim_that_no_volume_is_for_gets_none_anywhere(cluster: VolumeCluster, matcher: VolumeMatcher) -> None:
    cluster.put(volume("small", size="1Gi"))

    assert matcher.choose_all([claim("c"), claim("d", storage_class="slow")]) == [None, None]


def test_a_volume_of_unreadable_size_does_not_hide_the_others(cluster: VolumeCluster, matcher: VolumeMatcher) -> None:
    cluster.put(volume("bad", size="ten"), volume("good"))

    assert chosen(cluster, matcher, claim("c")) == ["good", "good"]


def test_the_request_of_a_claim() -> None:
    assert requested_bytes(claim("c", size="1Ki")) == 1024
    assert requested_bytes(claim("c", size=None)) is None
    assert requested_bytes(claim("c", size=None, resources={"requests": {}})) is None
