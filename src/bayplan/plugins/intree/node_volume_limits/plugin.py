"""NodeVolumeLimits: the number of volumes of a CSI driver that a node can attach."""

from __future__ import annotations

from collections import Counter
from typing import ClassVar, NamedTuple

import numpy as np

from bayplan.framework import (
    SKIP,
    ActionType,
    ClusterEvent,
    CycleState,
    EventHint,
    Hint,
    NodeColumns,
    NodeInfo,
    Plugin,
    PodInfo,
    Remedy,
    Resource,
    StateKey,
    Status,
    StatusTable,
    Unschedulable,
    Verdicts,
)
from bayplan.framework.columns import OverlayColumns, Rows
from bayplan.framework.objects import CSINode, PersistentVolumeClaim, VolumeAttachment
from bayplan.plugins.intree.node_volume_limits.attached_volumes import (
    AttachedVolume,
    AttachedVolumes,
    attachable_volumes,
)
from bayplan.plugins.intree.node_volume_limits.limit_columns import VolumeLimitColumns, limits_of
from bayplan.plugins.intree.node_volume_limits.usage import VolumeUse
from bayplan.plugins.volumes.claims import uses_claim
from bayplan.plugins.volumes.csi_migration import inline_plugin

__all__ = ["NodeVolumeLimits"]

TOO_MANY = Unschedulable("node(s) exceed max volume count")


class WantedVolumes(NamedTuple):
    """The volumes that the pod would attach. In-tree volumes make them depend on whether the node has a CSINode."""

    with_csi_node: set[AttachedVolume] | Status
    without_csi_node: set[AttachedVolume] | Status


WANTED = StateKey[WantedVolumes]("NodeVolumeLimits/wanted")


