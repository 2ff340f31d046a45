"""What changes of objects do to the cache and to the queue."""

from __future__ import annotations

import asyncio

from tests.unit.loop.kit import Loop, node, pod, running

from bayplan.api.meta import Metadata
from bayplan.api.storage import StorageClass
from bayplan.queue import Place
from bayplan.testing.build import LONG_AGO


def test_an_assigned_pod_counts_whoever_placed_it() -> None:
    loop = Loop([node("n")])
    loop.put(pod("theirs", node="n", scheduler="other", uid="t"), pod("ours", node="n", uid="o"))

    assert {info.uid for info in loop.live.cache.pods()} == {"t", "o"}


def test_an_unassigned_pod_waits_only_if_one_of_our_profiles_is_named() -> None:
    loop = Loop()
    loop.put(pod("ours"), pod("theirs", scheduler="other"))

    assert loop.queue.place_of("default/ours") is Place.ACTIVE
    assert loop.queue.place_of("default/theirs") is None


def test_a_pod_that_is_bound_by_somebody_leaves_the_queue() -> None:
    loop = Loop([node("n")])
    loop.put(pod("p"))
    loop.change("p", spec_node_name="n")

    assert loop.queue.place_of("default/p") is None
    assert [info.node_name for info in loop.live.cache.pods()] == ["n"]


def test_pods_of_one_template_share_their_containers() -> None:
    loop = Loop([node("n")])
    pods = [pod("a", cpu="1"), pod("b", cpu="1"), pod("c", cpu="1", node="n"), pod("d", cpu="2")]
    loop.put(*pods)
    first, *alike, other = [each.spec.containers for each in pods]

    assert all(each is first for each in alike)
    assert other is not first
    assert other != first


def test_a_deleted_pod_leaves_the_queue_or_the_cache() -> None:
    loop = Loop([node("n")])
    waiting, placed = pod("w"), pod("q", node="n")
    loop.put(waiting, placed)
    loop.drop(waiting, placed)

    assert loop.queue.place_of("default/w") is None
    assert len(loop.live.cache) == 0


def test_a_successor_of_the_same_name_takes_the_place_of_the_pod() -> None:
    loop = Loop([node("n")])
    loop.put(pod("p", uid="old", node="n"))
    loop.put(pod("p", uid="new"))

    assert len(loop.live.cache) == 0
    assert loop.queue.get("default/p").uid == "new"


def test_a_pod_whose_node_is_taken_back_waits_again() -> None:
    """As after a restore of the API server's storage."""
    loop = Loop([node("n")])
    loop.put(pod("p", node="n"), pod("theirs", node="n", scheduler="other"))
    loop.change("p", spec_node_name="")
    loop.change("theirs", spec_node_name="")

    assert len(loop.live.cache) == 0
    assert loop.queue.place_of("default/p") is Place.ACTIVE
    assert loop.queue.place_of("default/theirs") is None


def test_a_pod_may_come_before_its_node() -> None:
    loop = Loop()
    loop.put(pod("p", node="n", cpu="1"))
    loop.put(node("n"))

    info = loop.live.cache.cluster.node("n")
    assert info is not None
    assert len(info.pods) == 1


async def test_an_event_that_helps_wakes_a_pod_and_one_that_does_not_lets_it_wait() -> None:
    loop = Loop([node("n", cpu=1)])
    async with running(loop):
        loop.put(pod("p", cpu="2"))
        await loop.settle()
        assert loop.queue.place_of("default/p") is Place.UNSCHEDULABLE
        loop.put(StorageClass(metadata=Metadata(name="fast", resource_version="1")))
        await loop.settle(3)
        assert loop.queue.place_of("default/p") is Place.UNSCHEDULABLE
        loop.put(node("big", cpu=4))
        await loop.settle(3)

    assert loop.transport.bindings == {"p": "big"}


async def test_a_pod_that_leaves_makes_room_for_one_that_waits() -> None:
    loop = Loop([node("n", cpu=2)])
    first = pod("first", cpu="2", node="n")
    loop.put(first)
    async with running(loop):
        loop.put(pod("p", cpu="2"))
        await loop.settle()
        assert loop.transport.bindings == {}
        loop.drop(first)
        await loop.settle(3)

    assert loop.transport.bindings == {"p": "n"}


async def test_an_assumed_pod_that_is_deleted_gives_its_room_back() -> None:
    loop = Loop([node("n", cpu=2)])
    loop.transport.hold = asyncio.Event()
    async with running(loop):
        loop.put(pod("p", cpu="2", uid="u"))
        await loop.settle()
        assert loop.live.cache.is_assumed("u")
        loop.drop(loop.told("p"))
        assert not loop.live.cache.is_assumed("u")
        loop.put(pod("next", cpu="2"))
        await loop.settle()

    assert loop.transport.bindings == {"p": "n", "next": "n"}


async def test_an_assumed_pod_that_begins_to_terminate_gives_its_room_back() -> None:
    loop = Loop([node("n", cpu=2)])
    loop.transport.hold = asyncio.Event()
    async with running(loop):
        loop.put(pod("p", cpu="2", uid="u"))
        await loop.settle()
        loop.change("p", metadata_deletion_timestamp=LONG_AGO)
        assert loop.live.cache.assumed_count == 0


async def test_a_withdrawn_nomination_wakes_pods_of_no_higher_priority() -> None:
    loop = Loop([node("n", cpu=2)])
    async with running(loop):
        loop.put(pod("nominated", cpu="4", priority=5, nominated="n"), pod("low", cpu="2", priority=1))
        await loop.settle()
        loop.drop(loop.told("nominated"))
        await loop.settle(3)

    assert loop.transport.bindings == {"low": "n"}


def test_an_update_with_the_same_resource_version_is_no_news() -> None:
    loop = Loop()
    loop.put(pod("p"))
    loop.change("p", metadata_resource_version="7")
    before = loop.queue.get("default/p").info
    loop.live.intake.pod_changed(loop.told("p"), loop.told("p"))

    assert loop.queue.get("default/p").info is before


def test_objects_of_other_kinds_are_there_for_plugins() -> None:
    loop = Loop()
    fast = StorageClass(metadata=Metadata(name="fast", resource_version="1"))
    loop.put(fast)
    objects = loop.live.cache.cluster.objects
    assert objects.get(StorageClass, "fast") is fast

    loop.drop(fast)
    assert objects.get(StorageClass, "fast") is None
