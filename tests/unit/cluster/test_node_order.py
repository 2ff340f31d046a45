"""The order in which nodes are visited: round robin over zones."""

from __future__ import annotations

from bayplan.api.node import Node
from bayplan.cache import Cache
from bayplan.cluster.node_order import zone_of
from bayplan.testing import node


def visited(cache: Cache) -> list[str]:
    return [cache.cluster.nodes.at(row).name for row in cache.cluster.nodes.order.rows().tolist()]


def cache_of(*nodes: Node) -> Cache:
    cache = Cache()
    for each in nodes:
        cache.add_node(each)
    return cache


def test_zones_take_turns_in_the_order_they_were_first_seen() -> None:
    """Vector A19."""
    zones = {"a": "z1", "b": "z2", "c": "z3", "d": "z1", "e": "z1", "f": "z3"}
    cache = cache_of(*(node(name, zone=zone) for name, zone in zones.items()))

    assert visited(cache) == ["a", "b", "c", "d", "f", "e"]


def test_a_zone_that_empties_comes_back_at_the_end() -> None:
    cache = cache_of(node("a", zone="z1"), node("b", zone="z2"))
    cache.remove_node("a")
    cache.add_node(node("c", zone="z1"))

    assert visited(cache) == ["b", "c"]


def test_a_change_of_zone_shows_when_the_list_is_next_rebuilt() -> None:
    cache = cache_of(node("a", zone="z1"), node("b", zone="z1"), node("c", zone="z2"))
    assert visited(cache) == ["a", "c", "b"]
    cache.add_node(node("a", zone="z2"))
    assert visited(cache) == ["a", "c", "b"]
    cache.add_node(node("d", zone="z3"))

    assert visited(cache) == ["b", "c", "d", "a"]


def test_region_and_zone_together_make_a_zone_and_old_labels_come_first() -> None:
    beta = {"failure-domain.beta.kubernetes.io/zone": "old"}

    assert zone_of(node("a", zone="z", region="r")) != zone_of(node("b", zone="z", region="s"))
    assert zone_of(node("a", zone="new", labels=beta)) == zone_of(node("b", labels=beta))
    assert zone_of(node("a")) == ""
