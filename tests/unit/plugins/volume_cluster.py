"""A small cluster with storage, and the questions that tests of the volume plugins ask of it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
from tests.unit.plugins.small_cluster import SmallCluster

from bayplan.api.meta import KubeObject
from bayplan.api.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from bayplan.cluster.overlay import OverlayColumns
from bayplan.framework import CycleState, Plugin, PodInfo, Status
from bayplan.framework.status import SUCCESS
from bayplan.observe.clock import VirtualClock

BOUND = {"pv.kubernetes.io/bind-completed": "yes"}
SELECTED = "volume.kubernetes.io/selected-node"
MIGRATED = "storage.alpha.kubernetes.io/migrated-plugins"


def volume(
    name: str,
    *,
    labels: dict[str, str] | None = None,
    affinity: list[dict[str, Any]] | None = None,
    size: str = "10Gi",
    phase: str = "Available",
    claim: str = "",
    storage_class: str = "fast",
    version: str = "1",
    **spec: Any,
) -> PersistentVolume:
    """`affinity` lists the terms, `claim` names the claim (with a uid after a colon) that the volume is bound to."""
    metadata = {"name": name, "labels": labels or {}, "resourceVersion": version}
    if "deletionTimestamp" in spec:
        metadata["deletionTimestamp"] = spec.pop("deletionTimestamp")
    spec = {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "storageClassName": storage_class} | spec
    if affinity is not None:
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": affinity}}
    if claim:
        claim_name, _, uid = claim.partition(":")
        spec["claimRef"] = {"namespace": "default", "name": claim_name, "uid": uid}
    return msgspec.convert({"metadata": metadata, "spec": spec, "status": {"phase": phase}}, PersistentVolume)


def claim(
    name: str,
    *,
    bound_to: str = "",
    size: str | None = "5Gi",
    storage_class: str | None = "fast",
    annotations: dict[str, str] | None = None,
    phase: str = "",
    owner: str = "",
    namespace: str = "default",
    version: str = "1",
    deleted: bool = False,
    **spec: Any,
) -> PersistentVolumeClaim:
    """`bound_to` names a volume and makes the claim fully bound; `owner` is the uid of the pod that it is for."""
    metadata: dict[str, Any] = {"name": name, "namespace": namespace, "uid": f"uid-{name}", "resourceVersion": version}
    metadata["annotations"] = (annotations or {}) | (BOUND if bound_to else {})
    if owner:
        metadata["ownerReferences"] = [{"kind": "Pod", "name": "p", "uid": owner, "controller": True}]
    if deleted:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    spec = {"accessModes": ["ReadWriteOnce"], "volumeName": bound_to} | spec
    if size is not None:
        spec["resources"] = {"requests": {"storage": size}}
    if storage_class is not None:
        spec["storageClassName"] = storage_class
    return msgspec.convert({"metadata": metadata, "spec": spec, "status": {"phase": phase}}, PersistentVolumeClaim)


def storage_class(
    name: str = "fast", *, mode: str | None = "WaitForFirstConsumer", provisioner: str = "csi.x", **parts: Any
) -> StorageClass:
    wire = {"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": mode} | parts
    return msgspec.convert(wire, StorageClass)


def csi_node(name: str, *, migrated: str = "", **limits: int | None) -> CSINode:
    """Limits by driver; underscores stand for dots, None for a driver without a number."""
    drivers = [
        {"name": driver.replace("_", "."), "nodeID": name}
        | ({} if count is None else {"allocatable": {"count": count}})
        for driver, count in limits.items()
    ]
    metadata = {"name": name, "annotations": {MIGRATED: migrated} if migrated else {}}
    return msgspec.convert({"metadata": metadata, "spec": {"drivers": drivers}}, CSINode)


def csi_driver(name: str = "csi.x", *, storage_capacity: bool | None = True) -> CSIDriver:
    return msgspec.convert({"metadata": {"name": name}, "spec": {"storageCapacity": storage_capacity}}, CSIDriver)


def capacity(name: str, *, storage_class: str = "fast", **parts: Any) -> CSIStorageCapacity:
    wire = {"metadata": {"name": name, "namespace": "csi"}, "storageClassName": storage_class} | parts
    return msgspec.convert(wire, CSIStorageCapacity)


def attachment(name: str, *, node: str, volume: str | None, attacher: str = "csi.x") -> VolumeAttachment:
    spec = {"nodeName": node, "attacher": attacher, "source": {"persistentVolumeName": volume}}
    return msgspec.convert({"metadata": {"name": name}, "spec": spec}, VolumeAttachment)


def uses(*claims: str) -> list[dict[str, Any]]:
    """Pod volumes that name claims."""
    return [{"name": f"v{i}", "persistentVolumeClaim": {"claimName": name}} for i, name in enumerate(claims)]


def terms(key: str, *values: str, operator: str = "In") -> list[dict[str, Any]]:
    """Node selector terms with one requirement."""
    return [{"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}]


class Api:
    """The API server's part: writes are recorded, and answered with a newer version."""

    def __init__(self, cluster: VolumeCluster) -> None:
        self._cluster = cluster
        self.changes: list[tuple[str, dict[str, Any]]] = []
        self.refuses = ""
        self.answer: KubeObject | None = None

    async def update(self, item: KubeObject, change: dict[str, Any], *, subresource: str = "") -> KubeObject:
        if self.refuses == item.name:
            raise RuntimeError(f"{item.name} was changed by somebody else")
        self.changes.append((item.name, change))
        if self.answer is not None:
            return self.answer
        newer = msgspec.structs.replace(item.metadata, resource_version="2")
        return msgspec.structs.replace(item, metadata=newer)


