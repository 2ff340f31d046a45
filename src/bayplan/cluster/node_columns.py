"""The argument `nodes` of plugins: columns over all rows, or over some of them.

`NodeColumns` cuts the node table to the rows in question; every array it hands out has one entry a position, and
`rows[position]` is the row. Rows without a node occur in the uncut form; answers for them are ignored. What was cut
once is kept for the next plugin that reads it, so a view is valid for the decision that it was made for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from bayplan.cluster.axes import ABSENT, BoolN, FloatRN, Int32N, Int64N, Int64RN, Rows
from bayplan.cluster.derived import DerivedColumns
from bayplan.cluster.label_columns import LabelColumn
from bayplan.cluster.node_info import NodeInfo
from bayplan.cluster.node_table import NodeTable

__all__ = ["NodeColumns"]

D = TypeVar("D", bound=DerivedColumns)
_Column = np.ndarray[tuple[int], np.dtype[Any]]


class NodeColumns:
    """Read-only columns. `is_all` says that positions are rows."""

    __slots__ = ("_kept", "_rows", "is_all", "table")

    def __init__(self, table: NodeTable, rows: Rows | None = None) -> None:
        self.table = table
        self.is_all = rows is None
        self._rows = rows
        self._kept: dict[object, Any] = {}

    def __len__(self) -> int:
        return self.table.size if self.is_all else len(self.rows)

    @property
    def rows(self) -> Rows:
        if self._rows is None:
            self._rows = self._find_rows()
        return self._rows

    def _find_rows(self) -> Rows:
        return np.arange(self.table.size, dtype=np.intp)

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
        column: BoolN = self._cut("valid", self.table.valid)
        return column

    @property
    def unschedulable(self) -> BoolN:
        column: BoolN = self._cut("unschedulable", self.table.unschedulable)
        return column

    @property
    def taint_set(self) -> Int32N:
        """Which of `table.taint_sets` each node has."""
        column: Int32N = self._cut("taint_set", self.table.taint_set)
        return column

    @property
    def pod_count(self) -> Int64N:
        column: Int64N = self._cut("pod_count", self.table.pod_count)
        return column

    @property
    def allowed_pods(self) -> Int64N:
        column: Int64N = self._cut("allowed_pods", self.table.allowed_pods)
        return column

    @property
    def nonzero(self) -> Int64RN:
        """Requested milli-cpu and bytes, one row each, with 100m and 200Mi for containers that request none."""
        columns: Int64RN = self._cut_all("nonzero", self.table.nonzero, 2)
        return columns

    @property
    def nonzero_cpu(self) -> Int64N:
        """Requested milli-cpu, with 100m for each container that requests none."""
        column: Int64N = self.nonzero[0]
        return column

    @property
    def nonzero_memory(self) -> Int64N:
        """Requested bytes, with 200Mi for each container that requests none."""
        column: Int64N = self.nonzero[1]
        return column

    def allocatable(self, resource: str | int) -> Int64N:
        """What each node offers of a resource: `allocatable("cpu")` in thousandths, `allocatable("memory")` in bytes.

        A place on the resource axis stands for the name where it is known already."""
        return self._resource(self.all_allocatable, resource)

    def requested(self, resource: str | int) -> Int64N:
        """What the pods on each node request of a resource, in the units of `allocatable`."""
        return self._resource(self.all_requested, resource)

    def _resource(self, columns: Int64RN, resource: str | int) -> Int64N:
        place = self.table.resources.find(resource) if isinstance(resource, str) else resource
        # A resource that no node offers has no place.
        column: Int64N = np.zeros(len(self), dtype=np.int64) if place is None else columns[place]
        return column

    @property
    def all_allocatable(self) -> Int64RN:
        """One row a resource, in the order of the resource axis."""
        columns: Int64RN = self._cut_all("allocatable", self.table.allocatable, len(self.table.resources))
        return columns

    @property
    def all_requested(self) -> Int64RN:
        """One row a resource, in the order of the resource axis."""
        columns: Int64RN = self._cut_all("requested", self.table.requested, len(self.table.resources))
        return columns

    def derived(self, kind: type[DerivedColumns]) -> FloatRN | None:
        """Columns that are derived from the table; None in a dry run, whose pods are not those of the table."""
        found: FloatRN | None = self._kept.get(kind)
        if found is None:
            source = self.derivation(kind)
            if source is None:
                return None
            found = source.cut(None if self.is_all else self.rows)
            found.flags.writeable = False
            self._kept[kind] = found
        return found

    def derivation(self, kind: type[D]) -> D | None:
        """What derives those columns, brought up to date, for questions about all nodes; None in a dry run."""
        key = ("derivation", kind)
        source: D | None = self._kept.get(key)
        if source is None:
            source = self._kept[key] = self.table.derived(kind)
            source.refreshed()
        return source

    def label(self, key: str) -> LabelColumn:
        """The whole column of a key; index its `values` with `rows`, or use `label_values`."""
        return self.table.label(key)

    def label_values(self, key: str) -> Int32N:
        """For each position the value id of the key, ABSENT where the node lacks it."""
        column = self.table.label(key)
        values: Int32N = self._cut(("label", column.key), column.values)
        return values

    def label_bins(self, key: str) -> Rows:
        """As `label_values`, with `domains` in place of ABSENT and of the type that `take` needs."""
        column = self.table.label(key)
        bins: Rows = self._cut(("bins", column.key), column.bins())
        return bins

    def by_label(self, key: str, answers: _Column) -> _Column:
        """What is given for each value id, and once more at the end for nodes without the key, one entry a position.
        Not to be changed."""
        column, size = self.table.label(key), self.table.size
        bins = column.bins()
        if column.is_rows and column.domains == size:
            return answers[:-1] if self.is_all else answers.take(self.rows)
        return answers.take(bins[:size] if self.is_all else self.label_bins(key))

    def places_in_use(self, key: str) -> list[int]:
        """Value ids that occur among these nodes. For views in which every row holds a node."""
        column = self.table.label(key)
        if self.is_all and column.present == len(self.table):
            return column.ids_in_use()
        found: list[int] = np.bincount(self.label_bins(key)).nonzero()[0].tolist()
        return found

    def cut(self, column: _Column) -> _Column:
        """Any column over all rows, one entry a position."""
        return column[: self.table.size] if self.is_all else column[self.rows]

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

    def infos(self) -> Sequence[NodeInfo | None]:
        """The node of each position; None for a row that holds none."""
        infos = self.table.infos
        return infos if self.is_all else [infos[row] for row in self.rows.tolist()]

    def _cut(self, name: object, column: _Column) -> Any:
        found = self._kept.get(name)
        if found is None:
            found = self._kept[name] = self.cut(column)
            found.flags.writeable = False
        return found

    def _cut_all(self, name: str, columns: np.ndarray[tuple[int, int], np.dtype[Any]], count: int) -> Any:
        found = self._kept.get(name)
        if found is None:
            columns = columns[:count]
            found = columns[:, : self.table.size] if self.is_all else columns.take(self.rows, axis=1)
            found.flags.writeable = False
            self._kept[name] = found
        return found
