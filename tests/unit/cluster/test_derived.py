"""Derived columns: mended rows equal rows computed anew."""

from __future__ import annotations

import random

import numpy as np

from bayplan.cache import Cache
from bayplan.cluster.axes import FloatRN
from bayplan.cluster.derived import DerivedColumns
from bayplan.testing.build import node, pod


class _Doubled(DerivedColumns):
    HEIGHT = 1
    written_rows = 0

    def write_all(self, columns: FloatRN) -> None:
        columns[0] = 2 * self._table.pod_count[: self._table.size]

    def write_row(self, columns: FloatRN, row: int) -> None:
        _Doubled.written_rows += 1
        columns[0, row] = 2 * self._table.pod_count[row]


def test_all_who_ask_share_one_block() -> None:
    table = Cache().cluster.nodes

    assert table.derived(_Doubled) is table.derived(_Doubled)


def test_a_change_of_one_node_mends_one_row() -> None:
    cache = Cache()
    for name in ("a", "b"):
        cache.add_node(node(name))
    block = cache.cluster.nodes.derived(_Doubled)
    block.refreshed()
    before = _Doubled.written_rows

    cache.add_pod(pod("p", node="b"))

    assert block.refreshed()[0, :2].tolist() == [0, 2]
    assert _Doubled.written_rows == before + 1


def test_mended_rows_equal_rows_computed_anew_over_a_long_history() -> None:
    rng = random.Random(11)
    cache = Cache()
    names = [f"n{number}" for number in range(20)]
    for step in range(300):
        name = rng.choice(names)
        action = rng.randrange(4)
        if action == 0:
            cache.add_node(node(name))
        elif action == 1 and rng.random() < 0.3:
            cache.remove_node(name)
        else:
            cache.add_pod(pod(f"p{step}", node=name))
        columns = cache.cluster.columns()
        kept = columns.derived(_Doubled)
        assert kept is not None
        assert (kept[0] == 2 * columns.pod_count).all()
    assert isinstance(kept, np.ndarray)
