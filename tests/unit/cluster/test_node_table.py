"""The node table: rows stay put, holes are filled, columns grow, and every change is logged."""

from __future__ import annotations

from bayplan.cache import Cache
from bayplan.cache.check import check_cache
from bayplan.cluster.node_columns import NodeColumns
from bayplan.cluster.resources import CPU, MEMORY
from bayplan.testing.build import node, pod


def test_a_deleted_node_leaves_a_hole_that_the_next_node_fills() -> None:
    cache = Cache()
    table = cache.cluster.nodes
    rows = [cache.add_node(node(name)).row for name in ("a", "b", "c")]
    cache.remove_node("b")

    assert table.infos[rows[1]] is None
    assert (table.size, len(table)) == (3, 2)
    assert not table.valid[rows[1]]
    assert table.allocatable[CPU, rows[1]] == 0
    assert table.divisor[CPU, rows[1]] == 1

    assert cache.add_node(node("d")).row == rows[1]
    assert table.size == 3


def test_growing_keeps_what_was_there_and_says_so() -> None:
    cache = Cache()
    table = cache.cluster.nodes
    cache.add_node(node("first", cpu=7, zone="z"))
    zone = table.label("topology.kubernetes.io/zone")
    layout, capacity = table.layout, table.capacity
    for number in range(capacity):
        cache.add_node(node(f"n{number}"))

    assert table.capacity > capacity
    assert table.layout > layout
    assert table.allocatable[CPU, 0] == 7000
    assert table.divisor[CPU, 0] == 7000
    assert len(zone.values) == table.capacity
    assert len(cache.cluster.pods._counters) == 0


def test_changes_of_pods_and_of_nodes_are_logged_apart() -> None:
    cache = Cache()
    table = cache.cluster.nodes
    row = cache.add_node(node("a")).row
    nodes_before, rows_before = table.node_changes.position, table.row_changes.position

    cache.add_pod(pod("p", node="a", cpu=1))

    assert table.node_changes.position == nodes_before
    assert table.row_changes.since(rows_before).tolist() == [row]  # type: ignore[union-attr]
    assert table.use_changes.position == table.row_changes.position
    cache.add_node(node("a", unschedulable=True))
    assert table.node_changes.since(nodes_before).tolist() == [row]  # type: ignore[union-attr]


def test_a_resource_is_scarce_when_some_node_offers_none_of_it() -> None:
    cache = Cache()
    table = cache.cluster.nodes
    cache.add_node(node("a"))
    assert not table.is_scarce(CPU)
    cache.add_node(node("b", cpu=0))
    assert table.is_scarce(CPU)
    assert not table.is_scarce(MEMORY)
    assert table.is_scarce(99), "nobody offers what nobody ever named"
    cache.remove_node("b")
    assert not table.is_scarce(CPU), "a hole is not a node that offers nothing"


def test_a_resource_that_only_a_waiting_pod_names_counts_as_nothing() -> None:
    cache = Cache()
    cache.add_node(node("a"))
    wanted = cache.info(pod("p", requests={f"example.com/r{number}": 1 for number in range(12)}))
    columns = NodeColumns(cache.cluster.nodes)

    for place, _ in wanted.shape.requests:
        assert columns.allocatable(place).tolist() == [0]
        assert columns.requested(place).tolist() == [0]


def test_nodes_that_come_and_go_for_years_leave_nothing_behind() -> None:
    """Each node has a name of its own, and taints with the time of day, as an autoscaler writes them."""
    cache = Cache()
    table = cache.cluster.nodes
    cache.add_node(node("n0"))
    hostname = table.label("kubernetes.io/hostname")
    for number in range(2000):
        cache.add_node(node(f"n{number}", taints=[f"ToBeDeleted={number}:NoSchedule"]))
        cache.add_node(node(f"n{number}", taints=[f"ToBeDeleted={number}-later:NoSchedule"]))
        if number >= 20:
            cache.remove_node(f"n{number - 20}")

    assert len(table) == 20
    assert table.size <= 21
    assert hostname.domains <= 21
    assert hostname.values_in_use() == 20
    assert len(table.taint_sets) <= 22
    assert check_cache(cache) == []


def test_nodes_with_equal_taints_share_a_set_until_the_last_one_goes() -> None:
    cache = Cache()
    table = cache.cluster.nodes
    rows = [cache.add_node(node(name, taints=["gpu=yes:NoSchedule"])).row for name in ("a", "b")]
    cache.remove_node("a")
    kept = table.taint_set[rows[1]]
    assert [t.key for t in table.taint_sets[kept]] == ["gpu"]

    cache.add_node(node("c", taints=["spot=yes:NoSchedule"]))

    assert [t.key for t in table.taint_sets[table.taint_set[rows[1]]]] == ["gpu"]
    assert len(table.taint_sets) == 2
