"""Rejections of nodes as if the pods nominated to them were there already, kept by shape and row.

Pods are decided on by the hundred while others wait for their victims to leave. Every decision filters the nodes of
those others a second time, and from one decision to the next a node or two of them changed. Only for filters whose
answer follows from the shape and the row (`DryRuns.remembers`).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable

import numpy as np

from bayplan.cluster.axes import Rows
from bayplan.cluster.node_table import NodeTable
from bayplan.cluster.nominated import NominatedUsage
from bayplan.cluster.pod_info import PodInfo
from bayplan.framework.runtime.status_groups import group_by_status
from bayplan.framework.status import Status
from bayplan.framework.verdicts import StatusTable

__all__ = ["NominatedRejections"]

Groups = list[tuple[Status, Rows]]
_MOST_SHAPES = 32


class NominatedRejections:
    """Of the shapes that were decided on last."""

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._by_shape: OrderedDict[int, _Rejections] = OrderedDict()

    def find(self, pod: PodInfo, beside: NominatedUsage, terms: Hashable, look: Callable[[Rows], Groups]) -> Groups:
        """The rejected nodes among those with nominated pods, by status. `look` computes the rows that changed;
        `terms` are what its result depends on besides the shape and the row."""
        number = pod.shape.number
        known = self._by_shape.pop(number, None)
        if known is None or not known.holds(terms, beside, self._table):
            known = _Rejections(terms, beside, self._table)
        self._by_shape[number] = known
        if len(self._by_shape) > _MOST_SHAPES:
            self._by_shape.popitem(last=False)
        return known.groups(look)


class _Rejections:
    """Of one shape: a column over all rows, right where `fresh` says so."""

    def __init__(self, terms: Hashable, beside: NominatedUsage, table: NodeTable) -> None:
        self._terms = terms
        self._beside = beside
        self._table = table
        self._layout = table.layout
        self._row_position = table.row_changes.position
        self._nominated_position = beside.changes.position
        self._fresh = np.zeros(table.capacity, dtype=np.bool_)
        self._ids = np.zeros(table.capacity, dtype=np.int32)
        self._statuses = StatusTable()
        self._rows: Rows | None = None
        self._groups: Groups = []

    def holds(self, terms: Hashable, beside: NominatedUsage, table: NodeTable) -> bool:
        return self._beside is beside and self._layout == table.layout and self._terms == terms

    def groups(self, look: Callable[[Rows], Groups]) -> Groups:
        self._follow()
        rows = self._beside.rows
        fresh = self._fresh[rows]
        if np.count_nonzero(fresh) < len(rows):
            self._complete(rows[~fresh], look)
        elif rows is self._rows:
            return self._groups
        ids = self._ids[rows]
        rejected = ids.nonzero()[0]
        self._rows, self._groups = rows, group_by_status(rows[rejected], ids[rejected], self._statuses.status)
        return self._groups

    def _complete(self, missing: Rows, look: Callable[[Rows], Groups]) -> None:
        found = look(missing)
        self._ids[missing] = 0
        for status, rows in found:
            self._ids[rows] = self._statuses.number(status)
        self._fresh[missing] = True

    def _follow(self) -> None:
        """Mark the rows that changed."""
        changes, nominations = self._table.row_changes, self._beside.changes
        for changed in (changes.since(self._row_position), nominations.since(self._nominated_position)):
            self._fresh[slice(None) if changed is None else changed] = False
        self._row_position, self._nominated_position = changes.position, nominations.position
