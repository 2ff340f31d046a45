"""What namespaces use: sums that follow the pods."""

from __future__ import annotations

from bayplan.cache import Cache
from bayplan.testing import node, pod


def test_assumed_and_running_pods_count_for_their_namespace() -> None:
    cache = Cache()
    cache.add_node(node("n1"))
    cache.add_pod(pod("p1", cpu="500m", memory="1Gi", node="n1", namespace="a"))
    assumed = cache.assume(cache.info(pod("p2", cpu=1, namespace="a")), "n1")
    cache.add_pod(pod("p3", cpu=2, node="n1", namespace="b"))
    usage = cache.cluster.namespace_usage

    assert (usage.of("a").amounts, usage.of("a").pod_count) == ({"cpu": 1500, "memory": 2**30}, 2)
    assert usage.of("b").amounts == {"cpu": 2000}

    cache.forget(assumed.uid)
    assert (usage.of("a").amounts, usage.of("a").pod_count) == ({"cpu": 500, "memory": 2**30}, 1)


def test_pods_of_nodes_that_are_not_there_count_too() -> None:
    """A node that vanishes does not give its pods' share back: they are still there, as far as anybody knows."""
    cache = Cache()
    cache.add_node(node("n1"))
    cache.add_pod(pod("p1", cpu=1, node="n1", namespace="a"))
    cache.add_pod(pod("p2", cpu=1, node="unknown", namespace="a"))
    cache.remove_node("n1")

    assert cache.cluster.namespace_usage.of("a").amounts == {"cpu": 2000}


def test_a_namespace_without_pods_uses_nothing_and_is_forgotten() -> None:
    cache = Cache()
    info = cache.add_pod(pod("p1", cpu=1, node="n1", namespace="a"))
    cache.remove_pod(info.uid)
    usage = cache.cluster.namespace_usage

    assert (usage.of("a").amounts, usage.of("a").pod_count) == ({}, 0)
    assert usage.all() == {}
