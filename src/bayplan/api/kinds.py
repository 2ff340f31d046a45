"""The table of kinds: the API path of each and the struct that it decodes into."""

from __future__ import annotations

from typing import NamedTuple

from bayplan.api.devices import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from bayplan.api.meta import KubeObject
from bayplan.api.node import Node
from bayplan.api.pod import Pod
from bayplan.api.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from bayplan.api.workload import (
    Namespace,
    PodDisruptionBudget,
    PriorityClass,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)

__all__ = ["DEVICE_TAINT_RULES", "KINDS", "ObjectKind", "kind_named", "kind_of"]


class ObjectKind(NamedTuple):
    type: type[KubeObject]
    group: str
    version: str
    plural: str
    is_namespaced: bool

    @property
    def name(self) -> str:
        return self.type.__name__

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def path(self) -> str:
        """The collection over all namespaces."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        return f"{root}/{self.plural}"


KINDS: tuple[ObjectKind, ...] = (
    ObjectKind(Node, "", "v1", "nodes", False),
    ObjectKind(Namespace, "", "v1", "namespaces", False),
    ObjectKind(Pod, "", "v1", "pods", True),
    ObjectKind(Service, "", "v1", "services", True),
    ObjectKind(ReplicationController, "", "v1", "replicationcontrollers", True),
    ObjectKind(PersistentVolume, "", "v1", "persistentvolumes", False),
    ObjectKind(PersistentVolumeClaim, "", "v1", "persistentvolumeclaims", True),
    ObjectKind(ReplicaSet, "apps", "v1", "replicasets", True),
    ObjectKind(StatefulSet, "apps", "v1", "statefulsets", True),
    ObjectKind(PodDisruptionBudget, "policy", "v1", "poddisruptionbudgets", True),
    ObjectKind(PriorityClass, "scheduling.k8s.io", "v1", "priorityclasses", False),
    ObjectKind(StorageClass, "storage.k8s.io", "v1", "storageclasses", False),
    ObjectKind(CSINode, "storage.k8s.io", "v1", "csinodes", False),
    ObjectKind(CSIDriver, "storage.k8s.io", "v1", "csidrivers", False),
    ObjectKind(CSIStorageCapacity, "storage.k8s.io", "v1", "csistoragecapacities", True),
    ObjectKind(VolumeAttachment, "storage.k8s.io", "v1", "volumeattachments", False),
    ObjectKind(ResourceClaim, "resource.k8s.io", "v1", "resourceclaims", True),
    ObjectKind(ResourceSlice, "resource.k8s.io", "v1", "resourceslices", False),
    ObjectKind(DeviceClass, "resource.k8s.io", "v1", "deviceclasses", False),
)

DEVICE_TAINT_RULES = ObjectKind(DeviceTaintRule, "resource.k8s.io", "v1beta2", "devicetaintrules", False)
"""Read only where a setting asks for it: it is off by default in Kubernetes 1.36."""

_BY_NAME = {(kind.api_version, kind.name): kind for kind in (*KINDS, DEVICE_TAINT_RULES)}
_BY_TYPE = {kind.type: kind for kind in (*KINDS, DEVICE_TAINT_RULES)}


def kind_named(api_version: str, name: str) -> ObjectKind | None:
    return _BY_NAME.get((api_version, name))


def kind_of(type_: type[KubeObject]) -> ObjectKind:
    return _BY_TYPE[type_]
