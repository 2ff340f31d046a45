"""Pods by label: groups are counted over waiting and placed pods alike."""

from __future__ import annotations

from bayplan.cache import Cache
from bayplan.cache.check import check_cache
from bayplan.cluster.labelled_pods import PodSet
from bayplan.testing import node, pod

GROUP = "example.com/group"


def _cache(*, follows: bool = True) -> Cache:
    cache = Cache()
    cache.add_node(node("n1"))
    if follows:
        cache.cluster.labelled_pods.follow(GROUP)
    return cache


def _members(cache: Cache, value: str = "a", namespace: str = "default") -> PodSet:
    return cache.cluster.labelled_pods.get(GROUP, namespace, value)


def _names(members: PodSet) -> list[str]:
    return sorted(info.name for info in members.pods.values())


def test_waiting_pods_are_members_and_assumed_ones_are_placed() -> None:
    cache = _cache()
    first, second = pod("p1", labels={GROUP: "a"}), pod("p2", labels={GROUP: "a"})
    cache.note_pod(None, first)
    cache.note_pod(None, second)
    assumed = cache.assume(cache.info(first), "n1")

    assert _names(_members(cache)) == ["p1", "p2"]
    assert [info.node_name for info in _members(cache).placed.values()] == ["n1"]

    cache.forget(assumed.uid)
    assert _members(cache).placed == {}
    assert len(_members(cache)) == 2


def test_a_confirmed_pod_is_placed_as_the_api_server_tells_of_it() -> None:
    """The pod that was assumed is let go; who looks at a placed pod sees its latest version."""
    cache = _cache()
    waiting = pod("p1", labels={GROUP: "a"}, uid="u1")
    cache.note_pod(None, waiting)
    cache.assume(cache.info(waiting), "n1")
    bound = pod("p1", labels={GROUP: "a"}, uid="u1", node="n1")
    cache.note_pod(waiting, bound)
    confirmed = cache.add_pod(bound)

    assert _members(cache).placed["u1"] is confirmed is cache.pod("u1")
    assert check_cache(cache) == []


def test_an_orphan_is_placed_as_the_api_server_tells_of_it() -> None:
    cache = _cache()
    for _ in range(2):
        latest = cache.add_pod(pod("p1", labels={GROUP: "a"}, uid="u1", node="not-there"))

    assert _members(cache).placed["u1"] is latest


def test_a_pod_that_was_only_ever_placed_leaves_its_group_with_its_place() -> None:
    """Nobody will tell of its end: a pod that was deleted while somebody decided on it."""
    cache = _cache()
    deleted = pod("p1", labels={GROUP: "a"}, uid="u1")
    cache.note_pod(None, deleted)
    info = cache.info(deleted)
    cache.note_pod(deleted, None)
    cache.assume(info, "n1")
    assert _names(_members(cache)) == ["p1"]

    cache.forget("u1")

    assert (_members(cache).pods, _members(cache).placed) == ({}, {})


def test_a_pod_that_is_told_of_after_it_was_placed_stays_when_it_loses_its_place() -> None:
    cache = _cache()
    late = pod("p1", labels={GROUP: "a"}, uid="u1")
    cache.assume(cache.info(late), "n1")
    cache.note_pod(None, late)
    cache.forget("u1")

    assert _names(_members(cache)) == ["p1"]


def test_the_check_of_the_cache_sees_a_placed_pod_that_is_out_of_date() -> None:
    cache = _cache()
    cache.add_pod(pod("p1", labels={GROUP: "a"}, uid="u1", node="n1"))
    assert check_cache(cache) == []
    cache.cluster.labelled_pods.place(cache.info(pod("p1", labels={GROUP: "a"}, uid="u1", node="n1")))
    cache.cluster.labelled_pods.place(cache.info(pod("p2", labels={GROUP: "a"}, uid="u2", node="n1")))

    assert check_cache(cache) == [
        "pod default/p1 is placed in a group in another version than on its node",
        "pod default/p2 is placed in a group, but not on a node",
    ]


def test_groups_of_other_namespaces_and_pods_without_the_label_do_not_count() -> None:
    cache = _cache()
    cache.note_pod(None, pod("p1", labels={GROUP: "a"}, namespace="other"))
    cache.note_pod(None, pod("p2"))
    cache.add_pod(pod("p3", node="n1"))

    assert _names(_members(cache)) == []
    assert _names(_members(cache, namespace="other")) == ["p1"]


def test_a_pod_that_goes_leaves_its_group() -> None:
    cache = _cache()
    running = pod("p1", labels={GROUP: "a"}, node="n1")
    cache.note_pod(None, running)
    info = cache.add_pod(running)
    assert _members(cache).placed.keys() == {info.uid}

    cache.note_pod(running, None)
    cache.remove_pod(info.uid)
    assert (_members(cache).pods, _members(cache).placed) == ({}, {})


def test_a_pod_whose_label_changes_moves_with_its_place() -> None:
    cache = _cache()
    before, after = (pod("p1", labels={GROUP: value}, node="n1", uid="u1") for value in "ab")
    cache.note_pod(None, before)
    cache.add_pod(before)
    cache.note_pod(before, after)

    assert _names(_members(cache)) == []
    assert (_names(_members(cache, "b")), list(_members(cache, "b").placed)) == (["p1"], ["u1"])

    without = pod("p1", node="n1", uid="u1")
    cache.note_pod(after, without)
    assert _names(_members(cache, "b")) == []


def test_a_pod_of_the_same_name_made_anew_takes_the_place_of_the_old_one() -> None:
    cache = _cache()
    old, new = pod("p1", labels={GROUP: "a"}, uid="u1"), pod("p1", labels={GROUP: "a"}, uid="u2")
    cache.note_pod(None, old)
    cache.note_pod(old, new)

    assert list(_members(cache).pods) == ["u2"]


def test_a_label_named_late_finds_the_pods_that_are_there() -> None:
    cache = _cache(follows=False)
    waiting, running = pod("p1", labels={GROUP: "a"}), pod("p2", labels={GROUP: "a"}, node="n1")
    cache.note_pod(None, waiting)
    cache.note_pod(None, running)
    info = cache.add_pod(running)
    assert _names(_members(cache)) == []

    cache.cluster.labelled_pods.follow(GROUP)
    cache.fill_groups([waiting, running])
    assert _names(_members(cache)) == ["p1", "p2"]
    assert _members(cache).placed.keys() == {info.uid}


def test_filling_happens_once_a_label() -> None:
    cache = _cache()
    cache.fill_groups([pod("p1", labels={GROUP: "a"})])
    cache.cluster.labelled_pods.follow(GROUP)
    cache.fill_groups([pod("p2", labels={GROUP: "a"})])

    assert _names(_members(cache)) == ["p1"]
