"""Columns for volume limits: what each node allows of a driver, and an upper bound of what is used.

The bound counts every volume of the pods on a row and every attachment of the node, of whichever driver. It is updated
for changed rows without looking up any claim, so that only nodes near a limit need an exact count.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from bayplan.framework.columns import BoolN, ClusterState, Int64N
from bayplan.framework.objects import CSINode, VolumeAttachment
from bayplan.plugins.intree.node_volume_limits.attached_volumes import attachable_volumes
from bayplan.plugins.volumes.csi_nodes import CsiNodeRows
from bayplan.plugins.volumes.object_changes import ObjectFollower, RowFollower

__all__ = ["UNLIMITED", "VolumeLimitColumns", "limits_of"]

UNLIMITED = np.iinfo(np.int64).max


def limits_of(node: CSINode | None) -> dict[str, int]:
    """Driver to the number of volumes that it can attach to the node; drivers without a number are left out."""
    if node is None:
        return {}
    return {
        driver.name: driver.allocatable.count
        for driver in node.spec.drivers or ()
        if driver.allocatable is not None and driver.allocatable.count is not None
    }


class VolumeLimitColumns:
    """Kept by the plugin from cycle to cycle; `follow` applies the changes of the cluster."""

    def __init__(self, cluster: ClusterState) -> None:
        table = cluster.nodes
        self._table = table
        self._pod_rows = RowFollower(table.use_changes, table)
        self._node_rows = RowFollower(table.node_changes, table)
        self._attachment_changes = ObjectFollower(cluster.objects, VolumeAttachment)
        self._attachments: dict[str, dict[str, VolumeAttachment]] = {}
        self._csi_nodes = CsiNodeRows(cluster)
        self._limits: dict[str, Int64N] = {}
        self._volumes: Int64N = np.zeros(0, dtype=np.int64)
        self._attached: Int64N = np.zeros(0, dtype=np.int64)
        self.has_csi_node: BoolN = np.zeros(0, dtype=np.bool_)

    def attachments_of(self, node_name: str) -> list[VolumeAttachment]:
        return list(self._attachments.get(node_name, {}).values())

    def follow_limits(self) -> None:
        """Apply changed limits only; usage is updated later."""
        self._grow()
        for row in self._csi_nodes.follow():
            self._write_limits(row, self._csi_nodes.nodes[row])

    def is_limited(self, drivers: Iterable[str]) -> bool:
        """Whether any node has a limit for one of the drivers."""
        return any(driver in self._limits for driver in drivers)

    def follow(self) -> set[int]:
        """Apply all changes. Returns the rows whose exact count may have changed with their pods or node."""
        self.follow_limits()
        changed = set(self._pod_rows.changed())
        for row in changed:
            node = self._table.infos[row]
            pods = () if node is None else node.pods.values()
            self._volumes[row] = sum(len(attachable_volumes(pod)) for pod in pods)
        self._follow_nodes()
        return changed | self._follow_attachments()

    def suspects(self, wanted: dict[str, int]) -> BoolN:
        """The rows on which the wanted volumes, counted by driver, may go over a limit."""
        size = self._table.size
        bound = self._volumes[:size] + self._attached[:size]
        mask = np.zeros(size, dtype=np.bool_)
        for driver, count in wanted.items():
            limits = self._limits.get(driver)
            if limits is not None:
                mask |= bound > limits[:size] - count
        return mask

    def limits(self, driver: str) -> Int64N:
        """What each row allows of a driver."""
        column = self._limits.get(driver)
        if column is None:
            column = self._limits[driver] = np.full(len(self._volumes), UNLIMITED)
        return column

    def _grow(self) -> None:
        missing = self._table.capacity - len(self._volumes)
        if missing > 0:
            self._volumes = np.concatenate([self._volumes, np.zeros(missing, dtype=np.int64)])
            self._attached = np.concatenate([self._attached, np.zeros(missing, dtype=np.int64)])
            self.has_csi_node = np.concatenate([self.has_csi_node, np.zeros(missing, dtype=np.bool_)])
            for driver, column in self._limits.items():
                self._limits[driver] = np.concatenate([column, np.full(missing, UNLIMITED)])

    def _follow_nodes(self) -> None:
        for row in self._node_rows.changed():
            node = self._table.infos[row]
            self._attached[row] = 0 if node is None else len(self._attachments.get(node.name, ()))

    def _write_limits(self, row: int, csi_node: CSINode | None) -> None:
        self.has_csi_node[row] = csi_node is not None
        limits = limits_of(csi_node)
        for driver in limits.keys() - self._limits.keys():
            self._limits[driver] = np.full(len(self._volumes), UNLIMITED)
        for driver, column in self._limits.items():
            column[row] = limits.get(driver, UNLIMITED)

    def _follow_attachments(self) -> set[int]:
        names = set()
        for old, new in self._attachment_changes.changes():
            if old is not None:
                self._attachments[old.spec.node_name].pop(old.name, None)
                names.add(old.spec.node_name)
            if new is not None:
                self._attachments.setdefault(new.spec.node_name, {})[new.name] = new
                names.add(new.spec.node_name)
        return {row for name in names if (row := self._count_attachments(name)) is not None}

    def _count_attachments(self, node_name: str) -> int | None:
        count = len(self._attachments.get(node_name, ()))
        if not count:
            self._attachments.pop(node_name, None)
        row = self._table.row_of.get(node_name)
        if row is not None:
            self._attached[row] = count
        return row
