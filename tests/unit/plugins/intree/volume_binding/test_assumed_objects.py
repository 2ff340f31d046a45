"""Objects in place of what the API server still says."""

from __future__ import annotations

from tests.unit.plugins.volume_cluster import VolumeCluster, volume

from bayplan.api.storage import PersistentVolume
from bayplan.plugins.intree.volume_binding.assumed_objects import AssumedObjects


def assumed(cluster: VolumeCluster) -> AssumedObjects[PersistentVolume]:
    return AssumedObjects(cluster.state.objects, PersistentVolume)


def test_an_assumed_object_stands_in_for_the_stored_one() -> None:
    cluster = VolumeCluster().put(volume("v"))
    objects, promised = assumed(cluster), volume("v", claim="c")

    assert objects.assume(promised) == ""
    assert objects.get("v") is promised
    assert objects.stored("v") == volume("v")
    assert objects.matching(lambda _: True) == [promised]
    assert objects.matching(lambda _: False) == []


def test_objects_without_an_assumption_are_the_stored_ones() -> None:
    cluster = VolumeCluster().put(volume("v"))

    assert assumed(cluster).get("v") == volume("v")
    assert assumed(cluster).get("gone") is None


def test_a_newer_version_wins() -> None:
    cluster = VolumeCluster().put(volume("v"))
    objects = assumed(cluster)
    objects.assume(volume("v", claim="c"))
    cluster.put(volume("v", version="2"))

    assert objects.matching(lambda _: True) == []
    assert objects.get("v") == volume("v", version="2")
    cluster.put(volume("v"))
    assert objects.get("v") == volume("v")


def test_an_assumption_ends_with_its_object() -> None:
    cluster = VolumeCluster().put(volume("v"))
    objects = assumed(cluster)
    objects.assume(volume("v", claim="c"))
    cluster.cache.remove_object(volume("v"))

    assert objects.get("v") is None


def test_only_the_stored_version_can_be_assumed() -> None:
    cluster = VolumeCluster().put(volume("v", version="3"))
    objects = assumed(cluster)

    assert objects.assume(volume("v")) == '"v" is out of sync (stored: 3, assume: 1)'
    assert objects.assume(volume("gone")) == '"gone" not found'
    assert objects.matching(lambda _: True) == []


def test_restoring_takes_back_only_the_same_version() -> None:
    cluster = VolumeCluster().put(volume("v"))
    objects, promised = assumed(cluster), volume("v", claim="c")
    objects.assume(promised)

    objects.restore(volume("v", version="2"))
    assert objects.get("v") is promised
    objects.restore(promised)
    objects.restore(promised)
    assert objects.get("v") == volume("v")


def test_assumptions_that_came_true_do_not_pile_up() -> None:
    cluster = VolumeCluster()
    objects = assumed(cluster)
    for number in range(1000):
        cluster.put(volume(f"v{number}"))
        assert objects.assume(volume(f"v{number}", claim="c")) == ""
        cluster.put(volume(f"v{number}", version="2"))

    assert len(objects._assumed) <= 33
