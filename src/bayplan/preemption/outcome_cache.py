"""Outcomes of dry runs, kept by pod shape and row.

Preemptors come in groups: the next pod of a template needs the victims on the same nodes, of which one or two changed
meanwhile. Dry runs are repeated only for rows whose pods, node object or nominations changed. Only for filters whose
answer follows from the shape and the row (`DryRun.remembers`).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable

import numpy as np

from bayplan.cluster.axes import Int64N, Rows
from bayplan.cluster.node_table import NodeTable
from bayplan.cluster.nominated import NominatedUsage
from bayplan.cluster.pod_info import PodInfo
from bayplan.framework.status import Status
from bayplan.preemption.column_trial import VictimsByNode, no_prices
from bayplan.preemption.victim_columns import VictimColumns

__all__ = ["KnownOutcomes", "OutcomeCache"]

RunDry = Callable[[Rows], VictimsByNode]
_MOST_SHAPES = 8
_AT_MOST_TIMES = 4
"""A batch with outdated rows may be extended to this multiple of its size by other outdated rows."""
_NOT_REFUSED = -1


class OutcomeCache:
    """The outcomes of the shapes that preempted last."""

    def __init__(self) -> None:
        self._by_shape: OrderedDict[int, KnownOutcomes] = OrderedDict()

    def of(
        self,
        pod: PodInfo,
        *,
        terms: Hashable,
        nominated: NominatedUsage | None,
        columns: VictimColumns,
        table: NodeTable,
    ) -> KnownOutcomes:
        """The outcomes of the pod's shape, brought up to date. `terms`: what else they depend on besides the row."""
        number = pod.shape.number
        known = self._by_shape.pop(number, None)
        if known is None or not known.holds(terms, columns, table):
            known = KnownOutcomes(terms, columns, table)
        self._by_shape[number] = known
        if len(self._by_shape) > _MOST_SHAPES:
            self._by_shape.popitem(last=False)
        known.follow(table, nominated)
        return known


class KnownOutcomes:
    """The outcomes of one shape: columns over all rows, valid where `_fresh` is set."""

    def __init__(self, terms: Hashable, columns: VictimColumns, table: NodeTable) -> None:
        capacity, slots = table.capacity, columns.slots
        self._terms = terms
        self._slots = slots
        self._layout = table.layout
        self._row_position = table.row_changes.position
        self._nominated: NominatedUsage | None = None
        self._nominated_position = -1
        self._fresh = np.zeros(capacity, dtype=np.bool_)
        self._seen = np.zeros(capacity, dtype=np.bool_)
        self._has_lower = np.zeros(capacity, dtype=np.bool_)
        self._takes = np.zeros(capacity, dtype=np.bool_)
        self._is_victim = np.zeros((slots, capacity), dtype=np.bool_)
        self._violations: Int64N = np.zeros(capacity, dtype=np.int64)
        self._prices = no_prices(capacity)
        self._refusal = np.full(capacity, _NOT_REFUSED, dtype=np.int32)
        self._statuses: list[Status] = []
        self._failures: dict[int, Status] = {}
        """By row, how a filter failed in the latest dry run."""

    def holds(self, terms: Hashable, columns: VictimColumns, table: NodeTable) -> bool:
        return self._layout == table.layout and self._slots == columns.slots and self._terms == terms

    def follow(self, table: NodeTable, nominated: NominatedUsage | None) -> None:
        """Invalidate the rows that changed, or whose nominated pods did."""
        self._forget(table.row_changes.since(self._row_position))
        self._row_position = table.row_changes.position
        before = self._nominated
        if before is not None:
            self._forget(before.changes.since(self._nominated_position))
        if before is not nominated:
            for each in (before, nominated):
                if each is not None:
                    self._forget(each.rows)
        self._nominated = nominated
        self._nominated_position = -1 if nominated is None else nominated.changes.position

    def _forget(self, rows: Rows | None) -> None:
        self._fresh[slice(None) if rows is None else rows] = False

    def complete(self, rows: Rows, dry_runs: RunDry) -> None:
        """Repeat the dry runs of outdated rows among these, and of a few other outdated rows with them: a run over a
        few rows costs as much as over one."""
        fresh = self._fresh[rows]
        if np.count_nonzero(fresh) == len(rows):
            return
        missing = rows[~fresh]
        outdated = self._seen & ~self._fresh
        others = np.count_nonzero(outdated)
        if others and others <= _AT_MOST_TIMES * len(rows):
            outdated[missing] = True
            missing = outdated.nonzero()[0]
        self._keep(dry_runs(missing))

    def _keep(self, many: VictimsByNode) -> None:
        rows = many.rows
        slots = len(many.is_victim)
        self._has_lower[rows] = many.has_lower
        self._takes[rows] = many.takes
        self._is_victim[:slots, rows] = many.is_victim
        self._is_victim[slots:, rows] = False
        self._violations[rows] = many.violations
        for kept, prices in zip(self._prices, many.prices, strict=True):
            kept[rows] = prices
        self._refusal[rows] = _NOT_REFUSED
        self._fresh[rows] = self._seen[rows] = True
        for row in self._failures.keys() & set(rows.tolist() if self._failures else ()):
            del self._failures[row]
        for status, some in many.refused:
            if not status.is_rejected:
                # The filter may work next time.
                self._failures.update(dict.fromkeys(some.tolist(), status))
                self._fresh[some] = False
                continue
            if status not in self._statuses:
                self._statuses.append(status)
            self._refusal[some] = self._statuses.index(status)

    def counts(self, rows: Rows) -> tuple[int, int]:
        """The number of candidates among these rows, and of those that break no budget."""
        takes = self._takes[rows]
        unviolating = takes & (self._violations[rows] == 0)
        return int(np.count_nonzero(takes)), int(np.count_nonzero(unviolating))

    def outcome(self, rows: Rows, columns: VictimColumns) -> VictimsByNode:
        """The kept outcomes of these rows, in the form of a fresh dry run."""
        slots = int(columns.filled[rows].max()) if len(rows) else 0
        refusal = self._refusal[rows]
        refused = [
            (status, rows[refusal == number]) for number, status in enumerate(self._statuses) if number in refusal
        ]
        if self._failures:
            refused += [(self._failures[row], rows[rows == row]) for row in rows.tolist() if row in self._failures]
        return VictimsByNode(
            rows,
            self._has_lower[rows],
            self._is_victim[:slots].take(rows, axis=1),
            self._takes[rows],
            self._violations[rows],
            refused,
            [prices[rows] for prices in self._prices],
        )
