"""Nominated pods as columns: what pods that wait for victims will use on their nodes, kept for the rows that changed.

A decision has to leave room for nominated pods of equal or higher priority. Hundreds of pods may be nominated while one
more is decided on, and one nomination changes between two decisions; so sums by row are kept, and computed again where
a nomination or the pods of a node changed. A view: the nominations themselves belong to a `Nominator`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Protocol

import numpy as np

from bayplan.cluster.axes import Int64N, Int64RN, Rows
from bayplan.cluster.changes import ChangeLog, NameLog
from bayplan.cluster.node_table import NodeTable
from bayplan.cluster.pod_info import PodInfo

__all__ = ["NominatedRows", "NominatedUsage", "Nominator"]

_MOST_LEVELS = 8


class Nominator(Protocol):
    """Which pods are nominated to which node. With `changes`, a NameLog of node names, only changed nodes are read."""

    def nominated_pods(self, node_name: str) -> list[PodInfo]: ...

    def nominated_nodes(self) -> Iterable[str]: ...


class NominatedUsage:
    """What nominated pods will use of each node, as columns: those that one pod must leave room for."""

    __slots__ = ("_rows", "changes", "count", "nonzero", "used")

    def __init__(self, used: Int64RN, nonzero: Int64RN, count: Int64N) -> None:
        self.used = used
        self.nonzero = nonzero
        self.count = count
        self.changes = ChangeLog()
        """Rows where it became more or less."""
        self._rows: Rows | None = None

    @property
    def rows(self) -> Rows:
        """Where there are any."""
        if self._rows is None:
            self._rows = np.flatnonzero(self.count)
        return self._rows

    def write(self, row: int, pods: Iterable[PodInfo]) -> None:
        self.used[:, row] = 0
        self.nonzero[:, row] = 0
        self.count[row] = 0
        self._rows = None
        self.changes.append(row)
        for pod in pods:
            self.add(row, pod, 1)

    def add(self, row: int, pod: PodInfo, sign: int) -> None:
        usage = pod.usage
        for place, amount in usage.vector:
            self.used[place, row] += sign * amount
        self.nonzero[0, row] += sign * usage.nonzero_cpu
        self.nonzero[1, row] += sign * usage.nonzero_memory
        self.count[row] += sign

    def without(self, row: int, pod: PodInfo) -> NominatedUsage:
        """A copy that does not count one of the pods."""
        copy = NominatedUsage(self.used.copy(), self.nonzero.copy(), self.count.copy())
        copy.add(row, pod, -1)
        return copy


class NominatedRows:
    """The nominations of one nominator over one table."""

    def __init__(self, nominator: Nominator, table: NodeTable) -> None:
        self.nominator = nominator
        self._table = table
        self._pods: dict[int, list[PodInfo]] = {}
        """By row, the nominated pods that are not there yet. A row whose nominated pods all are has an empty list."""
        self._row_of: dict[str, int] = {}
        """uid of a pod that is not there yet to its row."""
        self._priorities: Counter[int] = Counter()
        self._levels: dict[int, NominatedUsage] = {}
        """By priority, what pods of at least that priority add."""
        self._log: NameLog | None = None
        self._log_position = -1
        self._row_position = -1
        self._as_of = (-1, -1, -1)
        self._is_empty = False
        """Whether there was no nomination at the last `refresh`."""

    def is_of(self, nominator: Nominator) -> bool:
        """Whether this is a view of that nominator, or of one that shares its log of changes."""
        log = getattr(nominator, "changes", None)
        return nominator is self.nominator or (log is not None and log is self._log)

    def is_empty(self) -> bool:
        """Whether there is no nomination."""
        self.refresh()
        return self._is_empty

    def pods_on(self, row: int, pod: PodInfo) -> list[PodInfo]:
        """The nominated pods on a row that a pod must leave room for: of equal or higher priority, not itself."""
        self.refresh()
        pods = self._pods.get(row)
        return [p for p in pods if p.priority >= pod.priority and p.uid != pod.uid] if pods else []

    def row_of(self, pod: PodInfo) -> int | None:
        """The row that the pod itself is nominated to and is not on yet."""
        self.refresh()
        return self._row_of.get(pod.uid)

    def includes(self, pod: PodInfo) -> bool:
        """Whether the pod itself is nominated to a node that it is not on yet."""
        self.refresh()
        return pod.uid in self._row_of

    def usage_beside(self, pod: PodInfo) -> NominatedUsage | None:
        """The usage that a pod must leave room for; None if there is none."""
        self.refresh()
        if not self._priorities:
            return None
        least = min((priority for priority in self._priorities if priority >= pod.priority), default=None)
        if least is None:
            return None
        level = self._levels.get(least) or self._make_level(least)
        own_row = self._row_of.get(pod.uid)
        if own_row is not None:
            own = next(p for p in self._pods[own_row] if p.uid == pod.uid)
            if own.priority >= least:
                level = level.without(own_row, own)
        return level if len(level.rows) else None

    def _make_level(self, least: int) -> NominatedUsage:
        if len(self._levels) >= _MOST_LEVELS:
            self._levels.clear()
        width, capacity = len(self._table.resources), self._table.capacity
        level = self._levels[least] = NominatedUsage(
            np.zeros((width, capacity), dtype=np.int64),
            np.zeros((2, capacity), dtype=np.int64),
            np.zeros(capacity, dtype=np.int64),
        )
        for row, pods in self._pods.items():
            level.write(row, [p for p in pods if p.priority >= least])
        return level

    # Following what changes

    def refresh(self) -> None:
        """Read the rows again where nominations or pods changed."""
        table = self._table
        log: NameLog | None = getattr(self.nominator, "changes", None)
        known = log if log is self._log else None
        is_as_noted = known is not None and known.position == self._log_position
        if is_as_noted and self._is_empty:
            return
        as_of = (table.layout, len(table.resources), table.node_changes.position)
        if is_as_noted and table.row_changes.position == self._row_position and as_of == self._as_of:
            return
        names = None if known is None else known.since(self._log_position)
        changed = table.row_changes.since(self._row_position)
        if names is None or changed is None or as_of != self._as_of:
            self._start_over()
            rows = {table.row_of[name] for name in self.nominator.nominated_nodes() if name in table.row_of}
        else:
            rows = {table.row_of[name] for name in names if name in table.row_of}
            if self._pods and len(changed):
                rows.update(self._pods.keys() & changed.tolist())
        if rows:
            self._look_at(rows)
        self._log, self._log_position = log, log.position if log is not None else -1
        self._as_of, self._row_position = as_of, table.row_changes.position
        self._is_empty = not self._pods and next(iter(self.nominator.nominated_nodes()), None) is None

    def _look_at(self, rows: set[int]) -> None:
        found = {row: self._find(row) for row in rows}
        changes = {row: pods for row, pods in found.items() if pods != self._pods.get(row)}
        # A pod may have moved from one of them to another: all leave before any is entered again.
        for row in changes:
            self._leave(row)
        for row, pods in changes.items():
            self._enter(row, pods)

    def _start_over(self) -> None:
        self._pods, self._row_of, self._levels = {}, {}, {}
        self._priorities.clear()

    def _leave(self, row: int) -> None:
        for pod in self._pods.pop(row, ()):
            del self._row_of[pod.uid]
            self._priorities[pod.priority] -= 1
            if not self._priorities[pod.priority]:
                del self._priorities[pod.priority]

    def _find(self, row: int) -> list[PodInfo] | None:
        """The pods that are nominated to a row and not there; None if there is no nomination to it."""
        node = self._table.at(row)
        nominated = self.nominator.nominated_pods(node.name)
        return [pod for pod in nominated if pod.uid not in node.pods] if nominated else None

    def _enter(self, row: int, pods: list[PodInfo] | None) -> None:
        if pods is not None:
            self._pods[row] = pods
            self._row_of.update((pod.uid, row) for pod in pods)
            self._priorities.update(pod.priority for pod in pods)
        for least, level in self._levels.items():
            level.write(row, [pod for pod in pods or () if pod.priority >= least])
