"""Whether a volume can be provisioned for a claim: by a provisioner, in an allowed topology, with enough capacity."""

from __future__ import annotations

from enum import Enum

from bayplan.framework import NodeInfo
from bayplan.framework.columns import BoolN, ClusterState
from bayplan.framework.objects import CSIDriver, CSIStorageCapacity, PersistentVolumeClaim, Quantity, StorageClass
from bayplan.plugins.intree.volume_binding.matching import ClaimError, offered_bytes, requested_bytes
from bayplan.plugins.intree.volume_binding.places import (
    NOWHERE,
    PlaceMasks,
    Places,
    SizedPlaces,
    is_reachable,
    places_of_selector,
    places_of_topologies,
)
from bayplan.plugins.volumes.claims import claim_class
from bayplan.plugins.volumes.object_changes import ObjectFollower

__all__ = ["Obstacle", "VolumeProvisioning", "capacity_limit"]

_NO_PROVISIONER = "kubernetes.io/no-provisioner"


class Obstacle(Enum):
    """Why a volume cannot be provisioned for a claim on a node."""

    NO_VOLUME = "no provisioner, or not allowed in the node's topology"
    NO_SPACE = "not enough free storage that the node can reach"


def capacity_limit(capacity: CSIStorageCapacity) -> Quantity | None:
    """The largest volume that a capacity has room for; None when it does not say."""
    return capacity.maximum_volume_size if capacity.maximum_volume_size is not None else capacity.capacity


class VolumeProvisioning:
    """Keeps the capacities by class from cycle to cycle."""

    def __init__(self, cluster: ClusterState, masks: PlaceMasks) -> None:
        self._cluster, self._masks = cluster, masks
        self._changes = ObjectFollower(cluster.objects, CSIStorageCapacity)
        self._capacities: dict[str, SizedPlaces] = {}

    def obstacle(self, claim: PersistentVolumeClaim, node: NodeInfo) -> Obstacle | None:
        """The obstacle on a node, if there is one. Raises ClaimError."""
        storage_class = self._class_of(claim)
        if not is_reachable(_topology_places(storage_class), node.labels):
            return Obstacle.NO_VOLUME
        size = self._size_to_check(claim, storage_class)
        if size is None:
            return None
        capacities = self._capacities_of(storage_class.name)
        return None if len(capacities.reachable_from(node.row, capacities.at_least(size))) else Obstacle.NO_SPACE

    def allowed_rows(self, claim: PersistentVolumeClaim) -> BoolN | None:
        """The rows on which the class allows a volume; None for all. Raises ClaimError."""
        places = _topology_places(self._class_of(claim))
        return None if places is None else self._masks.rows(places)

    def rows_with_space(self, claim: PersistentVolumeClaim) -> BoolN | None:
        """The rows with enough capacity for the claim; None where capacity is not tracked."""
        storage_class = self._class_of(claim)
        size = self._size_to_check(claim, storage_class)
        if size is None:
            return None
        capacities = self._capacities_of(storage_class.name)
        return capacities.reach(capacities.at_least(size))

    def _class_of(self, claim: PersistentVolumeClaim) -> StorageClass:
        name = claim_class(claim)
        if not name:
            raise ClaimError(f'no class for claim "{claim.key}"')
        storage_class = self._cluster.objects.get(StorageClass, name)
        if storage_class is None:
            raise ClaimError(f'failed to find storage class "{name}"')
        return storage_class

    def _size_to_check(self, claim: PersistentVolumeClaim, storage_class: StorageClass) -> int | None:
        driver = self._cluster.objects.get(CSIDriver, storage_class.provisioner)
        return requested_bytes(claim) if driver is not None and driver.spec.storage_capacity else None

    def _capacities_of(self, class_name: str) -> SizedPlaces:
        for old, new in self._changes.changes():
            if old is not None:
                self._places_of(old.storage_class_name).remove(old.key)
            if new is not None:
                self._put(new)
        return self._places_of(class_name)

    def _put(self, capacity: CSIStorageCapacity) -> None:
        limit, places = capacity_limit(capacity), places_of_selector(capacity.node_topology)
        if limit is not None:
            self._places_of(capacity.storage_class_name).put(capacity.key, offered_bytes(limit), places)

    def _places_of(self, class_name: str) -> SizedPlaces:
        places = self._capacities.get(class_name)
        if places is None:
            places = self._capacities[class_name] = SizedPlaces(self._cluster.nodes, self._masks)
        return places


def _topology_places(storage_class: StorageClass) -> Places:
    if storage_class.provisioner in ("", _NO_PROVISIONER):
        return NOWHERE
    return places_of_topologies(storage_class.allowed_topologies)
