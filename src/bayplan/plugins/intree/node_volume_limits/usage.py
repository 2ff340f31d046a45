"""The volumes of each driver that are attached to a node, counted exactly for rows near a limit.

A count is kept until one of its sources changes: the pods or attachments of the row, one of their claims, one of the
volumes behind those. Rows far from any limit are never counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np

from bayplan.framework import NodeInfo
from bayplan.framework.columns import ClusterState, Int64N
from bayplan.framework.objects import PersistentVolume, PersistentVolumeClaim, StorageClass
from bayplan.plugins.intree.node_volume_limits.attached_volumes import AttachedVolume, AttachedVolumes
from bayplan.plugins.intree.node_volume_limits.limit_columns import VolumeLimitColumns
from bayplan.plugins.volumes.claims import claim_class, pod_claims
from bayplan.plugins.volumes.object_changes import ObjectFollower

__all__ = ["VolumeUse"]

_Source = tuple[type, str]
"""Kind and key of an object that a count depends on, whether it exists or not."""


class VolumeUse:
    """Exact counts of some rows. `follow` drops outdated ones, `count` adds those of rows."""

    def __init__(self, cluster: ClusterState) -> None:
        self._cluster = cluster
        self._volumes = AttachedVolumes(cluster.objects)
        self._claim_changes = ObjectFollower(cluster.objects, PersistentVolumeClaim)
        self._volume_changes = ObjectFollower(cluster.objects, PersistentVolume)
        self._class_changes = ObjectFollower(cluster.objects, StorageClass)
        self._used: dict[int, set[AttachedVolume]] = {}
        self._sources: dict[int, set[_Source]] = {}
        self._rows_by_source: dict[_Source, set[int]] = {}
        self._counts: dict[str, Int64N] = {}

    def follow(self, changed_rows: Iterable[int]) -> None:
        """Drop the counts of these rows, and of those whose claims, volumes or classes changed."""
        if not self._used:
            return
        for row in changed_rows:
            self._forget(row)
        for follower in self._followers():
            for old, new in follower.changes():
                item = new if new is not None else old
                if item is not None:
                    self._forget_all((type(item), item.key))

    def count(self, rows: Iterable[int], columns: VolumeLimitColumns) -> None:
        """Count the rows that are not counted yet."""
        if not self._used:
            for follower in self._followers():
                follower.skip()
        for row in rows:
            if row not in self._used:
                self._count(self._cluster.nodes.at(row), columns)

    def counts(self, driver: str) -> Int64N:
        """For each counted row, the attached volumes of the driver."""
        column = self._counts.get(driver)
        capacity = self._cluster.nodes.capacity
        if column is None or len(column) < capacity:
            grown = np.zeros(capacity, dtype=np.int64)
            if column is not None:
                grown[: len(column)] = column
            column = self._counts[driver] = grown
        return column

    def of_pods(self, row: int) -> set[AttachedVolume]:
        """What the pods of a counted row attach."""
        return self._used[row]

    def _followers(self) -> tuple[ObjectFollower[Any], ...]:
        return self._claim_changes, self._volume_changes, self._class_changes

    def _count(self, node: NodeInfo, columns: VolumeLimitColumns) -> None:
        row, attachments = node.row, columns.attachments_of(node.name)
        used = self._used[row] = self._volumes.of_node(node)
        counts = Counter(driver for driver, _ in used | self._volumes.of_attachments(attachments))
        for driver in counts.keys() | self._counts.keys():
            self.counts(driver)[row] = counts[driver]
        named = {attachment.spec.source.persistent_volume_name for attachment in attachments}
        sources = self._sources[row] = self._sources_of(node) | {(PersistentVolume, name) for name in named if name}
        for source in sources:
            self._rows_by_source.setdefault(source, set()).add(row)

    def _sources_of(self, node: NodeInfo) -> set[_Source]:
        found: set[_Source] = set()
        for pod in node.pods.values():
            for used in pod_claims(pod):
                key = f"{pod.namespace}/{used.name}"
                found.add((PersistentVolumeClaim, key))
                claim = self._cluster.objects.get(PersistentVolumeClaim, key)
                if claim is not None:
                    found |= {(PersistentVolume, claim.spec.volume_name), (StorageClass, claim_class(claim))}
        return found

    def _forget_all(self, source: _Source) -> None:
        for row in list(self._rows_by_source.get(source, ())):
            self._forget(row)

    def _forget(self, row: int) -> None:
        if self._used.pop(row, None) is None:
            return
        for source in self._sources.pop(row):
            rows = self._rows_by_source[source]
            rows.discard(row)
            if not rows:
                del self._rows_by_source[source]
