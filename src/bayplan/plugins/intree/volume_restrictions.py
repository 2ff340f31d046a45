"""VolumeRestrictions: disks that only one pod of a node, or of the cluster, may use."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

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
    Unresolvable,
    Unschedulable,
    Verdicts,
)
from bayplan.framework.columns import BoolN, OverlayColumns
from bayplan.framework.objects import GcePersistentDisk, Iscsi, PersistentVolumeClaim, Rbd, Volume
from bayplan.plugins.volumes.claims import find_claim, names_claim, not_found
from bayplan.plugins.volumes.object_changes import RowFollower

__all__ = ["VolumeRestrictions"]

DISK_TAKEN = Unschedulable("node(s) had no available disk")
CLAIM_TAKEN = Unschedulable(
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)


class SinglePodClaims:
    """The pod's ReadWriteOncePod claims, and how many conflicting uses of them there are."""

    __slots__ = ("names", "uses")

    def __init__(self, names: frozenset[str], uses: int) -> None:
        self.names, self.uses = names, uses

    def clone(self) -> SinglePodClaims:
        return SinglePodClaims(self.names, self.uses)

    def uses_by(self, pod: PodInfo) -> int:
        """How often a pod names one of the claims. Namespaces are not compared, as kube-scheduler does not."""
        return sum(name in self.names for name in pod.shape.claim_names)


SINGLE_POD_CLAIMS = StateKey[SinglePodClaims]("VolumeRestrictions/claims")


class VolumeRestrictions(Plugin):
    """Keep pods apart that cannot share a disk.

    *What it does*: compares the GCE, EBS, iSCSI and RBD disks that the pod names directly with those of the pods on a
    node, and the pod's ReadWriteOncePod claims with the claims in use anywhere.

    *Rejects when*: a claim is missing (at PreFilter); a disk is in use on the node, which two readers may share except
    on EBS; a ReadWriteOncePod claim is in use by another pod, which holds for every node and ends by preemption.

    *Scores by*: nothing.

    *Retries on*: deleted pods of the namespace that share a disk or a claim, new nodes, a new claim of the pod.

    *Arguments*: none.

    *Differs from kube-scheduler*: nowhere.
    """

    default_weight = 0
    remedies = (Remedy.VOLUMES,)
    settles_by_kind = True
    reasons: ClassVar[tuple[str, ...]] = (
        *DISK_TAKEN.reasons,
        *CLAIM_TAKEN.reasons,
        'persistentvolumeclaim "<name>" not found',
    )

    def setup(self) -> None:
        self._disks_on_row: dict[int, tuple[Volume, ...]] = {}
        self._rows: RowFollower | None = None

    def is_relevant(self, pod: PodInfo) -> bool:
        return bool(pod.shape.claim_names) or bool(_disks_of(pod))

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Status | None:
        cluster = self.handle.cluster
        single_pod = set()
        for name in pod.shape.claim_names:
            claim = find_claim(cluster.objects, pod.namespace, name)
            if claim is None:
                return Unresolvable(not_found("persistentvolumeclaim", name))
            if "ReadWriteOncePod" in (claim.spec.access_modes or ()):
                single_pod.add(name)
        uses = sum(f"{pod.namespace}/{name}" in cluster.claims_in_use for name in single_pod)
        if not uses and not _disks_of(pod):
            return SKIP
        state.put(SINGLE_POD_CLAIMS, SinglePodClaims(frozenset(single_pod), uses))
        return None

    def add_pod(self, state: CycleState, pod: PodInfo, added: PodInfo, node: NodeInfo) -> Status | None:
        claims = state[SINGLE_POD_CLAIMS]
        claims.uses += claims.uses_by(added)
        return None

    def remove_pod(self, state: CycleState, pod: PodInfo, removed: PodInfo, node: NodeInfo) -> Status | None:
        claims = state[SINGLE_POD_CLAIMS]
        claims.uses -= claims.uses_by(removed)
        return None

    def filter_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Verdicts:
        ids = np.full(len(nodes), 2 if state[SINGLE_POD_CLAIMS].uses > 0 else 0, dtype=np.int32)
        disks = _disks_of(pod)
        if disks:
            ids[self._taken(disks, nodes)] = 1
        return Verdicts.of(ids, (DISK_TAKEN, DISK_TAKEN, CLAIM_TAKEN))

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        disks = _disks_of(pod)
        if disks and _any_conflict(disks, _disks_on(node)):
            return DISK_TAKEN
        return CLAIM_TAKEN if state[SINGLE_POD_CLAIMS].uses > 0 else None

    def events_to_register(self) -> list[EventHint]:
        return [
            EventHint(ClusterEvent(Resource.POD, ActionType.DELETE), _after_pod_deleted),
            EventHint(ClusterEvent(Resource.NODE, ActionType.ADD)),
            EventHint(ClusterEvent(Resource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD), _after_claim),
        ]

    def _taken(self, disks: tuple[Volume, ...], nodes: NodeColumns) -> BoolN:
        if isinstance(nodes, OverlayColumns) or nodes.table is not self.handle.cluster.nodes:
            return _taken_one_by_one(disks, nodes)
        self._follow_rows()
        taken = np.zeros(nodes.table.size, dtype=np.bool_)
        for row, present in self._disks_on_row.items():
            taken[row] = _any_conflict(disks, present)
        return taken if nodes.is_all else taken[nodes.rows]

    def _follow_rows(self) -> None:
        """Update the rows with pods that name disks directly; they are few, and the others need no check."""
        table = self.handle.cluster.nodes
        if self._rows is None:
            self._rows = RowFollower(table.use_changes, table)
        for row in self._rows.changed():
            node = table.infos[row]
            present = () if node is None else tuple(_disks_on(node))
            if present:
                self._disks_on_row[row] = present
            else:
                self._disks_on_row.pop(row, None)


