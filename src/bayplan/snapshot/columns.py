"""What a plugin is handed as `nodes`: columns over all rows, or over the rows at issue.

`NodeColumns` cuts the node table to the rows in question; every array it hands out has one entry a position, and
`rows[position]` is the row. Rows without a node occur in the uncut form; answers for them are ignored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

import numpy as np

from bayplan.snapshot.axes import ABSENT, BoolN, Int32N, Int64N, Rows
from bayplan.snapshot.label_columns import LabelColumn
from bayplan.snapshot.node_info import NodeInfo
from bayplan.snapshot.node_table import NodeTable

__all__ = ["NodeColumns"]


class NodeColumns:
    """Read-only columns. `is_all` says that positions are rows."""

    def __init__(self, table: NodeTable, rows: Rows | None = None) -> None:
        self.table = table
        self.is_all = rows is None
        self._rows = rows

    @cached_property
    def _cut(self) -> slice | Rows:
        return slice(0, self.table.size) if self._rows is None else self._rows

    def __len__(self) -> int:
        return self.table.size if isinstance(self._cut, slice) else len(self._cut)

    @cached_property
    def rows(self) -> Rows:
        return np.arange(self.table.size, dtype=np.intp) if isinstance(self._cut, slice) else self._cut

    def __iter__(self) -> Iterator[NodeInfo]:
        """The nodes one by one; only for rows that hold a node."""
        infos = self.table.infos
        for row in self.rows.tolist():
            info = infos[row]
            if info is not None:
                yield info

    def take(self, positions: Rows) -> NodeColumns:
        """The columns of some positions."""
        return NodeColumns(self.table, positions if self.is_all else self.rows[positions])

    @property
    def names(self) -> list[str]:
        return [info.name for info in self]

    @property
    def valid(self) -> BoolN:
        return self._read(self.table.valid)

    @property
    def unschedulable(self) -> BoolN:
        return self._read(self.table.unschedulable)

    @property
    def taint_set(self) -> Int32N:
        """Which of `table.taint_sets` each node has."""
        column = self.table.taint_set[self._cut]
        column.flags.writeable = False
        return column

    @property
    def pod_count(self) -> Int64N:
        return self._read64(self.table.pod_count)

    @property
    def allowed_pods(self) -> Int64N:
        return self._read64(self.table.allowed_pods)

    @property
    def nonzero_cpu(self) -> Int64N:
        """Requested milli-cpu, with 100m for each container that asks for none."""
        return self._read64(self.table.nonzero[0])

    @property
    def nonzero_memory(self) -> Int64N:
        """Requested bytes, with 200Mi for each container that asks for none."""
        return self._read64(self.table.nonzero[1])

    def allocatable(self, place: int) -> Int64N:
        return self._read64(self.table.allocatable[place])

    def requested(self, place: int) -> Int64N:
        return self._read64(self.table.requested[place])

    def label(self, key: str) -> LabelColumn:
        """The whole column of a key; index its `values` with `rows`, or use `label_values`."""
        return self.table.label(key)

    def label_values(self, key: str) -> Int32N:
        """For each position the value id of the key, ABSENT where the node lacks it."""
        column = self.table.label(key).values[self._cut]
        column.flags.writeable = False
        return column

    def matching(self, labels: Mapping[str, str]) -> BoolN:
        """Where every given label has exactly the given value."""
        mask = np.ones(len(self), dtype=np.bool_)
        for key, value in labels.items():
            number = self.table.label(key).id_of(value)
            mask &= (self.label_values(key) == number) & (number != ABSENT)
        return mask

    def info(self, position: int) -> NodeInfo:
        """The node at a position, as the one-node form sees it."""
        return self.table.at(position if self.is_all else int(self.rows[position]))

    def _read(self, column: BoolN) -> BoolN:
        column = column[self._cut]
        column.flags.writeable = False
        return column

    def _read64(self, column: Int64N) -> Int64N:
        column = column[self._cut]
        column.flags.writeable = False
        return column
