"""What plugins are handed: the table cut to some rows, read-only, cut once."""

from __future__ import annotations

import numpy as np
import pytest

from bayplan.cache import Cache
from bayplan.snapshot.columns import NodeColumns
from bayplan.snapshot.resources import CPU
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
    everything, some = cache.snapshot.columns(), NodeColumns(cache.snapshot.nodes, _rows(3, 0))

    assert everything.is_all
    assert not some.is_all
    assert everything.allocatable(CPU).tolist() == [1000, 2000, 3000, 4000]
    assert some.allocatable(CPU).tolist() == [4000, 1000]
    assert some.requested(CPU).tolist() == [500, 0]
    assert some.nonzero_cpu.tolist() == [500, 0]
    assert some.pod_count.tolist() == [1, 0]
    assert everything.unschedulable.tolist() == [False, True, False, False]
    assert some.names == ["n3", "n0"]
    assert [info.name for info in some.infos() if info is not None] == ["n3", "n0"]
    assert len(some) == 2


def test_labels_come_as_ids_and_as_bins(cache: Cache) -> None:
    nodes = cache.snapshot.columns()

    assert nodes.label_values("topology.kubernetes.io/zone").tolist() == [0, 1, -1, 0]
    assert nodes.label_bins("topology.kubernetes.io/zone").tolist() == [0, 1, 2, 0]
    assert nodes.matching({"topology.kubernetes.io/zone": "a"}).tolist() == [True, False, False, True]
    assert nodes.matching({"topology.kubernetes.io/zone": "nowhere"}).tolist() == [False] * 4


def test_columns_cannot_be_written_to(cache: Cache) -> None:
    for nodes in (cache.snapshot.columns(), NodeColumns(cache.snapshot.nodes, _rows(1))):
        for column in (nodes.pod_count, nodes.allocatable(CPU), nodes.valid, nodes.label_values("x"), nodes.nonzero):
            with pytest.raises(ValueError, match="read-only"):
                column[0] = 1
    assert cache.snapshot.nodes.pod_count.flags.writeable


def test_a_cut_is_made_once(cache: Cache) -> None:
    nodes = NodeColumns(cache.snapshot.nodes, _rows(2, 1))

    assert nodes.pod_count is nodes.pod_count
    assert nodes.all_requested is nodes.all_requested


def test_taking_positions_of_some_rows_gives_their_rows(cache: Cache) -> None:
    some = NodeColumns(cache.snapshot.nodes, _rows(3, 1, 0)).take(_rows(2, 0))

    assert some.rows.tolist() == [0, 3]
    assert some.info(1).name == "n3"
