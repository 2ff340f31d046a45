"""VolumeZone: place a pod in the zones and regions of its bound volumes."""

from __future__ import annotations

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
    Unresolvable,
    Verdicts,
)
from bayplan.framework.columns import ABSENT, BoolN, NodeTable
from bayplan.framework.objects import PersistentVolume, PersistentVolumeClaim, StorageClass
from bayplan.plugins.volumes.claims import (
    WAIT_FOR_FIRST_CONSUMER,
    claim_class,
    find_claim,
    names_claim,
    not_found,
)

__all__ = ["VolumeZone"]

_ZONE, _REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
_BETA_ZONE, _BETA_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"
_LABELS = (_BETA_ZONE, _BETA_REGION, _ZONE, _REGION)
_MOST_MASKS = 64
_SUCCESSOR = {_BETA_ZONE: _ZONE, _BETA_REGION: _REGION}

NO_ZONE = Unresolvable("node(s) had no available volume zone")


class Topology(NamedTuple):
    """A label and the values of it that a node may have to reach a volume."""

    key: str
    values: frozenset[str]


TOPOLOGIES = StateKey[tuple[Topology, ...]]("VolumeZone/topologies")


class VolumeZone(Plugin):
    """Keep pods in the zones and regions of their volumes.

    *What it does*: reads the zone and region labels of the PersistentVolumes that the pod's claims are bound to, and
    passes only nodes with the same labels. Ephemeral volumes are not considered.

    *Rejects when*: a claim, its volume or its class is missing, an immediate claim is not bound (at PreFilter); a node
    has a zone or region label of its own that differs from a volume's. A node without any such label passes.

    *Scores by*: nothing.

    *Retries on*: a new class with WaitForFirstConsumer, new nodes and node labels, claims of the pod, new volumes and
    changed zone labels of volumes.

    *Arguments*: none.

    *Differs from kube-scheduler*: nowhere.
    """

    default_weight = 0
    remedies = (Remedy.VOLUMES,)
    filter_reads_counts_only: ClassVar[bool] = True
    settles_by_kind = True
    reasons: ClassVar[tuple[str, ...]] = (
        "node(s) had no available volume zone",
        "PersistentVolumeClaim had no name",
        "PersistentVolumeClaim had no pv name and storageClass name",
        "PersistentVolume had no name",
        'VolumeBindingMode not set for StorageClass "<name>"',
        'persistentvolumeclaim "<name>" not found',
        'persistentvolume "<name>" not found',
        'storageclass.storage.k8s.io "<name>" not found',
    )

    def setup(self) -> None:
        self._wrong: dict[tuple[Topology, ...], BoolN] = {}
        self._as_of = (0, 0, 0)

    def is_relevant(self, pod: PodInfo) -> bool:
        return bool(pod.shape.claim_names)

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Status | None:
        found = self._topologies(pod)
        if isinstance(found, Status):
            return found
        if not found:
            return SKIP
        state.put(TOPOLOGIES, found)
        return None

    def filter_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Verdicts:
        found = self._known(state, pod)
        if isinstance(found, Status):
            return Verdicts.reject(np.ones(len(nodes), dtype=np.bool_), found)
        return Verdicts.reject(nodes.cut(self._wrong_rows(found, nodes.table)), NO_ZONE)

    def _wrong_rows(self, topologies: tuple[Topology, ...], table: NodeTable) -> BoolN:
        """A mask of the nodes in another zone than the volumes, kept per combination of zones, as there are few."""
        as_of = (id(table), table.size, table.node_changes.position)
        if self._as_of != as_of or len(self._wrong) >= _MOST_MASKS:
            self._as_of, self._wrong = as_of, {}
        wrong = self._wrong.get(topologies)
        if wrong is None:
            nodes = NodeColumns(table)
            wrong = np.zeros(len(nodes), dtype=np.bool_)
            for topology in topologies:
                wrong |= ~_admits_column(topology, nodes)
            wrong &= _is_placed_column(nodes)
            self._wrong[topologies] = wrong
        return wrong

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        found = self._known(state, pod)
        if isinstance(found, Status):
            return found
        labels = node.labels
        if not any(key in labels for key in _LABELS):
            return None
        return None if all(_admits(topology, labels) for topology in found) else NO_ZONE

    def events_to_register(self) -> list[EventHint]:
        add, update = ActionType.ADD, ActionType.UPDATE
        return [
            EventHint(ClusterEvent(Resource.STORAGE_CLASS, add), _after_class),
            EventHint(ClusterEvent(Resource.NODE, add | ActionType.UPDATE_NODE_LABEL)),
            EventHint(ClusterEvent(Resource.PERSISTENT_VOLUME_CLAIM, add | update), _after_claim),
            EventHint(ClusterEvent(Resource.PERSISTENT_VOLUME, add | update), _after_volume),
        ]

    def _known(self, state: CycleState, pod: PodInfo) -> tuple[Topology, ...] | Status:
        known = state.get(TOPOLOGIES)
        return known if known is not None else self._topologies(pod)

    def _topologies(self, pod: PodInfo) -> tuple[Topology, ...] | Status:
        """What the bound volumes of the pod require, or why that is unknown."""
        found: list[Topology] = []
        for name in pod.shape.claim_names:
            volume = self._volume_of_claim(pod.namespace, name)
            if isinstance(volume, Status):
                return volume
            if volume is not None:
                found += _volume_topologies(volume)
        return tuple(found)

    def _volume_of_claim(self, namespace: str, name: str) -> PersistentVolume | Status | None:
        """The volume, None while the claim waits for its first consumer, or a rejection."""
        if not name:
            return Unresolvable("PersistentVolumeClaim had no name")
        objects = self.handle.cluster.objects
        claim = find_claim(objects, namespace, name)
        if claim is None:
            return Unresolvable(not_found("persistentvolumeclaim", name))
        if not claim.spec.volume_name:
            return self._unbound(claim)
        volume = objects.get(PersistentVolume, claim.spec.volume_name)
        if volume is None:
            return Unresolvable(not_found("persistentvolume", claim.spec.volume_name))
        return volume

    def _unbound(self, claim: PersistentVolumeClaim) -> Status | None:
        name = claim_class(claim)
        if not name:
            return Unresolvable("PersistentVolumeClaim had no pv name and storageClass name")
        storage_class = self.handle.cluster.objects.get(StorageClass, name)
        if storage_class is None:
            return Unresolvable(not_found("storageclass.storage.k8s.io", name))
        if storage_class.volume_binding_mode is None:
            return Unresolvable(f'VolumeBindingMode not set for StorageClass "{name}"')
        if storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER:
            return None
        return Unresolvable("PersistentVolume had no name")


