"""The evaluation of one pod shape: which nodes pass and what each would score, kept up to date row by row.

For every shape the engine keeps, over all rows,

    rank[row]   which remembered filter is the first to reject the node (0: none does)
    base[row]   the weighted sum of the scores that need no normalising
    key[row]    base plus the normalised scores where the node passes, -1 where it does not; the same array as base
                while nothing is normalised and every node passes

so that choosing a node for the next pod of the same shape is one `argmax` after updating the few rows that changed.
What depends on node objects alone comes from the `NodeOnlyEvaluation` of the shape's kind. Plugins that depend on the
whole cluster are added per decision by the caller. A new Evaluation gives the same answers as one that was updated.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from bayplan.cluster.axes import BoolN, Rows
from bayplan.cluster.node_columns import NodeColumns
from bayplan.cluster.node_table import NodeTable
from bayplan.cluster.pod_info import PodInfo
from bayplan.framework.cycle import CycleState
from bayplan.framework.promises import Depends, Shares, Totals
from bayplan.framework.runtime.node_calls import FilterCall, ScoreCall
from bayplan.framework.runtime.remembered.columns import (
    FAR_SHARE,
    FilterColumn,
    KeptColumn,
    RowChanges,
    ScoreColumn,
    followed_log,
)
from bayplan.framework.runtime.remembered.combined_score import CombinedScoreCall
from bayplan.framework.runtime.remembered.leading_rows import LeadingRows
from bayplan.framework.runtime.remembered.node_only_evaluation import NO_NODE, NodeOnlyEvaluation, Normalized
from bayplan.framework.runtime.status_groups import group_by_status
from bayplan.framework.status import Status
from bayplan.framework.verdicts import Ids

__all__ = ["ShapeEvaluation"]

Ranks = np.ndarray[tuple[int], np.dtype[np.uint8]]
_UNKNOWN = 255
"""In place of a score from 0 to 100."""
_FEW_READS = 16
"""After so many reads of rows one by one, all the others are computed in one pass: that costs as much."""
_NO_STATE = CycleState()
"""Plugins whose answers are kept get no state: the answers must not depend on the cycle."""


class ShapeEvaluation:
    BYTES_PER_ROW = 6
    """Of rank, base, key and first, with ordinary weights."""

    def __init__(
        self,
        node_only: NodeOnlyEvaluation,
        *,
        filters: Sequence[tuple[FilterCall, FilterColumn]],
        optimistic: Sequence[FilterCall],
        scores: Sequence[tuple[ScoreCall, ScoreColumn]],
        combined: CombinedScoreCall | None,
        follows: Depends,
    ) -> None:
        """`filters`, `optimistic` and `scores` are those that depend on the pods of a node.

        Some scores are in `combined` instead; filters that know without evaluating each node that all pass are in
        `optimistic`. `follows` is what of the pods they depend on between them.
        """
        self.table: NodeTable = node_only.table
        self._node_only = node_only
        self._row_filters = filters
        self._optimistic = optimistic
        """Filters that passed every node so far. Few shapes ever need a column for one."""
        self._row_scores = scores
        self.combined = combined
        self._finals: list[tuple[int, ScoreColumn]] = []
        self._row_columns: list[KeptColumn] = [column for _, column in filters] if filters else []
        self.normalized = [Normalized(call, column, is_node_only=True) for call, column in node_only.normalized]
        self._follows_rows = False
        for call, column in scores:
            self._row_columns.append(column)
            if call.normalizer is None:
                self._finals.append((call.weight, column))
            else:
                self.normalized.append(Normalized(call, column, is_node_only=False))
                self._follows_rows = True
        self._log = followed_log(self.table, follows)
        self._epochs: list[int] = []
        self._leading = LeadingRows()
        self._most = node_only.most
        self.points_known: dict[tuple[int, int, int], Any] = {}
        """By `points_key`, what a reader of points noted, as long as `base` is the same array."""
        self.rank_counts: list[int] = []
        """How many nodes each rank rejects; place 0 counts the feasible ones. Records keep it: never change one."""

    # Read by the caller after `refresh`.
    pod: PodInfo
    """The first pod since the layout changed: to free one and its shape would take a tenth of a decision."""
    rank: Ranks
    base: Totals
    key: Totals
    offset = 0
    """What uniform scores add to every feasible node; not part of `key`."""
    has_shares = False
    """Whether what a node gets depends on which other nodes are feasible."""
    is_suspect = False
    """Whether some score was ever out of range: totals must then be computed by plugin and checked."""
    _first: Shares | None = None
    """The scores of the first of the combined plugins, where points by plugin are read."""
    _reads = 0
    _layout = _row_position = _node_position = -1
    _shares_rank = False

    @property
    def filters(self) -> list[tuple[FilterCall, FilterColumn]]:
        """Every kept filter and its column, in order."""
        if self._optimistic:
            self._make_columns(self.pod)
        return sorted([*self._node_only.filters, *self._row_filters], key=lambda each: each[0].rank)

    @property
    def score_columns(self) -> list[tuple[ScoreCall, ScoreColumn]]:
        """The remembered scores that have a column; those of `combined` have none."""
        return [*self._node_only.scores, *self._row_scores]

    @property
    def scores(self) -> list[tuple[ScoreCall, ScoreColumn]]:
        """Every kept score and its column. Those that are combined are computed one by one here."""
        found = self.score_columns
        for call in self.combined.calls if self.combined is not None else ():
            column = ScoreColumn(call)
            column.refresh(self.table, self.pod)
            found.append((call, column))
        return found

    def combined_parts(self, row: int) -> list[int]:
        """The score of each of the combined plugins for a row; empty where none are combined."""
        if self.combined is None:
            return []
        total = self.base.item(row) - self._node_only.base.item(row)
        total -= sum([weight * final.values.item(row) for weight, final in self._finals])
        return self.combined.parts(self.pod, self.table.at(row), total, self._first_of(row))

    def _first_of(self, row: int) -> int:
        first = self._first
        if first is None:
            self._node_only.has_points_read = True
            first = self._first = np.full(len(self.base), _UNKNOWN, dtype=np.uint8)
        if first.item(row) == _UNKNOWN and self.combined is not None:
            self._reads += 1
            self.combined.learn(self.pod, self.table, first, row if self._reads < _FEW_READS else None)
        return first.item(row)

    @property
    def has_points_key(self) -> bool:
        """Whether nodes with equal `points_key` have equal points."""
        return self.combined is not None and not (self._finals or self.has_shares) and self._node_only.has_one_final

    def points_key(self, row: int, total: int) -> tuple[int, int, int]:
        """What the points by plugin of a feasible row follow from, whose entry in `key` is `total`."""
        node_only, known = self._node_only, self._first
        first = _UNKNOWN if known is None else known.item(row)
        if first == _UNKNOWN:
            first = self._first_of(row)
        return total, node_only.base.item(row) if node_only.has_scores else 0, first

    @property
    def has_failures(self) -> bool:
        """Whether some filter ever answered with an Error: its rejections must then be checked."""
        return any(call.has_failed for call, _ in (*self._node_only.filters, *self._row_filters))

    def best(self) -> tuple[int, Rows]:
        """The highest total and the rows that have it; valid until the next update."""
        total, rows = self._leading.among(self.key[: self.table.size])
        return total + self.offset, rows

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
                rows = (rank == call.rank).nonzero()[0]
                groups += group_by_status(rows, column.ids[rows], column.status)
        return groups

    # Updating

    def refresh(self, pod: PodInfo) -> None:
        """Bring everything up to the table."""
        table = self.table
        log = self._log
        if self._row_position == log.position and self._layout == table.layout:
            return
        self.pod = self.pod if self._layout == table.layout else pod
        rows = log.since(self._row_position) if self._layout == table.layout else None
        if rows is None or FAR_SHARE * len(rows) > table.size:
            self._refresh_all(pod, None)
        elif self._node_position != table.node_changes.position:
            self._refresh_all(pod, rows)
        else:
            self._follow(pod, rows)
        self._row_position, self._node_position = log.position, table.node_changes.position

    def _refresh_all(self, pod: PodInfo, rows: Rows | None) -> None:
        """Node objects changed, or so much that starting over is cheaper (`rows` is then None)."""
        self._node_only.refresh(pod)
        nodes = NodeColumns(self.table)
        if self._optimistic and not self._accepts_all(pod, nodes):
            self._make_columns(pod)
        for column in self._row_columns:
            column.refresh(self.table, pod)
        self._suspect()
        epochs = self._current_epochs()
        if rows is None or epochs != self._epochs:
            self._rebuild(nodes, epochs)
        else:
            self._update(RowChanges(self.table, self._log, rows, self._row_position), moved=True, nodes_changed=True)

    def _all_still_pass(self, pod: PodInfo, changes: RowChanges) -> bool:
        """Whether every node passes after some changes too."""
        return self._accepts_all(pod, changes.view) if changes.few is None else self._accepts_each(pod, changes.few)

    def _accepts_all(self, pod: PodInfo, nodes: NodeColumns) -> bool:
        for call in self._optimistic:  # noqa: SIM110 - a generator costs more than the loop, every new shape needs it
            if not call.accepts_all(pod, nodes):
                return False
        return True

    def _accepts_each(self, pod: PodInfo, rows: list[int]) -> bool:
        """Whether the optimistic filters pass these nodes, evaluated one by one."""
        for call in self._optimistic:
            for row in rows:
                info = self.table.infos[row]
                status = None if info is None else call.one(_NO_STATE, pod, info)
                if status is not None and not status.is_success:
                    return False
        return True

    def _make_columns(self, pod: PodInfo) -> None:
        """Evaluate the optimistic filters: some node may not pass, or the rejections by filter are wanted."""
        made = [(call, FilterColumn(call)) for call in self._optimistic]
        self._optimistic = ()
        for _, column in made:
            column.refresh(self.table, pod)
        self._row_filters = sorted([*self._row_filters, *made], key=lambda each: each[0].rank)
        self._row_columns = [column for _, column in (*self._row_filters, *self._row_scores)]
        # The new columns were not part of the last comparison.
        self._epochs = []

    def _current_epochs(self) -> list[int]:
        epoch = self._node_only.epoch
        return [epoch, *[column.epoch for column in self._row_columns]] if self._row_columns else [epoch]

    def _suspect(self) -> None:
        if self._node_only.is_suspect:
            self.is_suspect = True
        for _, column in self._row_scores:
            if column.is_suspect:
                self.is_suspect = True

    def _follow(self, pod: PodInfo, rows: Rows) -> None:
        """Update for pods that came and went on some rows; columns of node objects alone do not change."""
        changes = RowChanges(self.table, self._log, rows, self._row_position)
        if self._optimistic and not self._all_still_pass(pod, changes):
            self._make_columns(pod)
        for column in self._row_columns:
            column.follow(self.table, pod, changes)
        if self._row_scores:
            self._suspect()
        if self._follows_rows:
            epochs = self._current_epochs()
            if epochs != self._epochs:
                self._rebuild(NodeColumns(self.table), epochs)
                return
        self._update(changes, moved=self._follows_rows, nodes_changed=False)

    def _rebuild(self, nodes: NodeColumns, epochs: list[int]) -> None:
        """From the columns of all nodes."""
        table, node_only = self.table, self._node_only
        self._epochs, self._layout = epochs, table.layout
        self._rank_all()
        size = table.size
        self.base = np.empty(len(node_only.base), dtype=node_only.base.dtype)
        self.base[size:] = 0
        is_read = node_only.has_points_read and self.combined is not None
        first = self._first = np.empty(len(node_only.base), dtype=np.uint8) if is_read else None
        if self.points_known:
            self.points_known = {}
        self._add_up(nodes, self.base[:size], None if first is None else first[:size])
        self._renormalize()

    def _rank_all(self) -> None:
        node_only = self._node_only
        counts = self.rank_counts = [0] * (node_only.last_rank + 1)
        for number, count in node_only.counts.items():
            counts[number] = count
        self.rank, self._shares_rank = node_only.rank, True
        if self._row_filters:
            self._rank_by_pods(counts)
        counts[0] = len(self.table) - sum(counts)

    def _rank_by_pods(self, counts: list[int]) -> None:
        rejecting = [(call.rank, column) for call, column in self._row_filters if column.rejects_any]
        if not rejecting:
            return
        self._own_rank()
        for number, column in reversed(rejecting):
            np.copyto(self.rank, number, where=_comes_first(column.ids, number, self.rank))
        for number in (*self._node_only.counts, *(number for number, _ in rejecting)):
            counts[number] = int(np.count_nonzero(self.rank == number))

    def _add_up(self, nodes: NodeColumns, totals: Totals, first: Shares | None) -> None:
        """Write the sum of the scores that need no normalising, and the first of the combined ones by itself."""
        node_only = self._node_only
        if self.combined is None:
            totals[:] = nodes.cut(node_only.base)
        else:
            self.combined.totals(self.pod, nodes, totals, first)
            if node_only.has_scores:
                totals += nodes.cut(node_only.base)
        for weight, final in self._finals:
            values = nodes.cut(final.values)
            totals += (values if weight == 1 else values * weight).astype(totals.dtype)

    def _renormalize(self) -> None:
        """Compute the bounds, the contributions and the keys anew."""
        self.offset, self.has_shares = 0, False
        self.key = self.base
        self._leading.forget()
        for entry in self.normalized:
            if entry.column.is_uniform:
                entry.contribution = None
                self.offset += entry.column.uniform_share()
            else:
                self.has_shares = True
                entry.bounds = self._bounds(entry, self.rank == 0)
                entry.contribution = entry.some(slice(None))
                self._part_key()
                self.key += entry.contribution.astype(self.key.dtype)
        if self.feasible_count != self.table.size:
            self._part_key()
            np.copyto(self.key, -1, where=self.rank != 0)

    def _part_key(self) -> None:
        """Let `key` differ from `base`. Until then they are one array, and a row is updated once."""
        if self.key is self.base:
            self.key = self.base.copy()

    def _bounds(self, entry: Normalized, feasible: BoolN) -> tuple[int, int]:
        values = entry.column.values[: self.table.size][feasible[: self.table.size]]
        normalizer = entry.call.normalizer
        return normalizer.bounds(values) if normalizer is not None and len(values) else (0, 0)

    def _update(self, changes: RowChanges, *, moved: bool, nodes_changed: bool) -> None:
        """Update some rows. `moved`: bounds may have moved even if no node became feasible or ceased to be."""
        leading, few = self._leading, changes.few
        if nodes_changed or few is None:
            leading.forget()
        if few is None:
            moved |= self._update_many(changes.view, nodes_changed=nodes_changed)
        for row in few or ():
            was = -1 if leading.rows is None else self.key.item(row)
            moved |= self._update_row(row, nodes_changed=nodes_changed)
            if leading.rows is not None:
                leading.move(row, was, self.key.item(row))
        if moved and self._bounds_moved():
            self._renormalize()

    def _update_row(self, row: int, *, nodes_changed: bool) -> bool:
        """Update one row; whether its feasibility changed."""
        rank = self._rank_of(row)
        base: int = self._node_only.base.item(row)
        info = self.table.infos[row]
        if self.combined is not None and info is not None:
            total, first = self.combined.one(self.pod, info)
            base += total
            if self._first is not None:
                self._first[row] = first
        for weight, final in self._finals:
            base += weight * final.values.item(row)
        before = self.rank.item(row)
        self.base[row] = base if 0 <= base <= self._most else self._bounded(base)
        if rank != before:
            self._own_rank()
            self.rank[row] = rank
            self._count([(before, rank)])
        if rank:
            self._part_key()
            self.key[row] = -1
        elif self.key is not self.base:
            for entry in self.normalized:
                if entry.contribution is None:
                    continue
                if nodes_changed or not entry.is_node_only:
                    entry.contribution[row] = entry.one(row)
                base += entry.contribution.item(row)
            self.key[row] = base if 0 <= base <= self._most else self._bounded(base)
        return (rank == 0) != (before == 0)

    def _bounded(self, total: int) -> int:
        """A total out of range, cut to what the array can hold. It is computed again by plugin, or with the bounds that
        have just moved."""
        return min(max(total, 0), self._most)

    def _rank_of(self, row: int) -> int:
        rank = self._node_only.rank.item(row)
        for call, column in self._row_filters:
            if column.rejects_any and column.ids[row] and (rank == 0 or call.rank < rank != NO_NODE):
                return call.rank
        return rank

    def _own_rank(self) -> None:
        """Copy the ranks before the first change; until then they are the array of the node-only evaluation."""
        if self._shares_rank:
            self.rank, self._shares_rank = self.rank.copy(), False

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

    def _update_many(self, nodes: NodeColumns, *, nodes_changed: bool) -> bool:
        """Update many rows at once, some perhaps named twice; whether the feasibility of any changed."""
        rows = nodes.rows
        base: Totals = np.empty(len(rows), dtype=self.base.dtype)
        first: Shares | None = None if self._first is None else np.empty(len(rows), dtype=np.uint8)
        self._add_up(nodes, base, first)
        if self._first is not None and first is not None:
            self._first[rows] = first
        self.base[rows] = base
        for entry in self.normalized:
            if entry.contribution is None:
                continue
            if nodes_changed or not entry.is_node_only:
                entry.contribution[rows] = entry.some(rows)
            base = base + entry.contribution.take(rows)
        rejecting = [(call.rank, column) for call, column in self._row_filters if column.rejects_any]
        if not rejecting and self.rank_counts[0] == self.table.size == len(self.table) and not self._node_only.counts:
            if self.key is not self.base:
                self.key[rows] = base
            return False
        self._part_key()
        before = self.rank.take(rows)
        rank = self._node_only.rank.take(rows)
        for number, column in reversed(rejecting):
            ids = column.ids.take(rows)
            if np.count_nonzero(ids):
                np.copyto(rank, number, where=_comes_first(ids, number, rank))
        if not np.count_nonzero(rank) and not np.count_nonzero(before):
            self.key[rows] = base
            return False
        self.key[rows] = np.where(rank == 0, base, -1)
        changed = before != rank
        if not changed.any():
            return False
        self._own_rank()
        self.rank[rows] = rank
        pairs = zip(before[changed].tolist(), rank[changed].tolist(), strict=True)
        self._count(dict(zip(rows[changed].tolist(), pairs, strict=True)).values())
        return True


def _comes_first(ids: Ids, number: int, rank: Ranks) -> BoolN:
    """Where a filter rejects and no earlier one does."""
    first: BoolN = (ids != 0) & ((rank == 0) | ((rank > number) & (rank != NO_NODE)))
    return first