def _taken_one_by_one(disks: tuple[Volume, ...], nodes: NodeColumns) -> BoolN:
    taken = np.zeros(len(nodes), dtype=np.bool_)
    for position in np.flatnonzero(nodes.valid).tolist():
        taken[position] = _any_conflict(disks, _disks_on(nodes.info(position)))
    return taken


def _disks_of(pod: PodInfo) -> tuple[Volume, ...]:
    """The disks that a pod names directly and that cannot be shared freely."""
    return pod.shape.note(VolumeRestrictions, lambda: tuple(v for v in pod.shape.volumes if _is_restricted(v)))


def _is_restricted(volume: Volume) -> bool:
    sources = (volume.gce_persistent_disk, volume.aws_elastic_block_store, volume.iscsi, volume.rbd)
    return any(source is not None for source in sources)


def _disks_on(node: NodeInfo) -> Iterable[Volume]:
    return (disk for pod in node.pods.values() for disk in _disks_of(pod))


def _any_conflict(wanted: Iterable[Volume], present: Iterable[Volume]) -> bool:
    others = tuple(present)
    return any(_conflict(volume, other) for volume in wanted for other in others)


def _conflict(volume: Volume, other: Volume) -> bool:
    return (
        _same_gce_disk(volume.gce_persistent_disk, other.gce_persistent_disk)
        or _same_ebs_disk(volume, other)
        or _same_iscsi_disk(volume.iscsi, other.iscsi)
        or _same_rbd_disk(volume.rbd, other.rbd)
    )


def _same_gce_disk(one: GcePersistentDisk | None, other: GcePersistentDisk | None) -> bool:
    if one is None or other is None or one.pd_name != other.pd_name:
        return False
    return not (one.read_only and other.read_only)


def _same_ebs_disk(one: Volume, other: Volume) -> bool:
    disk, there = one.aws_elastic_block_store, other.aws_elastic_block_store
    return disk is not None and there is not None and disk.volume_id == there.volume_id


def _same_iscsi_disk(one: Iscsi | None, other: Iscsi | None) -> bool:
    if one is None or other is None or one.iqn != other.iqn:
        return False
    return not (one.read_only and other.read_only)


def _same_rbd_disk(one: Rbd | None, other: Rbd | None) -> bool:
    if one is None or other is None or (one.pool, one.image) != (other.pool, other.image):
        return False
    shares_monitor = not set(one.monitors or ()).isdisjoint(other.monitors or ())
    return shares_monitor and not (one.read_only and other.read_only)


def _after_pod_deleted(pod: PodInfo, old: PodInfo, new: PodInfo | None) -> Hint:
    if old.namespace != pod.namespace:
        return Hint.SKIP
    shares_claim = not set(pod.shape.claim_names).isdisjoint(old.shape.claim_names)
    return Hint.QUEUE if shares_claim or _any_conflict(_disks_of(pod), _disks_of(old)) else Hint.SKIP


def _after_claim(pod: PodInfo, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim) -> Hint:
    return Hint.QUEUE if names_claim(pod, new) else Hint.SKIP