class NodeVolumeLimits(Plugin):
    """Respect how many volumes each CSI driver can attach to a node.

    *What it does*: counts the volumes of the pods on a node and the node's attachments by driver, adds the pod's new
    ones, and compares with the numbers in the node's CSINode. In-tree volumes count for the driver that took them
    over. Drivers without a number have no limit.

    *Rejects when*: a driver would have more volumes on the node than it allows; a claim of the pod is missing.

    *Scores by*: nothing.

    *Retries on*: a new CSINode or a raised number in one, deleted pods with volumes, new claims of the pod, deleted
    attachments.

    *Arguments*: none.

    *Differs from kube-scheduler*: a running pod whose ephemeral claim belongs to another pod, or whose disk has a
    malformed id, is not counted; there, it fails every pod with volumes. The gate VolumeLimitScaling (alpha, off) is
    not offered.
    """

    default_weight = 0
    remedies = (Remedy.VOLUMES,)
    settles_by_kind = True
    reasons: ClassVar[tuple[str, ...]] = (
        *TOO_MANY.reasons,
        'looking up PVC <namespace>/<name>: persistentvolumeclaim "<name>" not found',
    )

    def setup(self) -> None:
        self._columns: VolumeLimitColumns | None = None
        self._use: VolumeUse

    def is_relevant(self, pod: PodInfo) -> bool:
        return bool(attachable_volumes(pod))

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Status | None:
        if not attachable_volumes(pod):
            return SKIP
        state.put(WANTED, self._wanted(pod))
        return None

    def filter_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Verdicts:
        wanted = self._known(state, pod)
        if isinstance(nodes, OverlayColumns) or nodes.table is not self.handle.cluster.nodes:
            return self._one_by_one(wanted, nodes)
        if not self._may_reject(wanted):
            return Verdicts.accept(len(nodes))
        columns, statuses = self._followed(), StatusTable()
        ids, has_csi_node = np.zeros(len(nodes), dtype=np.int32), columns.has_csi_node[nodes.rows]
        if isinstance(wanted.without_csi_node, Status):
            ids[~has_csi_node] = statuses.number(wanted.without_csi_node)
        if isinstance(wanted.with_csi_node, Status):
            ids[has_csi_node] = statuses.number(wanted.with_csi_node)
        elif wanted.with_csi_node:
            ids[self._over_limit(wanted.with_csi_node, columns, nodes.rows)] = statuses.number(TOO_MANY)
        return Verdicts(ids, statuses.status)

    def _may_reject(self, wanted: WantedVolumes) -> bool:
        """Whether a volume of the pod is invalid, or some node has a limit for one of the drivers."""
        if isinstance(wanted.with_csi_node, Status) or isinstance(wanted.without_csi_node, Status):
            return True
        columns = self._made_columns()
        columns.follow_limits()
        return columns.is_limited(driver for driver, _ in wanted.with_csi_node)

    def _one_by_one(self, wanted: WantedVolumes, nodes: NodeColumns) -> Verdicts:
        """Verdicts for a dry run, which has pods of its own."""
        statuses, ids = StatusTable(), np.zeros(len(nodes), dtype=np.int32)
        for position in np.flatnonzero(nodes.valid).tolist():
            ids[position] = statuses.number(self._check(wanted, nodes.info(position)))
        return Verdicts(ids, statuses.status)

    def _over_limit(self, new: set[AttachedVolume], columns: VolumeLimitColumns, rows: Rows) -> list[int]:
        """The positions whose node would have too many volumes; rows far from a limit are not counted."""
        wanted = Counter(driver for driver, _ in new)
        near = np.flatnonzero(columns.suspects(wanted)[rows])
        if not len(near):
            return []
        self._use.count(rows[near].tolist(), columns)
        is_over = np.zeros(len(near), dtype=np.bool_)
        for driver, count in wanted.items():
            is_over |= self._use.counts(driver)[rows[near]] + count > columns.limits(driver)[rows[near]]
        return [position for position in near[is_over].tolist() if self._is_over(new, columns, int(rows[position]))]

    def _is_over(self, new: set[AttachedVolume], columns: VolumeLimitColumns, row: int) -> bool:
        """As `_over_limit`, without the pod's volumes that are on the node already."""
        left = Counter(driver for driver, _ in new - self._use.of_pods(row))
        return any(
            self._use.counts(driver)[row] + count > columns.limits(driver)[row] for driver, count in left.items()
        )

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        return self._check(self._known(state, pod), node)

    def events_to_register(self) -> list[EventHint]:
        return [
            EventHint(ClusterEvent(Resource.CSI_NODE, ActionType.ADD)),
            EventHint(ClusterEvent(Resource.CSI_NODE, ActionType.UPDATE), _after_csi_node),
            EventHint(ClusterEvent(Resource.POD, ActionType.DELETE), _after_pod_deleted),
            EventHint(ClusterEvent(Resource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD), _after_claim),
            EventHint(ClusterEvent(Resource.VOLUME_ATTACHMENT, ActionType.DELETE), _after_detachment),
        ]

    def _known(self, state: CycleState, pod: PodInfo) -> WantedVolumes:
        known = state.get(WANTED)
        return known if known is not None else self._wanted(pod)

    def _wanted(self, pod: PodInfo) -> WantedVolumes:
        volumes = AttachedVolumes(self.handle.cluster.objects)
        return WantedVolumes(volumes.of_new_pod(pod, has_csi_node=True), volumes.of_new_pod(pod, has_csi_node=False))

    def _followed(self) -> VolumeLimitColumns:
        """The columns and the exact counts, both up to date."""
        columns = self._made_columns()
        self._use.follow(columns.follow())
        return columns

    def _made_columns(self) -> VolumeLimitColumns:
        if self._columns is None:
            self._columns, self._use = VolumeLimitColumns(self.handle.cluster), VolumeUse(self.handle.cluster)
        return self._columns

    def _check(self, wanted: WantedVolumes, node: NodeInfo) -> Status | None:
        """The answer for one node, whose pods may be those of a dry run."""
        objects = self.handle.cluster.objects
        csi_node = objects.get(CSINode, node.name)
        new = wanted.without_csi_node if csi_node is None else wanted.with_csi_node
        if isinstance(new, Status):
            return new
        limits = limits_of(csi_node)
        if not new or not limits:
            return None
        volumes = AttachedVolumes(objects)
        attachments = self._followed().attachments_of(node.name)
        return _verdict(new, volumes.of_node(node), volumes.of_attachments(attachments), limits)


def _verdict(
    new: set[AttachedVolume],
    used: set[AttachedVolume],
    attached: set[AttachedVolume],
    limits: dict[str, int],
) -> Status | None:
    counts = Counter(driver for driver, _ in used | attached)
    for driver, count in Counter(driver for driver, _ in new - used).items():
        if driver in limits and counts[driver] + count > limits[driver]:
            return TOO_MANY
    return None


def _after_csi_node(pod: PodInfo, old: CSINode, new: CSINode) -> Hint:
    before = limits_of(old)
    is_raised = any(count > before.get(driver, 0) for driver, count in limits_of(new).items())
    return Hint.QUEUE if is_raised else Hint.SKIP


def _after_pod_deleted(pod: PodInfo, old: PodInfo, new: PodInfo | None) -> Hint:
    was_placed = bool(old.node_name or old.nominated_node_name)
    return Hint.QUEUE if was_placed and attachable_volumes(old) else Hint.SKIP


def _after_claim(pod: PodInfo, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim) -> Hint:
    return Hint.QUEUE if uses_claim(pod, new) else Hint.SKIP


def _after_detachment(pod: PodInfo, old: VolumeAttachment, new: VolumeAttachment | None) -> Hint:
    for volume in pod.shape.volumes:
        if volume.persistent_volume_claim is not None:
            return Hint.QUEUE
        plugin = inline_plugin(volume)
        if plugin is not None and plugin.driver == old.spec.attacher:
            return Hint.QUEUE
    return Hint.SKIP
