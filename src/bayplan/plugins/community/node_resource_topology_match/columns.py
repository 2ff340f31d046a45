"""The NUMA cells of all nodes as columns, for Filter and Score.

A column is an array of cells by rows; -1 means that the cell does not list the resource. Rows are written again when
their node or its topology changed. Only resources that pods ask for have a column, the latest of them: topologies may
list any number of names.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from bayplan.framework import MAX_NODE_SCORE, NodeColumns
from bayplan.framework.columns import BoolN, Int32N, Int64N
from bayplan.framework.objects import Amounts, is_scalar_resource
from bayplan.plugins.community.node_resource_topology_match.least_numa import Layout, Layouts, least_numa_scores
from bayplan.plugins.community.node_resource_topology_match.requests import NumaRequests, is_affine, is_host_level
from bayplan.plugins.community.node_resource_topology_match.topology import POD_SCOPE, NumaTopology

__all__ = ["NOT_LISTED", "CellView", "NumaColumns", "mean_scores", "names_of"]

NOT_LISTED = -1
_MOST_COLUMNS = 64
Cells = npt.NDArray[np.int64]
"""(cells, nodes)"""


class NumaColumns:
    """One row per node, as in the node table."""

    def __init__(self) -> None:
        self._rows = 0
        self._cells = 0
        self._listed: dict[int, list[Amounts]] = {}
        """What is available in each cell of a row, as its topology lists it."""
        self._rows_of: dict[str, set[int]] = {}
        """The rows whose topology lists a resource."""
        self._available: dict[str, Cells] = {}
        self.is_fresh: BoolN = np.ones(0, dtype=np.bool_)
        self.is_single: BoolN = np.zeros(0, dtype=np.bool_)
        """Nodes with a topology whose kubelet requires one cell per container or pod."""
        self.is_pod_scope: BoolN = np.zeros(0, dtype=np.bool_)
        self._cell_count: Int64N = np.zeros(0, dtype=np.int64)
        self.layouts = Layouts()
        self.layout: Int64N = np.zeros(0, dtype=np.int64)
        """The number of cells; 0 where they are unknown."""
        self.most_cells: Int64N = np.ones(0, dtype=np.int64)
        self._held: dict[int, Layout] = {}
        """The layout of each row; holding it keeps it alive."""

    def reserve(self, rows: int) -> None:
        """Allocate for so many rows."""
        if rows > self._rows:
            self._allocate(rows, self._cells)

    def write(self, row: int, topology: NumaTopology | None, *, is_fresh: bool) -> None:
        cells = topology.cells if topology is not None else ()
        if len(cells) > self._cells:
            self._allocate(self._rows, len(cells))
        self._list(row, [cell.available for cell in cells])
        for name, column in self._available.items():
            self._write_cells(column, row, name)
        self._cell_count[row] = len(cells)
        self.is_fresh[row] = is_fresh
        self.is_single[row] = topology is not None and topology.is_single_numa
        self.is_pod_scope[row] = topology is not None and topology.settings.scope == POD_SCOPE
        self._write_layout(row, topology)

    def _list(self, row: int, cells: list[Amounts]) -> None:
        for name in {name for available in self._listed.pop(row, ()) for name in available}:
            self._rows_of[name].discard(row)
            if not self._rows_of[name]:
                del self._rows_of[name]
        self._listed[row] = cells
        for name in {name for available in cells for name in available}:
            self._rows_of.setdefault(name, set()).add(row)

    def _write_cells(self, column: Cells, row: int, name: str) -> None:
        column[:, row] = NOT_LISTED
        for place, available in enumerate(self._listed[row]):
            if name in available:
                column[place, row] = available[name]

    def _write_layout(self, row: int, topology: NumaTopology | None) -> None:
        if topology is None:
            self._held.pop(row, None)
            self.layout[row] = 0
            return
        layout = self._held[row] = self.layouts.of(topology)
        self.layout[row] = layout.number
        self.most_cells[row] = topology.settings.max_numa_nodes

    def _column(self, name: str) -> Cells:
        column = self._available.get(name)
        if column is None:
            column = np.full((self._cells, self._rows), NOT_LISTED, dtype=np.int64)
            for row in self._rows_of[name]:
                self._write_cells(column, row, name)
            if len(self._available) >= _MOST_COLUMNS:
                del self._available[next(iter(self._available))]
            self._available[name] = column
        return column

    def _allocate(self, rows: int, cells: int) -> None:
        for name, old in self._available.items():
            fresh = np.full((cells, rows), NOT_LISTED, dtype=np.int64)
            fresh[: old.shape[0], : old.shape[1]] = old
            self._available[name] = fresh
        grown = rows - self._rows
        self.is_fresh = np.concatenate([self.is_fresh, np.ones(grown, dtype=np.bool_)])
        self.is_single = np.concatenate([self.is_single, np.zeros(grown, dtype=np.bool_)])
        self.is_pod_scope = np.concatenate([self.is_pod_scope, np.zeros(grown, dtype=np.bool_)])
        self._cell_count = np.concatenate([self._cell_count, np.zeros(grown, dtype=np.int64)])
        self.layout = np.concatenate([self.layout, np.zeros(grown, dtype=np.int64)])
        self.most_cells = np.concatenate([self.most_cells, np.ones(grown, dtype=np.int64)])
        self._rows, self._cells = rows, cells

    def view(self, nodes: NodeColumns, where: BoolN, names: Iterable[str]) -> CellView:
        """The cells of the positions where the mask is set, for these resources."""
        positions = np.flatnonzero(where)
        rows = nodes.rows[positions]
        nowhere: BoolN = np.zeros(len(rows), dtype=np.bool_)
        lacking = dict.fromkeys(names, nowhere)
        for name in lacking if len(rows) else ():
            if is_scalar_resource(name):
                lacking[name] = nodes.allocatable(name)[positions] == 0
        empty = np.full((self._cells, len(rows)), NOT_LISTED, dtype=np.int64)
        available = {name: self._column(name)[:, rows] if name in self._rows_of else empty for name in lacking}
        exists: npt.NDArray[np.bool_] = np.arange(self._cells)[:, None] < self._cell_count[rows]
        return CellView(positions, available, lacking, exists)


class CellView:
    """The cells of some nodes, changed as containers are placed on them."""

    def __init__(
        self,
        positions: npt.NDArray[np.intp],
        available: dict[str, Cells],
        lacking: dict[str, BoolN],
        exists: npt.NDArray[np.bool_],
    ) -> None:
        self.positions = positions
        self._available = available
        self._lacking = lacking
        self._exists = exists
        """Which cells exist; nodes have different numbers of them."""
        self._cells = len(exists)

    def fit(self, requests: Amounts, *, is_guaranteed: bool) -> tuple[BoolN, Int32N]:
        """Where one cell has enough of everything, and the first such cell."""
        count = len(self.positions)
        suits = np.ones((max(self._cells, 1), count), dtype=np.bool_)
        possible: BoolN = np.ones(count, dtype=np.bool_)
        for name, amount in requests.items():
            if not amount:
                continue
            possible &= ~self._lacking[name]
            cells = self._available[name]
            listed = cells != NOT_LISTED
            suitable = listed if not is_guaranteed and is_affine(name) else listed & (cells >= amount)
            if is_host_level(name):
                suitable = suitable | ~listed.any(axis=0)
            if self._cells:
                suits &= suitable
            elif not is_host_level(name):
                suits[:] = False
        fits: BoolN = possible & suits.any(axis=0)
        return fits, suits.argmax(axis=0).astype(np.int32)

    def take(self, requests: Amounts, chosen: Int32N, where: BoolN, *, is_guaranteed: bool) -> None:
        """Place a container on its cell."""
        columns = np.flatnonzero(where)
        for name, amount in requests.items():
            if not amount or (is_affine(name) and not is_guaranteed) or not self._cells:
                continue
            cells = self._available[name] = self._available[name].copy()
            listed = cells[chosen[columns], columns] != NOT_LISTED
            cells[chosen[columns][listed], columns[listed]] -= amount

    def least_numa_scores(self, layout: Layout, parts: Sequence[Amounts], most_cells: Int64N) -> Int64N:
        """The LeastNUMANodes scores; all positions must have this layout."""
        if not len(self.positions):
            return np.zeros(0, dtype=np.int64)
        return least_numa_scores(layout, self._available, parts, most_cells=most_cells, not_listed=NOT_LISTED)

    def strategy_scores(self, requests: Amounts, strategy: str, weights: dict[str, int]) -> Int64N:
        """The lowest score above zero of any cell."""
        if not self._cells or not requests:
            return np.zeros(len(self.positions), dtype=np.int64)
        asked = {name: _whole(name, amount) for name, amount in requests.items()}
        capacity = {name: _whole_cells(name, self._available[name]) for name in asked}
        if strategy == "BalancedAllocation":
            by_cell = _balanced(asked, capacity)
        else:
            by_cell = _weighted(asked, capacity, weights, most=strategy == "MostAllocated")
        worst = np.where((by_cell > 0) & self._exists, by_cell, MAX_NODE_SCORE + 1).min(axis=0)
        return np.where(worst > MAX_NODE_SCORE, 0, worst)


def _whole(name: str, amount: int) -> int:
    """Cpus are counted whole, rounded up."""
    return -(-amount // 1000) if name == "cpu" else amount


def _whole_cells(name: str, cells: Cells) -> Cells:
    known: Cells = np.maximum(cells, 0)
    return -(-known // 1000) if name == "cpu" else known


def _weighted(asked: Amounts, capacity: dict[str, Cells], weights: dict[str, int], *, most: bool) -> Cells:
    total: Cells = np.zeros_like(next(iter(capacity.values())))
    for name, amount in asked.items():
        cells = capacity[name]
        part = amount if most else cells - amount
        share = np.where((cells == 0) | (amount > cells), 0, part * MAX_NODE_SCORE // np.maximum(cells, 1))
        total += share * max(weights.get(name, 1), 1)
    weight = sum(max(weights.get(name, 1), 1) for name in asked)
    return total // weight


def _balanced(asked: Amounts, capacity: dict[str, Cells]) -> Cells:
    fractions = np.array(
        [np.where(capacity[name] == 0, 1.0, amount / np.maximum(capacity[name], 1)) for name, amount in asked.items()]
    )
    spread = fractions.var(axis=0, ddof=1) if len(fractions) > 1 else np.zeros(fractions.shape[1:])
    scores = ((1.0 - spread) * MAX_NODE_SCORE).astype(np.int64)
    result: Cells = np.where((fractions > 1).any(axis=0), 0, scores)
    return result


def mean_scores(scores: Sequence[Int64N]) -> Int64N:
    """The mean over containers, truncated."""
    return np.asarray(sum(scores) // len(scores), dtype=np.int64)


def names_of(asked: NumaRequests) -> set[str]:
    return {name for each in asked.containers for name in each.requests} | set(asked.whole)
