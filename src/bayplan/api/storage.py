"""Volumes, claims, storage classes and the CSI objects about nodes."""

from __future__ import annotations

import msgspec

from bayplan.api.meta import KubeObject, LabelSelector, Struct
from bayplan.api.node import NodeSelector
from bayplan.api.pod import AwsElasticBlockStore, AzureDisk, AzureFile, GcePersistentDisk, NamedVolume, VsphereVolume
from bayplan.api.quantity import Quantity

__all__ = [
    "CSIDriver",
    "CSINode",
    "CSIStorageCapacity",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "StorageClass",
    "VolumeAttachment",
]


class ObjectReference(Struct):
    kind: str = ""
    api_version: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""


class CsiVolumeSource(Struct):
    driver: str = ""
    volume_handle: str = ""


class VolumeNodeAffinity(Struct):
    required: NodeSelector | None = None


class PersistentVolumeSpec(Struct):
    capacity: dict[str, Quantity] | None = None
    access_modes: list[str] | None = None
    claim_ref: ObjectReference | None = None
    storage_class_name: str = ""
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None
    node_affinity: VolumeNodeAffinity | None = None
    csi: CsiVolumeSource | None = None
    gce_persistent_disk: GcePersistentDisk | None = None
    aws_elastic_block_store: AwsElasticBlockStore | None = None
    azure_disk: AzureDisk | None = None
    azure_file: AzureFile | None = None
    cinder: NamedVolume | None = None
    portworx_volume: NamedVolume | None = None
    vsphere_volume: VsphereVolume | None = None


class PhaseStatus(Struct):
    phase: str = ""


class PersistentVolume(KubeObject):
    spec: PersistentVolumeSpec = msgspec.field(default_factory=PersistentVolumeSpec)
    status: PhaseStatus = msgspec.field(default_factory=PhaseStatus)


class ClaimResources(Struct):
    requests: dict[str, Quantity] | None = None


class PersistentVolumeClaimSpec(Struct):
    volume_name: str = ""
    storage_class_name: str | None = None
    access_modes: list[str] | None = None
    resources: ClaimResources | None = None
    selector: LabelSelector | None = None
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None


class PersistentVolumeClaim(KubeObject):
    spec: PersistentVolumeClaimSpec = msgspec.field(default_factory=PersistentVolumeClaimSpec)
    status: PhaseStatus = msgspec.field(default_factory=PhaseStatus)


class TopologyLabelRequirement(Struct):
    key: str = ""
    values: list[str] | None = None


class TopologyTerm(Struct):
    match_label_expressions: list[TopologyLabelRequirement] | None = None


class StorageClass(KubeObject):
    provisioner: str = ""
    volume_binding_mode: str | None = None
    allowed_topologies: list[TopologyTerm] | None = None


class VolumeLimits(Struct):
    count: int | None = None


class CSINodeDriver(Struct):
    name: str = ""
    node_id: str = msgspec.field(default="", name="nodeID")
    allocatable: VolumeLimits | None = None


class CSINodeSpec(Struct):
    drivers: list[CSINodeDriver] | None = None


class CSINode(KubeObject):
    spec: CSINodeSpec = msgspec.field(default_factory=CSINodeSpec)


class CSIDriverSpec(Struct):
    storage_capacity: bool | None = None


class CSIDriver(KubeObject):
    spec: CSIDriverSpec = msgspec.field(default_factory=CSIDriverSpec)


class CSIStorageCapacity(KubeObject):
    storage_class_name: str = ""
    capacity: Quantity | None = None
    maximum_volume_size: Quantity | None = None
    node_topology: LabelSelector | None = None


class AttachedVolume(Struct):
    persistent_volume_name: str | None = None


class VolumeAttachmentSpec(Struct):
    attacher: str = ""
    node_name: str = ""
    source: AttachedVolume = msgspec.field(default_factory=AttachedVolume)


class VolumeAttachment(KubeObject):
    spec: VolumeAttachmentSpec = msgspec.field(default_factory=VolumeAttachmentSpec)
