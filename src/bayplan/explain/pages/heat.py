"""How full every node is of one resource, as columns for a heat map."""

from __future__ import annotations

import msgspec
import numpy as np

from bayplan.app.live import LiveScheduler
from bayplan.cluster.axes import Int64N
from bayplan.cluster.node_table import NodeTable
from bayplan.explain.pages.nodes import ZONE_LABEL

__all__ = ["Heat", "HeatMaps"]

PODS = "pods"


class Heat(msgspec.Struct, kw_only=True, rename="camel"):
    """Columns over all nodes, one entry a node."""

    resource: str
    resources: dict[str, tuple[int, int]]
    """By resource that any node offers: requested and allocatable of all nodes (milli-cpu, bytes or counts)."""
    names: list[str]
    zones: list[str]
    fill: list[int]
    """Percent; -1 where a node offers nothing of the resource."""
    requested: list[int]
    allocatable: list[int]
    unschedulable: list[int]
    """Positions of nodes that are cordoned."""
    buckets: list[int]
    """How many nodes are 0 to 9 percent full, 10 to 19 and so on; the last counts the full ones."""


class HeatMaps:
    """Keeps the order of nodes until a node comes, goes or changes."""

    def __init__(self) -> None:
        self._made_for: tuple[int, int] = (0, -1)
        self._rows: Int64N = np.zeros(0, dtype=np.int64)
        self._names: list[str] = []
        self._zones: list[str] = []

    def of(self, live: LiveScheduler, resource: str) -> Heat:
        """Of the resource; of cpu if no node offers it."""
        table = live.cache.cluster.nodes
        self._follow(table)
        totals = _totals(table)
        shown = resource if resource in totals else "cpu"
        used, there = _columns(table, shown)
        used, there = used[self._rows], there[self._rows]
        fill = np.where(there > 0, used * 100 // np.maximum(there, 1), -1)
        offered = fill[fill >= 0]
        return Heat(
            resource=shown,
            resources=totals,
            names=self._names,
            zones=self._zones,
            fill=fill.tolist(),
            requested=used.tolist(),
            allocatable=there.tolist(),
            unschedulable=np.flatnonzero(table.unschedulable[self._rows]).tolist(),
            buckets=np.bincount(np.minimum(offered // 10, 10), minlength=11).tolist(),
        )

    def _follow(self, table: NodeTable) -> None:
        made_for = (id(table), table.node_changes.position)
        if made_for == self._made_for:
            return
        infos = [info for info in table.infos if info is not None]
        infos.sort(key=lambda info: (info.labels.get(ZONE_LABEL, ""), info.name))
        self._rows = np.array([info.row for info in infos], dtype=np.int64)
        self._names = [info.name for info in infos]
        self._zones = [info.labels.get(ZONE_LABEL, "") for info in infos]
        self._made_for = made_for


def _columns(table: NodeTable, resource: str) -> tuple[Int64N, Int64N]:
    if resource == PODS:
        return table.pod_count, table.allowed_pods
    place = table.resources.find(resource) or 0
    return table.requested[place], table.allocatable[place]


def _totals(table: NodeTable) -> dict[str, tuple[int, int]]:
    found = {}
    for name in (*table.resources.names, PODS):
        used, there = _columns(table, name)
        total = int(there[: table.size].sum())
        if total:
            found[name] = (int(used[: table.size].sum()), total)
    return found
