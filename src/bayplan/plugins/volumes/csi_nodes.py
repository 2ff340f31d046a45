"""The CSINode of each row, and the rows whose node migrated an in-tree plugin to CSI."""

from __future__ import annotations

import numpy as np

from bayplan.framework.columns import BoolN, ClusterState
from bayplan.framework.objects import CSINode
from bayplan.plugins.volumes.csi_migration import migrated_plugins
from bayplan.plugins.volumes.object_changes import RowFollower

__all__ = ["CsiNodeRows", "MigratedRows"]


class CsiNodeRows:
    """`nodes[row]` is the CSINode, None where there is none. Updated by `follow`."""

    def __init__(self, cluster: ClusterState) -> None:
        self._cluster = cluster
        self._rows = RowFollower(cluster.nodes.node_changes, cluster.nodes)
        self._version = -1
        self.nodes: list[CSINode | None] = []

    def follow(self) -> list[int]:
        """Apply changes. Returns the rows whose CSINode is another object than at the last call."""
        table, objects = self._cluster.nodes, self._cluster.objects
        self.nodes += [None] * (table.size - len(self.nodes))
        rows, version = self._rows.changed(), objects.version(CSINode)
        if version != self._version:
            rows, self._version = range(table.size), version
        changed = []
        for row in rows:
            info = table.infos[row]
            node = None if info is None else objects.get(CSINode, info.name)
            if node is not self.nodes[row]:
                self.nodes[row] = node
                changed.append(row)
        return changed


class MigratedRows:
    """For each in-tree plugin, the rows on which its volumes are CSI volumes by the CSINode's annotation."""

    def __init__(self, cluster: ClusterState) -> None:
        self._table = cluster.nodes
        self._csi_nodes = CsiNodeRows(cluster)
        self._plugins: list[frozenset[str]] = []
        self._masks: dict[str, BoolN] = {}

    def of(self, plugin: str) -> BoolN:
        """A mask over all rows."""
        for row in self._csi_nodes.follow():
            self._plugins += [frozenset()] * (row + 1 - len(self._plugins))
            plugins = migrated_plugins(self._csi_nodes.nodes[row])
            if plugins != self._plugins[row]:
                self._plugins[row] = plugins
                self._masks.clear()
        mask = self._masks.get(plugin)
        if mask is None or len(mask) != self._table.size:
            mask = self._masks[plugin] = np.zeros(self._table.size, dtype=np.bool_)
            mask[[row for row, plugins in enumerate(self._plugins) if plugin in plugins]] = True
        return mask
