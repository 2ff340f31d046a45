"""The evaluation of one pod shape: which nodes pass and what each would score, kept up to date row by row.

For every shape the engine keeps, over all rows,

    rank[row]   which remembered filter is the first to reject the node (0: none does)
    base[row]   the weighted sum of the scores that need no normalising
    key[row]    base plus the normalised scores where the node passes, -1 where it does not

so that choosing a node for the next pod of the same shape is one `argmax` after mending the few rows that changed.
What other plugins say (those that depend on the whole cluster) is added per decision by the caller. Nothing here is
needed for correctness: a new Evaluation gives the same answers as one that was mended a million times.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from bayplan.framework.depends import Depends
from bayplan.framework.normalize import MAX_NODE_SCORE
from bayplan.framework.runtime.call import FilterCall, ScoreCall
from bayplan.framework.runtime.columns import FEW_ROWS, Column, FilterColumn, RowChanges, ScoreColumn
from bayplan.framework.runtime.distinct import group_by_status
from bayplan.framework.status import Status
from bayplan.snapshot.axes import BoolN, Int64N, Rows
from bayplan.snapshot.node_table import NodeTable
from bayplan.snapshot.pod_info import PodInfo

__all__ = ["NO_NODE", "Evaluation", "Normalized"]

Totals = np.ndarray[tuple[int], np.dtype[Any]]
"""int32, or int64 where weights are absurd."""

_INT32_MAX = int(np.iinfo(np.int32).max)

NO_NODE = 255
"""Rank of a row that holds no node."""


class Normalized:
    """A remembered score that is normalised over the feasible nodes."""

    __slots__ = ("bounds", "call", "column", "contribution")

    def __init__(self, call: ScoreCall, column: ScoreColumn) -> None:
        self.call = call
        self.column = column
        self.bounds: tuple[int, int] = (0, 0)
        self.contribution: Int64N | None = None
        """Weighted scores by row; None while the column is uniform and its share is the same everywhere."""

    def one(self, row: int) -> int:
        normalizer = self.call.normalizer
        return self.call.weight * normalizer.apply_one(int(self.column.values[row]), self.bounds) if normalizer else 0

    def uniform_share(self) -> int:
        normalizer, value = self.call.normalizer, self.column.uniform_value
        if normalizer is None:
            return 0
        bounds = normalizer.bounds(np.array([value], dtype=np.int64))
        return self.call.weight * normalizer.apply_one(value, bounds)


class Evaluation:
    BYTES_PER_ROW = 9
    """Of rank, base and key."""

    def __init__(
        self,
        table: NodeTable,
        *,
        filters: Sequence[tuple[FilterCall, FilterColumn]],
        scores: Sequence[tuple[ScoreCall, ScoreColumn]],
    ) -> None:
        self.table = table
        self.filters = filters
        self.scores = scores
        self._ranked: list[tuple[int, FilterColumn]] = []
        self._final: list[tuple[int, ScoreColumn]] = []
        self.normalized: list[Normalized] = []
        self._columns: list[Column] = []
        self._row_columns: list[Column] = []
        self._row_scores: list[ScoreColumn] = []
        self._follows_rows = False
        self._last_rank = highest = 0
        # One pass: this runs for every pod whose shape is new.
        for filter_call, filter_column in filters:
            self._ranked.append((filter_call.rank, filter_column))
            self._columns.append(filter_column)
            self._last_rank = filter_call.rank
            if filter_call.depends is Depends.ROW:
                self._row_columns.append(filter_column)
        for call, column in scores:
            self._columns.append(column)
            highest += MAX_NODE_SCORE * call.weight
            if call.depends is Depends.ROW:
                self._row_columns.append(column)
                self._row_scores.append(column)
            if call.normalizer is None:
                self._final.append((call.weight, column))
            else:
                self.normalized.append(Normalized(call, column))
                self._follows_rows |= call.depends is Depends.ROW
        self._epochs: list[int] = []
        self._layout = -1
        self._row_position = self._node_position = -1
        # Half the width is half the memory to read in every decision; only absurd weights need more.
        self._dtype: Any = np.int32 if highest < _INT32_MAX else np.int64
        self.offset = 0
        """What uniform scores add to every feasible node; not part of `key`."""
        self.is_suspect = False
        """Whether some score was ever out of range: totals must then be worked out by plugin and checked."""
        self.rank_counts: list[int] = []
        """How many nodes each rank rejects; place 0 counts the feasible ones. Records keep it: never change one."""

    # Read by the caller after `refresh`.
    rank: np.ndarray[tuple[int], np.dtype[np.uint8]]
    base: Totals
    key: Totals

    @property
    def has_failures(self) -> bool:
        """Whether some filter ever answered with an Error: its rejections must then be looked at."""
        for call, _ in self.filters:  # noqa: SIM110 - a generator costs more than the loop, and every decision asks
            if call.has_failed:
                return True
        return False

    def best(self) -> tuple[int, Rows]:
        """The highest total and the rows that have it."""
        key = self.key[: self.table.size]
        highest = key[key.argmax()]
        return int(highest) + self.offset, (key == highest).nonzero()[0]

    @property
    def feasible_count(self) -> int:
        return self.rank_counts[0]

    def feasible(self) -> BoolN:
        mask: BoolN = self.rank[: self.table.size] == 0
        return mask

    def status(self, row: int) -> Status | None:
        """Why a row is rejected; None if it is not."""
        rank = int(self.rank[row])
        for call, column in self.filters:
            if call.rank == rank:
                return column.status(int(column.ids[row]))
        return None

    def rejected_groups(self) -> list[tuple[Status, Rows]]:
        """The rejected nodes, grouped by status."""
        rank = self.rank[: self.table.size]
        groups: list[tuple[Status, Rows]] = []
        for call, column in self.filters:
            if self.rank_counts[call.rank]:
                rows = np.flatnonzero(rank == call.rank)
                groups += group_by_status(rows, column.ids[rows], column.status)
        return groups

    # Keeping up

    def refresh(self, pod: PodInfo) -> None:
        """Bring everything up to the table."""
        table = self.table
        log = table.row_changes
        if self._row_position == log.position and self._layout == table.layout:
            return
        rows = log.since(self._row_position)
        is_far = rows is None or self._layout != table.layout or 2 * len(rows) > table.size
        if is_far or rows is None or self._node_position != table.node_changes.position:
            self._refresh_all(pod, None if is_far else rows)
        else:
            self._follow(pod, rows)
        self._row_position, self._node_position = log.position, table.node_changes.position

    def _refresh_all(self, pod: PodInfo, rows: Rows | None) -> None:
        """Node objects changed, or so much that starting over is cheaper (`rows` is then None)."""
        for column in self._columns:
            column.refresh(self.table, pod)
        self.is_suspect = self.is_suspect or any(column.is_suspect for _, column in self.scores)
        epochs = [column.epoch for column in self._columns]
        if rows is None or epochs != self._epochs:
            self._rebuild(epochs)
        else:
            self._mend(rows, moved=True)

    def _follow(self, pod: PodInfo, rows: Rows) -> None:
        """Pods came and went on some rows: only columns that look at pods have anything to mend."""
        changes = RowChanges(self.table, rows, self._row_position)
        for column in self._row_columns:
            column.follow(self.table, pod, changes)
        for score in self._row_scores:
            if score.is_suspect:
                self.is_suspect = True
        if self._follows_rows:
            epochs = [column.epoch for column in self._columns]
            if epochs != self._epochs:
                self._rebuild(epochs)
                return
        self._mend(rows, moved=self._follows_rows)

    def _rebuild(self, epochs: list[int]) -> None:
        table, size = self.table, self.table.size
        self._epochs, self._layout = epochs, table.layout
        self.rank = np.zeros(table.capacity, dtype=np.uint8)
        self.rank[size:] = NO_NODE
        rejecting = [(number, column) for number, column in self._ranked if column.rejects_any]
        for number, column in reversed(rejecting):
            self.rank[column.ids != 0] = number
        if len(table) != size:
            self.rank[~table.valid] = NO_NODE
        self.base = self._sum_final(slice(None))
        counts = self.rank_counts = [0] * (self._last_rank + 1)
        for number, _ in rejecting:
            counts[number] = int(np.count_nonzero(self.rank == number))
        counts[0] = len(table) - sum(counts)
        self._renormalize()

    def _sum_final(self, rows: slice | Rows) -> Totals:
        """The weighted sum of the final scores of some rows, in an array of its own."""
        total: Int64N | None = None
        for weight, column in self._final:
            share = column.values[rows] if weight == 1 else column.values[rows] * weight
            total = share if total is None else total + share
        if total is None:
            total = np.zeros(self.table.capacity, dtype=np.int64)[rows]
        return total.astype(self._dtype)

    def _renormalize(self) -> None:
        """Compute the bounds, the contributions and the keys anew."""
        self.offset = 0
        key = self.base.copy()
        feasible: BoolN = self.rank == 0
        for entry in self.normalized:
            if entry.column.is_uniform:
                entry.contribution = None
                self.offset += entry.uniform_share()
            else:
                entry.bounds = self._bounds(entry, feasible)
                entry.contribution = self._contribution(entry)
                key += entry.contribution.astype(self._dtype)
        key[self.table.size :] = -1
        if self.feasible_count != self.table.size:
            key[~feasible] = -1
        self.key = key

    def _bounds(self, entry: Normalized, feasible: BoolN) -> tuple[int, int]:
        values = entry.column.values[: self.table.size][feasible[: self.table.size]]
        normalizer = entry.call.normalizer
        return normalizer.bounds(values) if normalizer is not None and len(values) else (0, 0)

    def _contribution(self, entry: Normalized) -> Int64N:
        normalizer = entry.call.normalizer
        assert normalizer is not None  # only scores with a known normaliser are kept as Normalized
        return normalizer.apply(entry.column.values, entry.bounds) * entry.call.weight

    def _mend(self, rows: Rows, *, moved: bool) -> None:
        """Mend some rows; `moved` says that bounds may have moved even if no node became feasible or ceased to be."""
        if len(rows) > FEW_ROWS:
            moved |= self._mend_many(rows)
        else:
            for row in rows.tolist():
                moved |= self._mend_row(row)
        if moved and self._bounds_moved():
            self._renormalize()

    def _mend_row(self, row: int) -> bool:
        """Mend one row; whether its feasibility changed."""
        rank = self._rank_of(row)
        base = 0
        for weight, column in self._final:
            base += weight * int(column.values[row])
        before = int(self.rank[row])
        self.base[row] = base
        if rank != before:
            self.rank[row] = rank
            self._count([(before, rank)])
        if rank:
            self.key[row] = -1
        else:
            for entry in self.normalized:
                if entry.contribution is not None:
                    share = entry.one(row)
                    entry.contribution[row] = share
                    base += share
            self.key[row] = base
        return (rank == 0) != (before == 0)

    def _rank_of(self, row: int) -> int:
        if not self.table.valid[row]:
            return NO_NODE
        for number, column in self._ranked:
            if column.rejects_any and column.ids[row]:
                return number
        return 0

    def _count(self, moves: Iterable[tuple[int, int]]) -> None:
        """Rows went from one rank to another."""
        counts = self.rank_counts.copy()
        for was, now in moves:
            if was != NO_NODE:
                counts[was] -= 1
            if now != NO_NODE:
                counts[now] += 1
        self.rank_counts = counts

    def _bounds_moved(self) -> bool:
        entries = [entry for entry in self.normalized if entry.contribution is not None]
        if not entries:
            return False
        feasible = self.rank == 0
        return any(self._bounds(entry, feasible) != entry.bounds for entry in entries)

    def _mend_many(self, rows: Rows) -> bool:
        """Mend many rows at once, some perhaps named twice; whether the feasibility of any changed."""
        self.base[rows] = base = self._sum_final(rows)
        for entry in self.normalized:
            if entry.contribution is not None and entry.call.normalizer is not None:
                share = entry.call.normalizer.apply(entry.column.values[rows], entry.bounds) * entry.call.weight
                entry.contribution[rows] = share
                base = base + share
        rejecting = [(number, column) for number, column in self._ranked if column.rejects_any]
        if not rejecting and self.rank_counts[0] == self.table.size == len(self.table):
            self.key[rows] = base
            return False
        before = self.rank[rows]
        rank = np.zeros(len(rows), dtype=np.uint8)
        for number, column in reversed(rejecting):
            rank[column.ids[rows] != 0] = number
        rank[~self.table.valid[rows]] = NO_NODE
        self.rank[rows] = rank
        self.key[rows] = np.where(rank == 0, base, -1)
        changed = before != rank
        if not changed.any():
            return False
        pairs = zip(before[changed].tolist(), rank[changed].tolist(), strict=True)
        self._count(dict(zip(rows[changed].tolist(), pairs, strict=True)).values())
        return True