class VolumeCluster(SmallCluster):
    """A small cluster with storage objects, a clock that stands still and an API server to write to."""

    def __init__(self, *nodes: Any) -> None:
        super().__init__(*nodes)
        self.clock = VirtualClock()
        self.api = Api(self)

    def put(self, *items: KubeObject) -> VolumeCluster:
        for item in items:
            self.cache.put_object(item)
        return self

    def plugin(self, kind: type[Plugin], **args: Any) -> Any:
        handle = SimpleNamespace(cluster=self.state, clock=self.clock, api=self.api)
        return kind(msgspec.convert(args, kind.Args), handle)  # type: ignore[arg-type]

    def pod_with(self, *claims: str, name: str = "p", **spec: Any) -> PodInfo:
        return self.pod(name, volumes=uses(*claims) + spec.pop("volumes", []), **spec)


def started(plugin: Any, pod: PodInfo, cluster: SmallCluster) -> tuple[CycleState, Status | None]:
    """The state after PreFilter, and what PreFilter said."""
    state = CycleState()
    return state, plugin.pre_filter(state, pod, cluster.columns)


def reasons(plugin: Any, pod: PodInfo, cluster: SmallCluster) -> dict[str, tuple[str, ...]]:
    """For each rejected node its reasons, after checking that both forms and all views of the nodes agree."""
    statuses = judged(plugin, pod, cluster)
    return {name: status.reasons for name, status in statuses.items() if not status.is_success}


def judged(plugin: Any, pod: PodInfo, cluster: SmallCluster) -> dict[str, Status]:
    assert plugin.is_relevant(pod)
    state, status = started(plugin, pod, cluster)
    if status is not None and status.is_skip:
        return {}
    assert status is None, status
    nodes = cluster.columns
    some = nodes.take(np.flatnonzero(nodes.valid)[::2])
    for view in (nodes, some, OverlayColumns(nodes.table, some.rows)):
        column = plugin.filter_nodes(state, pod, view)
        assert len(column.ids) == len(view)
        for position in np.flatnonzero(view.valid).tolist():
            one = plugin.filter(state, pod, view.info(position)) or SUCCESS
            assert (column.status(int(column.ids[position])) if column.ids[position] else SUCCESS) == one
    return {info.name: plugin.filter(state, pod, info) or SUCCESS for info in nodes}
