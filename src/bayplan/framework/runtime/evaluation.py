"""The evaluation of one pod shape: which nodes pass and what each would score, kept up to date row by row.

For every shape the engine keeps, over all rows,

    rank[row]   which remembered filter is the first to reject the node (0: none does)
    base[row]   the weighted sum of the scores that need no normalising
    key[row]    base plus the normalised scores where the node passes, -1 where it does not; the same array as base
                while nothing is normalised and every node passes

so that choosing a node for the next pod of the same shape is one `argmax` after mending the few rows that changed.
What depends on node objects alone comes from the `Standing` of the shape's kind. What other plugins say (those that
depend on the whole cluster) is added per decision by the caller. Nothing here is needed for correctness: a new
Evaluation gives the same answers as one that was mended a million times.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from bayplan.cluster.axes import BoolN, Rows
from bayplan.cluster.node_columns import NodeColumns
from bayplan.cluster.node_table import NodeTable
from bayplan.cluster.pod_info import PodInfo
from bayplan.framework.cycle import CycleState
from bayplan.framework.promises import Depends, Shares, Totals
from bayplan.framework.runtime.call import FilterCall, ScoreCall
from bayplan.framework.runtime.columns import (
    FAR_SHARE,
    FEW_ROWS,
    Column,
    FilterColumn,
    RowChanges,
    ScoreColumn,
    followed_log,
)
from bayplan.framework.runtime.distinct import group_by_status
from bayplan.framework.runtime.joint import JointCall
from bayplan.framework.runtime.standing import NO_NODE, Normalized, Standing
from bayplan.framework.status import Status
from bayplan.framework.verdicts import Ids

__all__ = ["Evaluation", "best_of"]

Ranks = np.ndarray[tuple[int], np.dtype[np.uint8]]
_NO_SHARES: Shares = np.zeros(0, dtype=np.uint8)
_NO_STATE = CycleState()
"""Remembered plugins see no state: their answers must not depend on the cycle."""


class Evaluation:
    BYTES_PER_ROW = 6
    """Of rank, base, key and first, with ordinary weights."""

    def __init__(
        self,
        standing: Standing,
        *,
        filters: Sequence[tuple[FilterCall, FilterColumn]],
        glanced: Sequence[FilterCall],
        scores: Sequence[tuple[ScoreCall, ScoreColumn]],
        joint: JointCall | None,
        follows: Depends,
    ) -> None:
        """`filters`, `glanced` and `scores` are those that look at the pods of a node.

        Some scores are in `joint` instead, and filters that tell at a glance when nobody is rejected are in `glanced`.
        `follows` says at what of the pods they all look between them.
        """
        self.table: NodeTable = standing.table
        self._standing = standing
        self._row_filters = filters
        self._glanced = glanced
        """Filters that reject nobody so far. Few shapes ever need a column for one."""
        self._row_scores = scores
        self.joint = joint
        self._finals: list[tuple[int, ScoreColumn]] = []
        self._row_columns: list[Column] = [column for _, column in filters] if filters else []
        self.normalized = [Normalized(call, column, is_standing=True) for call, column in standing.normalized]
        self._follows_rows = False
        for call, column in scores:
            self._row_columns.append(column)
            if call.normalizer is None:
                self._finals.append((call.weight, column))
            else:
                self.normalized.append(Normalized(call, column, is_standing=False))
                self._follows_rows = True
        self._log = followed_log(self.table, follows)
        self._epochs: list[int] = []
        self._layout = -1
        self._row_position = self._node_position = -1
        self._shares_rank = False
        self._most = standing.most
        self.offset = 0
        """What uniform scores add to every feasible node; not part of `key`."""
        self.is_suspect = False
        """Whether some score was ever out of range: totals must then be worked out by plugin and checked."""
        self.rank_counts: list[int] = []
        """How many nodes each rank rejects; place 0 counts the feasible ones. Records keep it: never change one."""

    # Read by the caller after `refresh`.
    pod: PodInfo
    """The one that it was last brought up to date for."""
    rank: Ranks
    base: Totals
    key: Totals
    first: Shares = _NO_SHARES
    """Where scores are joined, that of the first of them, by which the others are told apart."""

    @property
    def filters(self) -> list[tuple[FilterCall, FilterColumn]]:
        """Every remembered filter and its column, in order."""
        if self._glanced:
            self._make_columns(self.pod)
        return sorted([*self._standing.filters, *self._row_filters], key=lambda each: each[0].rank)

    @property
    def score_columns(self) -> list[tuple[ScoreCall, ScoreColumn]]:
        """The remembered scores that have a column; those of `joint` have none."""
        return [*self._standing.scores, *self._row_scores]

    @property
    def scores(self) -> list[tuple[ScoreCall, ScoreColumn]]:
        """Every remembered score and its column. Those that are joined are worked out one by one here."""
        found = self.score_columns
        for call in self.joint.calls if self.joint is not None else ():
            column = ScoreColumn(call)
            column.refresh(self.table, self.pod)
            found.append((call, column))
        return found

    def joined(self, row: int) -> int:
        """What the joint scores add up to in a row."""
        total: int = self.base.item(row) - self._standing.base.item(row)
        if self._finals:
            total -= sum(weight * final.values.item(row) for weight, final in self._finals)
        return total

    def sums(self, row: int, other: int) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
        """Numbers that the points of two rows by plugin follow from as long as `base` is the same array; None
        where more would have to be known."""
        standing = self._standing
        if self._finals or self.joint is None or not standing.has_one_final:
            return None
        base, first, from_nodes = self.base.item, self.first.item, standing.base.item
        for entry in self.normalized:
            if entry.contribution is not None:
                return None
        return (base(row), from_nodes(row), first(row)), (base(other), from_nodes(other), first(other))

    @property
    def has_failures(self) -> bool:
        """Whether some filter ever answered with an Error: its rejections must then be looked at."""
        for call, _ in self._standing.filters:
            if call.has_failed:
                return True
        for call, _ in self._row_filters:  # noqa: SIM110 - a generator costs more than the loop, every decision asks
            if call.has_failed:
                return True
        return False

    def best(self) -> tuple[int, Rows]:
        """The highest total and the rows that have it."""
        total, rows = best_of(self.key[: self.table.size])
        return total + self.offset, rows

    @property
    def has_shares(self) -> bool:
        """Whether what a node gets depends on which other nodes are feasible."""
        for entry in self.normalized:  # noqa: SIM110 - a generator costs more than the loop, every decision asks
            if entry.contribution is not None:
                return True
        return False

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
        log = self._log
        if self._row_position == log.position and self._layout == table.layout:
            return
        self.pod = pod
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
        self._standing.refresh(pod)
        nodes = NodeColumns(self.table)
        if self._glanced and not self._accepts_all(pod, nodes):
            self._make_columns(pod)
        for column in self._row_columns:
            column.refresh(self.table, pod)
        self._suspect()
        epochs = self._current_epochs()
        if rows is None or epochs != self._epochs:
            self._rebuild(nodes, epochs)
        else:
            self._mend(NodeColumns(self.table, rows), moved=True, nodes_changed=True)

    def _glance_tells(self, pod: PodInfo, changes: RowChanges) -> bool:
        """Whether nobody is rejected after some changes either."""
        return self._accepts_all(pod, changes.view) if changes.few is None else self._accepts_each(pod, changes.few)

    def _accepts_all(self, pod: PodInfo, nodes: NodeColumns) -> bool:
        for call in self._glanced:  # noqa: SIM110 - a generator costs more than the loop, every new shape asks
            if not call.accepts_all(pod, nodes):
                return False
        return True

    def _accepts_each(self, pod: PodInfo, rows: list[int]) -> bool:
        """Whether the glanced filters let these nodes pass, asked one by one."""
        for call in self._glanced:
            for row in rows:
                info = self.table.infos[row]
                status = None if info is None else call.one(_NO_STATE, pod, info)
                if status is not None and not status.is_success:
                    return False
        return True

    def _make_columns(self, pod: PodInfo) -> None:
        """A glance no longer tells, or somebody wants to see who rejects whom."""
        made = [(call, FilterColumn(call)) for call in self._glanced]
        self._glanced = ()
        for _, column in made:
            column.refresh(self.table, pod)
        self._row_filters = sorted([*self._row_filters, *made], key=lambda each: each[0].rank)
        self._row_columns = [column for _, column in (*self._row_filters, *self._row_scores)]
        # What is made now was never part of what the others have been compared with.
        self._epochs = []

    def _current_epochs(self) -> list[int]:
        epoch = self._standing.epoch
        return [epoch, *[column.epoch for column in self._row_columns]] if self._row_columns else [epoch]

    def _suspect(self) -> None:
        if self._standing.is_suspect:
            self.is_suspect = True
        for _, column in self._row_scores:
            if column.is_suspect:
                self.is_suspect = True

    def _follow(self, pod: PodInfo, rows: Rows) -> None:
        """Pods came and went on some rows: only columns that look at pods have anything to mend."""
        changes = RowChanges(self.table, self._log, rows, self._row_position)
        if self._glanced and not self._glance_tells(pod, changes):
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
        self._mend(changes.view, moved=self._follows_rows, nodes_changed=False)

    def _rebuild(self, nodes: NodeColumns, epochs: list[int]) -> None:
        """From the columns of all nodes."""
        table, standing = self.table, self._standing
        self._epochs, self._layout = epochs, table.layout
        self._rank_all()
        size = table.size
        self.base = np.empty(len(standing.base), dtype=standing.base.dtype)
        self.base[size:] = 0
        if self.joint is not None:
            self.first = np.zeros(len(standing.base), dtype=np.uint8)
        self._add_up(nodes, self.base[:size], self.first[:size])
        self._renormalize()

    def _rank_all(self) -> None:
        standing = self._standing
        counts = self.rank_counts = [0] * (standing.last_rank + 1)
        for number, count in standing.counts.items():
            counts[number] = count
        self.rank, self._shares_rank = standing.rank, True
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
        for number in (*self._standing.counts, *(number for number, _ in rejecting)):
            counts[number] = int(np.count_nonzero(self.rank == number))

    def _add_up(self, nodes: NodeColumns, totals: Totals, first: Shares) -> None:
        """Write the sum of the scores that need no normalising, and the first of the joined ones by itself."""
        standing = self._standing
        if self.joint is None:
            totals[:] = nodes.cut(standing.base)
        else:
            self.joint.totals(self.pod, nodes, totals, first)
            if standing.has_scores:
                totals += nodes.cut(standing.base)
        for weight, final in self._finals:
            values = nodes.cut(final.values)
            totals += (values if weight == 1 else values * weight).astype(totals.dtype)

    def _renormalize(self) -> None:
        """Compute the bounds, the contributions and the keys anew."""
        self.offset = 0
        self.key = self.base
        for entry in self.normalized:
            if entry.column.is_uniform:
                entry.contribution = None
                self.offset += entry.column.uniform_share()
            else:
                entry.bounds = self._bounds(entry, self.rank == 0)
                entry.contribution = entry.some(slice(None))
                self._part_key()
                self.key += entry.contribution.astype(self.key.dtype)
        if self.feasible_count != self.table.size:
            self._part_key()
            np.copyto(self.key, -1, where=self.rank != 0)

    def _part_key(self) -> None:
        """Let `key` differ from `base`. While it does not they are one array, and a row is mended once."""
        if self.key is self.base:
            self.key = self.base.copy()

    def _bounds(self, entry: Normalized, feasible: BoolN) -> tuple[int, int]:
        values = entry.column.values[: self.table.size][feasible[: self.table.size]]
        normalizer = entry.call.normalizer
        return normalizer.bounds(values) if normalizer is not None and len(values) else (0, 0)

    def _mend(self, nodes: NodeColumns, *, moved: bool, nodes_changed: bool) -> None:
        """Mend some rows; `moved` says that bounds may have moved even if no node became feasible or ceased to be."""
        if len(nodes.rows) > FEW_ROWS:
            moved |= self._mend_many(nodes, nodes_changed=nodes_changed)
        else:
            for row in nodes.rows.tolist():
                moved |= self._mend_row(row, nodes_changed=nodes_changed)
        if moved and self._bounds_moved():
            self._renormalize()

    def _mend_row(self, row: int, *, nodes_changed: bool) -> bool:
        """Mend one row; whether its feasibility changed."""
        rank = self._rank_of(row)
        base = int(self._standing.base[row])
        info = self.table.infos[row]
        if self.joint is not None and info is not None:
            total, self.first[row] = self.joint.one(self.pod, info)
            base += total
        for weight, final in self._finals:
            base += weight * int(final.values[row])
        before = int(self.rank[row])
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
                if nodes_changed or not entry.is_standing:
                    entry.contribution[row] = entry.one(row)
                base += int(entry.contribution[row])
            self.key[row] = base if 0 <= base <= self._most else self._bounded(base)
        return (rank == 0) != (before == 0)

    def _bounded(self, total: int) -> int:
        """What can be written down of a total out of range. Such a score is looked at by plugin, or was normalised with
        bounds that have just moved, and is about to be computed anew."""
        return min(max(total, 0), self._most)

    def _rank_of(self, row: int) -> int:
        rank = int(self._standing.rank[row])
        for call, column in self._row_filters:
            if column.rejects_any and column.ids[row] and (rank == 0 or call.rank < rank != NO_NODE):
                return call.rank
        return rank

    def _own_rank(self) -> None:
        """While nobody is rejected for the pods that are there, ranks are those of the standing, and its array."""
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

    def _mend_many(self, nodes: NodeColumns, *, nodes_changed: bool) -> bool:
        """Mend many rows at once, some perhaps named twice; whether the feasibility of any changed."""
        rows = nodes.rows
        base: Totals = np.empty(len(rows), dtype=self.base.dtype)
        first: Shares = np.empty(len(rows), dtype=np.uint8)
        self._add_up(nodes, base, first)
        self.base[rows] = base
        if self.joint is not None:
            self.first[rows] = first
        for entry in self.normalized:
            if entry.contribution is None:
                continue
            if nodes_changed or not entry.is_standing:
                entry.contribution[rows] = entry.some(rows)
            base = base + entry.contribution.take(rows)
        rejecting = [(call.rank, column) for call, column in self._row_filters if column.rejects_any]
        if not rejecting and self.rank_counts[0] == self.table.size == len(self.table) and not self._standing.counts:
            if self.key is not self.base:
                self.key[rows] = base
            return False
        self._part_key()
        before = self.rank.take(rows)
        rank = self._standing.rank.take(rows)
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


def best_of(totals: Totals) -> tuple[int, Rows]:
    """The highest of some totals and the places that have it."""
    highest = totals[totals.argmax()]
    return int(highest), (totals == highest).nonzero()[0]


def _comes_first(ids: Ids, number: int, rank: Ranks) -> BoolN:
    """Where a filter rejects, and none before it does."""
    first: BoolN = (ids != 0) & ((rank == 0) | ((rank > number) & (rank != NO_NODE)))
    return first
