"""Columns of NUMA cells exist for what pods ask for, however many names topologies list."""

from __future__ import annotations

import numpy as np

from bayplan.plugins.community.node_resource_topology_match.columns import NOT_LISTED, NumaColumns
from bayplan.plugins.community.node_resource_topology_match.topology import NumaCell, NumaTopology, TopologySettings


def topology(*cells: dict[str, int]) -> NumaTopology:
    made = tuple(NumaCell(number, available, {}, {}) for number, available in enumerate(cells))
    return NumaTopology(TopologySettings(), made, "", "")


def test_names_that_nobody_asks_for_have_no_column() -> None:
    columns = NumaColumns()
    columns.reserve(1000)
    for row in range(20):
        columns.write(row, topology({f"r{row}-{i}": 1 for i in range(500)} | {"cpu": row}), is_fresh=True)
    for number in range(200):
        columns._column(f"r0-{number}")

    assert len(columns._available) <= 64
    assert columns._column("cpu")[0, :21].tolist() == [*range(20), NOT_LISTED]


def test_a_column_follows_its_rows() -> None:
    columns = NumaColumns()
    columns.reserve(4)
    columns.write(1, topology({"cpu": 4}, {"cpu": 8}), is_fresh=True)
    assert columns._column("cpu")[:, 1].tolist() == [4, 8]
    columns.write(1, topology({"cpu": 2}, {}, {"cpu": 9}), is_fresh=True)
    assert columns._column("cpu")[:, 1].tolist() == [2, NOT_LISTED, 9]
    columns.write(1, None, is_fresh=True)

    assert np.all(columns._available["cpu"] == NOT_LISTED)
    assert columns._rows_of == {}
