"""Columns of resources: for what nodes offer, and for nothing else; freed when no node offers it any more."""

from __future__ import annotations

import tracemalloc

from bayplan.cache import Cache
from bayplan.cache.check import check_cache
from bayplan.cluster.resources import NATIVE
from bayplan.testing import node, pod

GPU = "example.com/gpu"


def made_up(number: int, count: int = 1000) -> dict[str, object]:
    return {f"evil.com/p{number}-{i}": 1 for i in range(count)}


def test_names_that_no_node_offers_need_no_column() -> None:
    cache = Cache()
    for number in range(500):
        cache.add_node(node(f"n{number}"))
    table = cache.cluster.nodes
    height = len(table.requested)
    tracemalloc.start()
    try:
        waiting = [cache.info(pod(f"evil-{number}", requests=made_up(number))) for number in range(5)]
        running = [cache.add_pod(pod(f"run-{number}", requests=made_up(number), node="n1")) for number in range(5)]
        cache.add_pod(pod("plain", cpu=1, node="n2"))
        grown, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert cache.cluster.resources.names == list(NATIVE)
    assert len(table.requested) == height
    assert len(table.at(1).requested) == len(NATIVE)
    assert waiting[0].shape.unplaced == tuple(sorted(made_up(0)))
    assert table.at(1).requested_of("evil.com/p3-7") == 1
    assert cache.cluster.namespace_usage.of("default").amounts["evil.com/p3-7"] == 1
    assert grown < 30 << 20
    assert len(running) == 5
    assert check_cache(cache) == []


def test_a_pod_that_was_there_first_is_counted_once_a_node_offers_what_it_asks_for() -> None:
    cache = Cache()
    cache.add_node(node("n1", cpu=4))
    waiting = cache.info(pod("waiting", requests={GPU: 2}))
    cache.add_pod(pod("odd", requests={GPU: 1}, node="n1"))
    cache.add_pod(pod("early", requests={GPU: 3}, node="n2"))
    assert waiting.shape.unplaced == (GPU,)
    layout = cache.cluster.nodes.layout

    cache.add_node(node("n2", cpu=4, allocatable={GPU: 8}))

    place = cache.cluster.resources.find(GPU)
    assert place is not None
    assert waiting.shape.unplaced == ()
    assert waiting.shape.requests[-1] == (place, 2)
    assert cache.cluster.nodes.layout > layout
    requested = {info.name: info.requested_of(GPU) for info in map(cache.cluster.nodes.at, (0, 1))}
    assert requested == {"n1": 1, "n2": 3}
    assert cache.assume(waiting, "n2").usage.vector[-1] == (place, 2)
    assert cache.cluster.nodes.requested[place, 1] == 5
    assert check_cache(cache) == []


def test_columns_are_freed_once_most_are_of_resources_that_no_node_offers() -> None:
    cache = Cache()
    cache.add_node(node("keeps", cpu=4, allocatable={GPU: 8}))
    for number in range(50):
        cache.add_node(node(f"n{number}", allocatable={f"example.com/card-{number}": 1}))
        cache.add_pod(pod(f"p{number}", requests={f"example.com/card-{number}": 1}, node=f"n{number}"))
    user = cache.add_pod(pod("user", requests={GPU: 3}, node="keeps"))
    assert len(cache.cluster.resources) == 54

    for number in range(49):
        cache.remove_node(f"n{number}")
    cache.add_node(node("n49"))

    assert len(cache.cluster.resources) < 30
    assert len(cache.cluster.nodes.requested) < 30
    keeps = cache.cluster.node("keeps")
    assert keeps is not None
    assert (keeps.allocatable_of(GPU), keeps.requested_of(GPU)) == (8, 3)
    assert user.usage.vector[-1] == (cache.cluster.resources.find(GPU), 3)
    assert check_cache(cache) == []

    cache.add_node(node("n3", allocatable={"example.com/card-3": 1}))
    assert check_cache(cache) == []
