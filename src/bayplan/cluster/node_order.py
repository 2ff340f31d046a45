"""The order in which kube-scheduler visits nodes: round robin over zones, each zone in order of arrival."""

from __future__ import annotations

import numpy as np

from bayplan.api.node import Node
from bayplan.cluster.axes import Rows

__all__ = ["NodeOrder", "zone_of"]

_OLD_REGION, _REGION = "failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"
_OLD_ZONE, _ZONE = "failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"


def zone_of(node: Node) -> str:
    """Region and zone together; nodes without either share one zone."""
    labels = node.labels
    region = labels.get(_OLD_REGION, labels.get(_REGION, ""))
    zone = labels.get(_OLD_ZONE, labels.get(_ZONE, ""))
    return f"{region}:\x00:{zone}" if region or zone else ""


class NodeOrder:
    """Rows by zone. The list is rebuilt when a node comes or goes, and then only when it is read."""

    def __init__(self) -> None:
        self._zones: dict[str, dict[int, None]] = {}
        self._zone_by_row: dict[int, str] = {}
        self._listed: Rows | None = None

    def add(self, row: int, node: Node) -> None:
        self._enter(row, zone_of(node))
        self._listed = None

    def update(self, row: int, node: Node) -> None:
        """A node that changed its zone moves, but the list in use keeps its order until it is next rebuilt."""
        zone = zone_of(node)
        if self._zone_by_row[row] != zone:
            self._leave(row)
            self._enter(row, zone)

    def remove(self, row: int) -> None:
        self._leave(row)
        self._listed = None

    def _enter(self, row: int, zone: str) -> None:
        self._zones.setdefault(zone, {})[row] = None
        self._zone_by_row[row] = zone

    def _leave(self, row: int) -> None:
        zone = self._zone_by_row.pop(row)
        del self._zones[zone][row]
        if not self._zones[zone]:
            del self._zones[zone]

    def rows(self) -> Rows:
        if self._listed is None:
            self._listed = np.array(self._round_robin(), dtype=np.intp)
        return self._listed

    def _round_robin(self) -> list[int]:
        lists = [list(rows) for rows in self._zones.values()]
        longest = max(map(len, lists), default=0)
        return [rows[turn] for turn in range(longest) for rows in lists if turn < len(rows)]
