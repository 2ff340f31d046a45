"""Overlays: some rows with pods added or removed, without a copy of the cluster.

An overlay holds its own counts for a handful of rows and has the interface of `NodeColumns`, so plugins run on it
unchanged. Nominated pods, preemption dry runs and what-if questions use it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from bayplan.cluster.axes import Int64N, Int64RN, Rows
from bayplan.cluster.derived import DerivedColumns
from bayplan.cluster.node_columns import NodeColumns
from bayplan.cluster.node_info import NodeInfo
from bayplan.cluster.node_table import NodeTable
from bayplan.cluster.pod_info import PodInfo

__all__ = ["OverlayColumns", "overlay_of"]

D = TypeVar("D", bound=DerivedColumns)


class OverlayColumns(NodeColumns):
    """Columns of some rows that can be changed. Positions are those of `rows`."""

    __slots__ = ("_nonzero", "_twins", "count", "used")

    def __init__(self, table: NodeTable, rows: Rows) -> None:
        super().__init__(table, rows)
        self.used: Int64RN = table.requested.take(rows, axis=1)
        self._nonzero: Int64RN = table.nonzero.take(rows, axis=1)
        self.count: Int64N = table.pod_count[rows]
        self._twins: dict[int, NodeInfo] = {}

    @property
    def pod_count(self) -> Int64N:
        return self.count

    @property
    def nonzero(self) -> Int64RN:
        return self._nonzero

    @property
    def all_requested(self) -> Int64RN:
        return self.used

    def derivation(self, kind: type[D]) -> D | None:
        return None

    def info(self, position: int) -> NodeInfo:
        return self._twins.get(position) or super().info(position)

    def infos(self) -> Sequence[NodeInfo | None]:
        infos = list(super().infos())
        for position, twin in self._twins.items():
            infos[position] = twin
        return infos

    def take(self, positions: Rows) -> NodeColumns:
        part = OverlayColumns.__new__(OverlayColumns)
        NodeColumns.__init__(part, self.table, self.rows[positions])
        part.used, part._nonzero = self.used[:, positions], self._nonzero[:, positions]
        part.count = self.count[positions]
        part._twins = {i: self._twins[p] for i, p in enumerate(positions.tolist()) if p in self._twins}
        return part

    def add(self, position: int, pod: PodInfo) -> NodeInfo:
        """Put a pod on the node at a position; the node as it then looks."""
        twin = self._twin(position)
        twin.add_pod(pod)
        self._count(position, pod, 1)
        return twin

    def remove(self, position: int, pod: PodInfo) -> NodeInfo:
        twin = self._twin(position)
        twin.remove_pod(pod)
        self._count(position, pod, -1)
        return twin

    def count_in_all(self, used: Int64RN, nonzero: Int64RN, count: Int64N) -> None:
        """Count what pods use that come to every node, for plugins that read counts only."""
        self.used[: len(used)] += used
        self._nonzero += nonzero
        self.count += count

    def _twin(self, position: int) -> NodeInfo:
        twin = self._twins.get(position)
        if twin is None:
            twin = self._twins[position] = super().info(position).copy()
        return twin

    def _count(self, position: int, pod: PodInfo, sign: int) -> None:
        usage = pod.usage
        for place, amount in usage.vector:
            self.used[place, position] += sign * amount
        self._nonzero[0, position] += sign * usage.nonzero_cpu
        self._nonzero[1, position] += sign * usage.nonzero_memory
        self.count[position] += sign


def overlay_of(table: NodeTable, row: int) -> OverlayColumns:
    """An overlay of one row, at position 0."""
    return OverlayColumns(table, np.array([row], dtype=np.intp))