def _volume_topologies(volume: PersistentVolume) -> list[Topology]:
    labels, found = volume.labels, []
    for key in _LABELS:
        if key in labels:
            values = frozenset(part.strip() for part in labels[key].split("__"))
            # A value list with an empty part is invalid; such a label is ignored.
            if "" not in values:
                found.append(Topology(key, values))
    return found


def _admits(topology: Topology, labels: dict[str, str]) -> bool:
    value = labels.get(topology.key)
    if value is None:
        value = labels.get(_SUCCESSOR.get(topology.key, topology.key))
    return value in topology.values


def _admits_column(topology: Topology, nodes: NodeColumns) -> BoolN:
    admitted = _value_column(topology.key, topology.values, nodes)
    successor = _SUCCESSOR.get(topology.key)
    if successor is not None:
        lacking = nodes.label_values(topology.key) == ABSENT
        admitted |= lacking & _value_column(successor, topology.values, nodes)
    return admitted


def _value_column(key: str, values: frozenset[str], nodes: NodeColumns) -> BoolN:
    """Where the label has one of the values."""
    column, mask = nodes.label_values(key), np.zeros(len(nodes), dtype=np.bool_)
    for value in values:
        number = nodes.label(key).id_of(value)
        if number != ABSENT:
            mask |= column == number
    return mask


def _is_placed_column(nodes: NodeColumns) -> BoolN:
    """Where a node has any zone or region label at all."""
    mask = np.zeros(len(nodes), dtype=np.bool_)
    for key in _LABELS:
        mask |= nodes.label_values(key) != ABSENT
    return mask


def _after_class(pod: PodInfo, old: StorageClass | None, new: StorageClass) -> Hint:
    return Hint.QUEUE if new.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER else Hint.SKIP


def _after_claim(pod: PodInfo, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim) -> Hint:
    return Hint.QUEUE if names_claim(pod, new) else Hint.SKIP


def _after_volume(pod: PodInfo, old: PersistentVolume | None, new: PersistentVolume) -> Hint:
    is_news = old is None or _volume_topologies(old) != _volume_topologies(new)
    return Hint.QUEUE if is_news else Hint.SKIP
