"""Kept columns: the answers of one plugin for one sign, updated for the rows that changed.

A column is a pure function of (sign, plugin version, rows), so updating a row twice is harmless and dropping a column
costs only time. Few changed rows are computed one node at a time in plain Python, many by the column form; the
threshold is where their costs cross.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bayplan.cluster.axes import Int64N, Rows
from bayplan.cluster.changes import ChangeLog
from bayplan.cluster.node_columns import NodeColumns
from bayplan.cluster.node_table import NodeTable
from bayplan.cluster.pod_info import PodInfo
from bayplan.framework.cycle import CycleState
from bayplan.framework.normalize import MAX_NODE_SCORE
from bayplan.framework.promises import Depends
from bayplan.framework.runtime.node_calls import FilterCall, ScoreCall
from bayplan.framework.runtime.status_groups import distinct
from bayplan.framework.status import SUCCESS, Status
from bayplan.framework.verdicts import Ids, Verdicts, no_rejections

__all__ = ["FAR_SHARE", "FEW_ROWS", "FilterColumn", "KeptColumn", "RowChanges", "ScoreColumn", "followed_log"]

FEW_ROWS = 4
"""Up to this many changed rows the one-node form is cheaper than the column form."""

FAR_SHARE = 6
"""Where more than one row in this many changed, columns are computed anew: picking rows costs more than dividing."""

_NO_STATE = CycleState()
"""Plugins whose answers are kept get no state: the answers must not depend on the cycle."""

_NO_IDS: Ids = np.zeros(0, dtype=np.int32)
_NO_VALUES: Int64N = np.zeros(0, dtype=np.int64)
_NO_STATUS: Callable[[int], Status] = (SUCCESS,).__getitem__
_INT64_MAX = int(np.iinfo(np.int64).max)


def _widened(answers: Any, table: NodeTable, dtype: Any) -> Any:
    """A copy as long as the table can grow without allocating anew; 0 for rows that are not there yet."""
    column = np.empty(table.capacity, dtype=dtype)
    column[: table.size] = answers
    column[table.size :] = 0
    return column


class RowChanges:
    """Rows whose pods (not whose node objects) changed between two positions of the log, for several columns."""

    __slots__ = ("_table", "_view", "few", "log", "position", "rows", "since")

    def __init__(self, table: NodeTable, log: ChangeLog, rows: Rows, since: int) -> None:
        self._table = table
        self._view: NodeColumns | None = None
        self.log = log
        self.rows = rows
        self.since = since
        self.position = log.position
        self.few: list[int] | None = rows.tolist() if len(rows) <= FEW_ROWS else None
        """The rows when they are few enough to compute one by one."""

    @property
    def view(self) -> NodeColumns:
        """The argument of the column form: cut once for all columns."""
        if self._view is None:
            self._view = NodeColumns(self._table, self.rows)
        return self._view


def followed_log(table: NodeTable, depends: Depends) -> ChangeLog:
    """The log of the rows whose answers may have changed."""
    if depends is Depends.ROW:
        return table.row_changes
    return table.use_changes if depends is Depends.USE else table.node_changes


class KeptColumn:
    """When to update what; subclasses say how."""

    __slots__ = ("_call", "_layout", "_log", "_position", "_version", "epoch")

    def __init__(self, call: FilterCall | ScoreCall) -> None:
        self._call: Any = call
        self._log: ChangeLog | None = None
        self._layout = -1
        self._position = -1
        self._version = -1
        self.epoch = 0
        """Grows when every row was computed anew."""

    def refresh(self, table: NodeTable, pod: PodInfo) -> None:
        """Bring the column up to the table, for a pod with this column's sign."""
        log = followed_log(table, self._call.depends)
        if self._layout != table.layout or self._version != self._call.plugin.version:
            self._all(table, pod, log)
            return
        if self._position == log.position:
            return
        rows = log.since(self._position)
        if rows is None or self._call.depends is Depends.NODES or self._is_far(rows, table):
            self._all(table, pod, log)
            return
        if len(rows) <= FEW_ROWS and self._call.has_one:
            self._update_one_by_one(table, pod, rows.tolist())
        else:
            self._update(pod, NodeColumns(table, rows))
        # After the update: a plugin that fails leaves the column behind, to be computed again.
        self._position = log.position

    def follow(self, table: NodeTable, pod: PodInfo, changes: RowChanges) -> None:
        """As `refresh`, when only pods changed and which rows is known for several columns."""
        # Positions in different logs have nothing in common.
        if self._position != changes.since or self._log is not changes.log:
            self.refresh(table, pod)
            return
        if changes.few is not None and self._call.has_one:
            self._update_one_by_one(table, pod, changes.few)
        else:
            self._update(pod, changes.view)
        self._position = changes.position

    def _is_far(self, rows: Rows, table: NodeTable) -> bool:
        """Whether computing every row is cheaper than updating these."""
        return (FAR_SHARE if self._call.has_columns else 2) * len(rows) > table.size

    def _all(self, table: NodeTable, pod: PodInfo, log: ChangeLog) -> None:
        self._compute(table, pod)
        self._log = log
        self._layout, self._version, self._position = table.layout, self._call.plugin.version, log.position
        self.epoch += 1

    def _compute(self, table: NodeTable, pod: PodInfo) -> None:
        raise TypeError("a column must say how to compute itself")

    def _update(self, pod: PodInfo, nodes: NodeColumns) -> None:
        raise TypeError("a column must say how to update rows")

    def _update_one_by_one(self, table: NodeTable, pod: PodInfo, rows: list[int]) -> None:
        raise TypeError("a column must say how to update a row")


