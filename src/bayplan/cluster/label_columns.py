"""Node labels as columns: for a key, the value id of every row.

A column is made when its key is first read and kept up to date from then on. Value ids are dense from 0,
so they double as the domains of a topology key. The id of a value that no node has any more is used again, columns
that were made long ago make room for newer ones, and all keys that no node has share one column, so neither nodes nor
pods can make this grow without end. All of it changes only when a node changes: ids and columns stay as they are
throughout a decision, and for as long as `node_changes` of the table stands still.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from bayplan.cluster.axes import ABSENT, Int32N, Rows
from bayplan.cluster.interned import Interned

__all__ = ["MOST_COLUMNS", "LabelColumn", "LabelColumns"]

MOST_COLUMNS = 256


class LabelColumn:
    """One key. `values[row]` is an id into `names`, or ABSENT."""

    def __init__(self, key: str, capacity: int) -> None:
        self.key = key
        self.values: Int32N = np.full(capacity, ABSENT, dtype=np.int32)
        self.version = 0
        self._interned: Interned[str] = Interned()
        self.names: list[str] = self._interned.keys
        self._shared_values = 0
        self.present = 0
        """How many nodes have the key."""
        self._bins: Rows | None = None
        self._bins_version = -1
        self._ids_in_use: list[int] = []
        self._ids_version = -1
        self.is_rows = False
        """As of the last `bins`: row for row, the id of the value is the number of the row, for as many as there are
        ids. So it is with the hostname where nodes came and never went."""

    @property
    def domains(self) -> int:
        """How many value ids there are, counting those that wait for a new value."""
        return len(self.names)

    @property
    def is_injective(self) -> bool:
        """Every value on one node at most, as with the hostname: a domain is then a row."""
        return self._shared_values == 0

    def bins(self) -> Rows:
        """For each row its value id, and `domains` where the key is absent: as a bincount over rows takes it."""
        if self._bins is None or self._bins_version != self.version:
            self._bins = np.where(self.values >= 0, self.values, self.domains).astype(np.intp)
            self._bins_version = self.version
            first = self._bins[: self.domains]
            self.is_rows = self.present == self.domains and np.array_equal(first, np.arange(self.domains))
        return self._bins

    def ids_in_use(self) -> list[int]:
        """The ids of the values that some node has."""
        if self._ids_version != self.version:
            self._ids_in_use = np.unique(self.values[self.values != ABSENT]).tolist()
            self._ids_version = self.version
        return self._ids_in_use

    def values_in_use(self) -> int:
        """How many values some node has."""
        return len(self._interned)

    def id_of(self, value: str) -> int:
        return self._interned.find(value)

    def set(self, row: int, value: str | None) -> None:
        before = int(self.values[row])
        if value == (None if before == ABSENT else self.names[before]):
            return
        if before != ABSENT:
            self._release(before)
        self.values[row] = ABSENT if value is None else self._hold(value)
        self.version += 1

    def _hold(self, value: str) -> int:
        number = self._interned.hold(value)
        self._shared_values += self._interned.holders(number) == 2
        self.present += 1
        return number

    def _release(self, number: int) -> None:
        self._shared_values -= self._interned.holders(number) == 2
        self._interned.release(number)
        self.present -= 1

    def grow(self, capacity: int) -> None:
        more = np.full(capacity - len(self.values), ABSENT, dtype=np.int32)
        self.values = np.concatenate([self.values, more])
        self.version += 1


class LabelColumns:
    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._columns: dict[str, LabelColumn] = {}
        self._absent = LabelColumn("", capacity)
        """Of every key that no node has; pods may name as many of them as they like."""
        self._labels: dict[int, dict[str, str]] = {}
        """By row, as last written."""
        self._nodes_with: Counter[str] = Counter()
        """By key."""

    def column(self, key: str) -> LabelColumn:
        """The column of a key, filled when it is new."""
        column = self._columns.get(key)
        if column is not None:
            return column
        if not self._nodes_with[key]:
            return self._absent
        column = self._columns[key] = LabelColumn(key, self._capacity)
        for row, labels in self._labels.items():
            column.set(row, labels.get(key))
        return column

    def __iter__(self) -> Iterator[LabelColumn]:
        """The columns that were read so far, of keys that some node had then."""
        return iter(self._columns.values())

    def set_row(self, row: int, labels: dict[str, str]) -> None:
        if len(self._columns) > MOST_COLUMNS:
            self._make_room()
        self._note(row, labels)
        for key, column in self._columns.items():
            column.set(row, labels.get(key))

    def _note(self, row: int, labels: dict[str, str]) -> None:
        before = self._labels.pop(row, {})
        if labels:
            self._labels[row] = labels
        for key in before.keys() - labels.keys():
            self._nodes_with[key] -= 1
            if not self._nodes_with[key]:
                del self._nodes_with[key]
        self._nodes_with.update(labels.keys() - before.keys())

    def _make_room(self) -> None:
        """Drop the older half. Pods may name any key; a column that is read again is made again."""
        for key in list(self._columns)[: len(self._columns) - MOST_COLUMNS // 2]:
            del self._columns[key]

    def grow(self, capacity: int) -> None:
        self._capacity = capacity
        for column in (self._absent, *self._columns.values()):
            column.grow(capacity)
