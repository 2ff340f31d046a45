"""What plugins are handed: the table cut to some rows, read-only, cut once."""

from __future__ import annotations

import numpy as np
import pytest

from bayplan.cache import Cache
from bayplan.cluster.node_columns import NodeColumns
from bayplan.cluster.resources import CPU
from bayplan.testing.build import node, pod


@pytest.fixture
def cache() -> Cache:
    cache = Cache()
    for number, zone in enumerate(("a", "b", None, "a")):
        cache.add_node(node(f"n{number}", cpu=number + 1, zone=zone, unschedulable=number == 1))
    cache.add_pod(pod("p", node="n3", cpu="500m", memory="1Gi"))
    return cache


def _rows(*rows: int) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    return np.array(rows, dtype=np.intp)


def test_all_rows_and_some_rows_tell_the_same(cache: Cache) -> None:
    everything, some = cache.cluster.columns(), NodeColumns(cache.cluster.nodes, _rows(3, 0))

    assert everything.is_all
    assert not some.is_all
    assert everything.allocatable(CPU).tolist() == [1000, 2000, 3000, 4000]
    assert everything.allocatable("cpu").tolist() == [1000, 2000, 3000, 4000]
    assert everything.requested("example.com/unheard-of").tolist() == [0, 0, 0, 0]
    assert some.allocatable(CPU).tolist() == [4000, 1000]
    assert some.requested(CPU).tolist() == [500, 0]
    assert some.nonzero_cpu.tolist() == [500, 0]
    assert some.pod_count.tolist() == [1, 0]
    assert everything.unschedulable.tolist() == [False, True, False, False]
    assert some.names == ["n3", "n0"]
    assert [info.name for info in some.infos() if info is not None] == ["n3", "n0"]
    assert len(some) == 2


def test_labels_come_as_ids_and_as_bins(cache: Cache) -> None:
    nodes = cache.cluster.columns()

    assert nodes.label_values("topology.kubernetes.io/zone").tolist() == [0, 1, -1, 0]
    assert nodes.label_bins("topology.kubernetes.io/zone").tolist() == [0, 1, 2, 0]
    assert nodes.matching({"topology.kubernetes.io/zone": "a"}).tolist() == [True, False, False, True]
    assert nodes.matching({"topology.kubernetes.io/zone": "nowhere"}).tolist() == [False] * 4


def test_columns_cannot_be_written_to(cache: Cache) -> None:
    for nodes in (cache.cluster.columns(), NodeColumns(cache.cluster.nodes, _rows(1))):
        for column in (nodes.pod_count, nodes.allocatable(CPU), nodes.valid, nodes.label_values("x"), nodes.nonzero):
            with pytest.raises(ValueError, match="read-only"):
                column[0] = 1
    assert cache.cluster.nodes.pod_count.flags.writeable


def test_a_cut_is_made_once(cache: Cache) -> None:
    nodes = NodeColumns(cache.cluster.nodes, _rows(2, 1))

    assert nodes.pod_count is nodes.pod_count
    assert nodes.all_requested is nodes.all_requested


def test_taking_positions_of_some_rows_gives_their_rows(cache: Cache) -> None:
    some = NodeColumns(cache.cluster.nodes, _rows(3, 1, 0)).take(_rows(2, 0))

    assert some.rows.tolist() == [0, 3]
    assert some.info(1).name == "n3"


def test_answers_by_value_are_spread_over_the_nodes(cache: Cache) -> None:
    zone, host = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
    by_zone, by_host = np.array([10, 20, 30]), np.array([1, 2, 3, 4, 5])
    everything, some = cache.cluster.columns(), NodeColumns(cache.cluster.nodes, _rows(3, 2))

    assert everything.by_label(zone, by_zone).tolist() == [10, 20, 30, 10]
    assert some.by_label(zone, by_zone).tolist() == [10, 30]
    assert everything.by_label(host, by_host).tolist() == [1, 2, 3, 4]
    assert some.by_label(host, by_host).tolist() == [4, 3]


def test_answers_by_hostname_follow_nodes_that_come_and_go(cache: Cache) -> None:
    cache.remove_node("n1")
    cache.remove_node("n0")
    cache.add_node(node("n4"))
    nodes = cache.cluster.columns()
    names = nodes.label("kubernetes.io/hostname").names

    spread = nodes.by_label("kubernetes.io/hostname", np.arange(len(names) + 1))

    assert {info.name: names[spread[info.row]] for info in nodes} == {name: name for name in ("n2", "n3", "n4")}


def test_places_that_the_nodes_at_issue_look_at_are_known(cache: Cache) -> None:
    zone = "topology.kubernetes.io/zone"
    assert cache.cluster.columns().places_in_use(zone) == [0, 1, 2]
    assert NodeColumns(cache.cluster.nodes, _rows(0, 3)).places_in_use(zone) == [0]

    cache.remove_node("n2")

    assert NodeColumns(cache.cluster.nodes, _rows(0, 1)).places_in_use(zone) == [0, 1]
