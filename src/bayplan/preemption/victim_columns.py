"""The pods of every node in order of importance, as columns: slot k of a row is its k-th most important pod.

Only changed rows are written again, so that a dry run over hundreds of nodes reads slices instead of iterating over
pods.
"""

from __future__ import annotations

from math import inf

import numpy as np

from bayplan.cluster.axes import BoolN, Int64N, Int64RN, Rows
from bayplan.cluster.node_table import NodeTable
from bayplan.cluster.pod_info import PodInfo
from bayplan.preemption.candidates import importance

__all__ = ["Slots", "VictimColumns"]

Slots = np.ndarray[tuple[int, int], np.dtype[np.bool_]]
"""Shape (slot, position): a flag for each pod of some nodes."""

_NO_POD = np.iinfo(np.int64).max
_FIRST_SLOTS = 16


class VictimColumns:
    """`priority[k, row]`, `start[k, row]` and `usage[k, r, row]`; empty slots have the highest priority there is."""

    def __init__(self) -> None:
        self._position = -1
        self._layout = -1
        self.slots = 0
        self.pods: list[list[PodInfo]] = []
        """By row, the pods in slot order."""

    priority: Int64RN
    start: np.ndarray[tuple[int, int], np.dtype[np.float64]]
    usage: np.ndarray[tuple[int, int, int], np.dtype[np.int64]]
    filled: Int64N
    """By row, how many slots hold a pod."""

    def refresh(self, table: NodeTable) -> None:
        """Write the rows that changed since the last refresh."""
        rows = table.row_changes.since(self._position)
        if rows is None or self._layout != table.layout or len(table.resources) > self.usage.shape[1]:
            self._allocate(table, _FIRST_SLOTS)
            changed = set(range(table.size))
        else:
            changed = set(rows.tolist())
        for row in changed:
            self._write(table, row)
        self._position = table.row_changes.position

    def has_lower(self, rows: Rows, priority: int) -> BoolN:
        """Which of these rows hold a pod of lower priority."""
        slots = int(self.filled[rows].max()) if len(rows) else 0
        lower: BoolN = np.asarray((self.priority[:slots].take(rows, axis=1) < priority).any(axis=0))
        return lower

    def _allocate(self, table: NodeTable, slots: int) -> None:
        most = max((len(info.pods) for info in table.infos if info is not None), default=0)
        while slots < most:
            slots *= 2
        rank, capacity = len(table.resources), table.capacity
        self.slots, self._layout = slots, table.layout
        self.priority = np.full((slots, capacity), _NO_POD, dtype=np.int64)
        self.start = np.full((slots, capacity), np.inf)
        self.usage = np.zeros((slots, rank, capacity), dtype=np.int64)
        self.filled = np.zeros(capacity, dtype=np.int64)
        self.pods = [[] for _ in range(capacity)]

    def _write(self, table: NodeTable, row: int) -> None:
        info = table.infos[row]
        pods = sorted(info.pods.values(), key=importance) if info is not None else []
        if len(pods) > self.slots:
            self._allocate(table, self.slots)
            for other in range(table.size):
                self._write(table, other)
            return
        filled, count = int(self.filled[row]), len(pods)
        if count < filled:
            self.priority[count:filled, row] = _NO_POD
            self.start[count:filled, row] = np.inf
        self.usage[:filled, :, row] = 0
        self.priority[:count, row] = [pod.shape.priority for pod in pods]
        self.start[:count, row] = [inf if pod.start_time is None else pod.start_time for pod in pods]
        for slot, pod in enumerate(pods):
            for place, amount in pod.shape.usage.vector:
                self.usage[slot, place, row] = amount
        self.filled[row] = count
        self.pods[row] = pods
