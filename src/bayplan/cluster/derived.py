"""Columns that are derived from the node table and follow it.

A derived block is a few float rows over all nodes, a pure function of each node's own row. It is computed when first
read, once per table however many plugins share it, and again for the rows that changed since it was last read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bayplan.cluster.axes import FloatRN, Rows

if TYPE_CHECKING:
    from bayplan.cluster.node_table import NodeTable

__all__ = ["DerivedColumns"]

_FEW = 32


class DerivedColumns:
    """Subclasses define how many rows there are and how to compute them."""

    HEIGHT = 0
    """How many numbers a node has here."""
    IS_ABOUT_USE = False
    """Whether labels of pods play no part; see `NodeTable.use_changes`."""
    HANDED_OUT: int | None = None
    """How many of them, the first ones, others get to see; None for all."""

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._log = table.use_changes if self.IS_ABOUT_USE else table.row_changes
        self._layout = -1
        self._position = -1
        self._columns: FloatRN = np.zeros((0, 0))

    def refreshed(self) -> FloatRN:
        """(HEIGHT, capacity), up to date. Read it before the next change."""
        table, log = self._table, self._log
        if self._position == log.position and self._layout == table.layout:
            return self._columns
        rows = log.since(self._position)
        if rows is None or self._layout != table.layout or len(rows) > _FEW:
            if self._layout != table.layout:
                self._columns = np.zeros((self.HEIGHT, table.capacity))
            self.write_all(self._columns[:, : table.size])
        else:
            for row in set(rows.tolist()):
                self.write_row(self._columns, row)
        self._layout, self._position = table.layout, log.position
        return self._columns

    def cut(self, rows: Rows | None) -> FloatRN:
        """(HANDED_OUT, nodes) of some rows, or of all: read-only, and current after `refreshed`."""
        columns = self._columns[: self.HANDED_OUT]
        return columns[:, : self._table.size] if rows is None else columns.take(rows, axis=1)

    def write_all(self, columns: FloatRN) -> None:
        raise TypeError("derived columns must define how to compute all rows")

    def write_row(self, columns: FloatRN, row: int) -> None:
        raise TypeError("derived columns must define how to compute one row")
