"""The table of kinds: the API path of each and the struct that it decodes into."""

from __future__ import annotations

from typing import NamedTuple

from bayplan.api.devices import DeviceClass, ResourceClaim, ResourceSlice
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

__all__ = ["KINDS", "Kind", "kind_named", "kind_of"]


class Kind(NamedTuple):
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


KINDS: tuple[Kind, ...] = (
    Kind(Node, "", "v1", "nodes", False),
    Kind(Namespace, "", "v1", "namespaces", False),
    Kind(Pod, "", "v1", "pods", True),
    Kind(Service, "", "v1", "services", True),
    Kind(ReplicationController, "", "v1", "replicationcontrollers", True),
    Kind(PersistentVolume, "", "v1", "persistentvolumes", False),
    Kind(PersistentVolumeClaim, "", "v1", "persistentvolumeclaims", True),
    Kind(ReplicaSet, "apps", "v1", "replicasets", True),
    Kind(StatefulSet, "apps", "v1", "statefulsets", True),
    Kind(PodDisruptionBudget, "policy", "v1", "poddisruptionbudgets", True),
    Kind(PriorityClass, "scheduling.k8s.io", "v1", "priorityclasses", False),
    Kind(StorageClass, "storage.k8s.io", "v1", "storageclasses", False),
    Kind(CSINode, "storage.k8s.io", "v1", "csinodes", False),
    Kind(CSIDriver, "storage.k8s.io", "v1", "csidrivers", False),
    Kind(CSIStorageCapacity, "storage.k8s.io", "v1", "csistoragecapacities", True),
    Kind(VolumeAttachment, "storage.k8s.io", "v1", "volumeattachments", False),
    Kind(ResourceClaim, "resource.k8s.io", "v1", "resourceclaims", True),
    Kind(ResourceSlice, "resource.k8s.io", "v1", "resourceslices", False),
    Kind(DeviceClass, "resource.k8s.io", "v1", "deviceclasses", False),
)

_BY_NAME = {(kind.api_version, kind.name): kind for kind in KINDS}
_BY_TYPE = {kind.type: kind for kind in KINDS}


def kind_named(api_version: str, name: str) -> Kind | None:
    return _BY_NAME.get((api_version, name))


def kind_of(type_: type[KubeObject]) -> Kind:
    return _BY_TYPE[type_]