class FilterColumn(KeptColumn):
    """`ids[row]`: 0 where the plugin passes the node."""

    __slots__ = ("_checked", "_extra", "_verdict_status", "ids", "rejects_any")

    def __init__(self, call: FilterCall) -> None:
        super().__init__(call)
        self.ids: Ids = _NO_IDS
        self.rejects_any = False
        """False only if no row is rejected."""
        self._verdict_status = _NO_STATUS
        self._extra: dict[Status, int] = {}
        self._checked: set[int] = set()
        """Numbers whose status is known to be a rejection, or was reported."""

    def status(self, number: int) -> Status:
        """What a number in `ids` stands for, with the plugin's name."""
        call: FilterCall = self._call
        if number < 0:
            return next(status for status, extra in self._extra.items() if extra == number).by(call.name)
        return call.status_of(self._verdict_status, number)

    def _compute(self, table: NodeTable, pod: PodInfo) -> None:
        nodes = NodeColumns(table)
        self._extra.clear()
        self._checked.clear()
        if self._call.accepts_all(pod, nodes):
            self._verdict_status = _NO_STATUS
            self.ids = no_rejections(table.capacity)
            self.rejects_any = False
            return
        verdicts = self._call.verdicts(_NO_STATE, pod, nodes)
        self._verdict_status = verdicts.status
        self.ids = _widened(verdicts.ids, table, np.int32)
        self.rejects_any = bool(np.count_nonzero(verdicts.ids))
        if self.rejects_any:
            self._check(verdicts)

    def _update(self, pod: PodInfo, nodes: NodeColumns) -> None:
        if not self.rejects_any and self._call.accepts_all(pod, nodes):
            return
        verdicts = self._call.verdicts(_NO_STATE, pod, nodes)
        ids = verdicts.ids
        if np.count_nonzero(ids):
            if not self.rejects_any:
                # No number was given out yet.
                self._verdict_status = verdicts.status
                self._checked.clear()
            self.rejects_any = True
            if verdicts.status != self._verdict_status:
                self._checked.clear()
                ids = self._renumbered(verdicts)
            self._check(verdicts)
        elif not self.rejects_any:
            return
        self._own_ids()
        self.ids[nodes.rows] = ids

    def _own_ids(self) -> None:
        """Copy before the first change: columns without rejections share one array."""
        if not self.ids.flags.writeable:
            self.ids = self.ids.copy()

    def _check(self, verdicts: Verdicts) -> None:
        """A filter may reject; an Error among its answers must not pass for a rejection."""
        for number in distinct(verdicts.ids):
            if number not in self._checked:
                self._checked.add(number)
                if not self._call.status_of(verdicts.status, number).is_rejected:
                    self._call.note_failure()

    def _renumbered(self, verdicts: Verdicts) -> Ids:
        """A plugin may number its statuses anew in every answer; the column keeps one numbering."""
        ids = verdicts.ids.astype(np.int32)
        for number in distinct(verdicts.ids):
            ids[verdicts.ids == number] = self._number(self._call.status_of(verdicts.status, number))
        return ids

    def _update_one_by_one(self, table: NodeTable, pod: PodInfo, rows: list[int]) -> None:
        for row in rows:
            info = table.infos[row]
            if info is not None:
                status = self._call.one(_NO_STATE, pod, info)
                if status is not None and not status.is_success:
                    self._own_ids()
                    self.ids[row] = self._number(status)
                    self.rejects_any = True
                elif self.rejects_any:
                    self.ids[row] = 0

    def _number(self, status: Status) -> int:
        """One-node answers get numbers of their own below zero, apart from those of the column form."""
        number = self._extra.get(status)
        if number is None:
            number = self._extra[status] = -1 - len(self._extra)
        return number


