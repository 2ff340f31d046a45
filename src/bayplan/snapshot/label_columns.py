"""Node labels as columns: for a key, the value id of every row.

A column is made when something first asks for its key and kept up to date from then on. Value ids are dense from 0,
so they double as the domains of a topology key.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from bayplan.snapshot.axes import ABSENT, Int32N, Rows
from bayplan.snapshot.node_info import NodeInfo

__all__ = ["LabelColumn", "LabelColumns"]


class LabelColumn:
    """One key. `values[row]` is an id into `names`, or ABSENT."""

    def __init__(self, key: str, capacity: int) -> None:
        self.key = key
        self.values: Int32N = np.full(capacity, ABSENT, dtype=np.int32)
        self.names: list[str] = []
        self.version = 0
        self._ids: dict[str, int] = {}
        self._nodes_per_value: list[int] = []
        self._shared_values = 0
        self.present = 0
        """How many nodes have the key."""
        self._bins: Rows | None = None
        self._bins_version = -1

    @property
    def domains(self) -> int:
        """How many value ids there are, counting values no node has any more."""
        return len(self.names)

    @property
    def is_injective(self) -> bool:
        """Every value on one node at most, as with the hostname: a domain is then a row."""
        return self._shared_values == 0

    def bins(self) -> Rows:
        """For each row its value id, and `domains` where the key is absent: what a bincount over rows wants."""
        if self._bins is None or self._bins_version != self.version:
            self._bins = np.where(self.values >= 0, self.values, self.domains).astype(np.intp)
            self._bins_version = self.version
        return self._bins

    def values_in_use(self) -> int:
        """How many values some node has."""
        return sum(count > 0 for count in self._nodes_per_value)

    def id_of(self, value: str) -> int:
        return self._ids.get(value, ABSENT)

    def set(self, row: int, value: str | None) -> None:
        before = int(self.values[row])
        after = ABSENT if value is None else self._intern(value)
        if before == after:
            return
        self.present += (after >= 0) - (before >= 0)
        if before >= 0:
            self._nodes_per_value[before] -= 1
            self._shared_values -= self._nodes_per_value[before] == 1
        if after >= 0:
            self._nodes_per_value[after] += 1
            self._shared_values += self._nodes_per_value[after] == 2
        self.values[row] = after
        self.version += 1

    def grow(self, capacity: int) -> None:
        more = np.full(capacity - len(self.values), ABSENT, dtype=np.int32)
        self.values = np.concatenate([self.values, more])
        self.version += 1

    def _intern(self, value: str) -> int:
        number = self._ids.get(value)
        if number is None:
            number = self._ids[value] = len(self.names)
            self.names.append(value)
            self._nodes_per_value.append(0)
        return number


class LabelColumns:
    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._columns: dict[str, LabelColumn] = {}

    def column(self, key: str, rows: Iterable[NodeInfo | None]) -> LabelColumn:
        """The column of a key, filled from `rows` when it is new."""
        column = self._columns.get(key)
        if column is None:
            column = self._columns[key] = LabelColumn(key, self._capacity)
            for info in rows:
                if info is not None:
                    column.set(info.row, info.labels.get(key))
        return column

    def __iter__(self) -> Iterator[LabelColumn]:
        """The columns that were asked for so far."""
        return iter(self._columns.values())

    def set_row(self, row: int, labels: dict[str, str]) -> None:
        for key, column in self._columns.items():
            column.set(row, labels.get(key))

    def grow(self, capacity: int) -> None:
        self._capacity = capacity
        for column in self._columns.values():
            column.grow(capacity)
