"""Following rows and objects."""

from __future__ import annotations

from tests.unit.plugins.small_cluster import SmallCluster, node
from tests.unit.plugins.volume_cluster import VolumeCluster, volume

from bayplan.api.storage import PersistentVolume
from bayplan.plugins.volumes.object_changes import ObjectFollower, RowFollower

Names = set[tuple[str | None, str | None]]


def versions(follower: ObjectFollower[PersistentVolume]) -> Names:
    """(name and version before, after) of every change."""
    return {(_tag(old), _tag(new)) for old, new in follower.changes()}


def _tag(item: PersistentVolume | None) -> str | None:
    return None if item is None else f"{item.name}@{item.metadata.resource_version}"


def test_every_row_is_news_at_first_and_only_changed_ones_later() -> None:
    cluster = SmallCluster(node("a"), node("b"))
    follower = RowFollower(cluster.state.nodes.row_changes, cluster.state.nodes)

    assert set(follower.changed()) == {0, 1}
    assert set(follower.changed()) == set()
    cluster.run("p", "b")
    cluster.run("q", "b")
    assert set(follower.changed()) == {1}


def test_a_follower_that_fell_behind_looks_at_every_row() -> None:
    cluster = SmallCluster(node("a"), node("b"))
    follower = RowFollower(cluster.state.nodes.row_changes, cluster.state.nodes)
    follower.changed()
    for _ in range(5 * cluster.state.nodes.row_changes.keep):
        cluster.state.nodes.row_changes.append(0)

    assert set(follower.changed()) == {0, 1}


def test_objects_that_came_are_told() -> None:
    cluster = VolumeCluster().put(volume("a"), volume("b"))
    follower = ObjectFollower(cluster.state.objects, PersistentVolume)

    assert versions(follower) == {(None, "a@1"), (None, "b@1")}
    assert versions(follower) == set()
    cluster.put(volume("c"))
    assert versions(follower) == {(None, "c@1")}


def test_objects_that_changed_are_told_with_what_they_were() -> None:
    cluster = VolumeCluster().put(volume("a"), volume("b"), volume("c"))
    follower = ObjectFollower(cluster.state.objects, PersistentVolume)
    versions(follower)
    cluster.put(volume("b", version="2"), volume("c", version="2"), volume("c", version="3"))

    assert versions(follower) == {("b@1", "b@2"), ("c@1", "c@3")}


def test_objects_that_went_are_told() -> None:
    cluster = VolumeCluster().put(volume("a"), volume("b"))
    follower = ObjectFollower(cluster.state.objects, PersistentVolume)
    versions(follower)
    cluster.cache.remove_object(volume("a"))

    assert versions(follower) == {("a@1", None)}


def test_comings_and_goings_in_one_go_are_told_apart() -> None:
    cluster = VolumeCluster().put(volume("a"), volume("b"), volume("c"))
    follower = ObjectFollower(cluster.state.objects, PersistentVolume)
    versions(follower)
    cluster.cache.remove_object(volume("a"))
    cluster.put(volume("d"), volume("c", version="2"))

    assert versions(follower) == {("a@1", None), (None, "d@1"), ("c@1", "c@2")}


def test_an_object_that_went_and_came_back_is_a_change() -> None:
    cluster = VolumeCluster().put(volume("a"), volume("b"))
    follower = ObjectFollower(cluster.state.objects, PersistentVolume)
    versions(follower)
    cluster.cache.remove_object(volume("a"))
    cluster.put(volume("a", version="9"))

    assert versions(follower) == {("a@1", "a@9")}