class ScoreColumn(KeptColumn):
    """`values[row]`: the raw score."""

    __slots__ = (
        "_highest",
        "_is_trusted",
        "_lowest",
        "_uniform_share",
        "is_suspect",
        "is_uniform",
        "uniform_value",
        "values",
    )

    def __init__(self, call: ScoreCall) -> None:
        super().__init__(call)
        self.values: Int64N = _NO_VALUES
        self._highest = MAX_NODE_SCORE if call.normalizer is None else _INT64_MAX
        takes_negative = call.normalizer is not None and call.normalizer.takes_negative
        self._lowest = int(np.iinfo(np.int64).min) if takes_negative else 0
        self._is_trusted = takes_negative or call.plugin.is_within_bounds
        self.is_uniform = False
        """True only if every node has the same raw score, `uniform_value`."""
        self.uniform_value = 0
        self._uniform_share: int | None = None
        self.is_suspect = False
        """Whether some score may end outside 0 to 100: the result must then be checked."""

    def uniform_share(self) -> int:
        """The weighted score of every node when all have `uniform_value`."""
        if self._uniform_share is None:
            normalizer, value = self._call.normalizer, self.uniform_value
            bounds = normalizer.bounds(np.array([value], dtype=np.int64))
            self._uniform_share = self._call.weight * normalizer.apply_one(value, bounds)
        return self._uniform_share

    def _compute(self, table: NodeTable, pod: PodInfo) -> None:
        scores = self._call.raw(_NO_STATE, pod, NodeColumns(table))
        self.values = _widened(scores, table, np.int64)
        self._suspect(self.values)
        if self._call.normalizer is not None:
            scores = scores[table.valid[: table.size]]
            self.is_uniform = len(scores) > 0 and int(scores.min()) == int(scores.max())
            self.uniform_value = int(scores[0]) if self.is_uniform else 0
            self._uniform_share = None

    def _update(self, pod: PodInfo, nodes: NodeColumns) -> None:
        scores = self._call.raw(_NO_STATE, pod, nodes)
        self.values[nodes.rows] = scores
        self._suspect(scores)
        if self.is_uniform and not (scores == self.uniform_value).all():
            self.is_uniform = False
            self.epoch += 1

    def _update_one_by_one(self, table: NodeTable, pod: PodInfo, rows: list[int]) -> None:
        for row in rows:
            info = table.infos[row]
            if info is not None:
                score = self._call.one(_NO_STATE, pod, info)
                if self.is_uniform and score != self.uniform_value:
                    self.is_uniform = False
                    self.epoch += 1
                self.values[row] = score
                if not self._lowest <= score <= self._highest:
                    self.is_suspect = True

    def _suspect(self, scores: Int64N) -> None:
        if not self.is_suspect and not self._is_trusted:
            # Read without a sign, numbers below zero are the largest of all: one pass finds both kinds.
            self.is_suspect = int(scores.view(np.uint64).max()) > self._highest
