"""The CSI volumes that a pod attaches to its node, and those that a node has attached already.

A volume is identified by driver and handle. A claim that is not bound yet counts for the driver that will provision it,
under a handle made of the claim's name. Limits are not considered here.
"""

from __future__ import annotations

from collections.abc import Iterable

from bayplan.framework import Error, NodeInfo, PodInfo, Status, Unresolvable
from bayplan.framework.columns import Objects
from bayplan.framework.objects import PersistentVolume, PersistentVolumeClaim, StorageClass, Volume, VolumeAttachment
from bayplan.plugins.volumes.claims import claim_class, find_claim, is_for_pod, not_found, wrong_owner
from bayplan.plugins.volumes.csi_migration import (
    TranslationError,
    driver_of_provisioner,
    handle_of_inline,
    handle_of_volume,
    inline_plugin,
    is_migratable_provisioner,
    plugin_of_volume,
)

__all__ = ["AttachedVolume", "AttachedVolumes", "attachable_volumes"]

AttachedVolume = tuple[str, str]
"""Driver and handle."""

_UNBOUND = "\0unbound"
"""Prefix of the handles of unbound claims; no handle of a real volume starts with it."""


def attachable_volumes(pod: PodInfo) -> tuple[Volume, ...]:
    """The volumes of a pod that may count for the limit of some driver."""
    return pod.shape.note(AttachedVolumes, lambda: tuple(v for v in pod.shape.volumes if _may_attach(v)))


def _may_attach(volume: Volume) -> bool:
    has_claim = volume.persistent_volume_claim is not None or volume.ephemeral is not None
    return has_claim or inline_plugin(volume) is not None


class AttachedVolumes:
    """Attached volumes, from the current claims, volumes and classes of the cluster."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    def of_new_pod(self, pod: PodInfo, *, has_csi_node: bool) -> set[AttachedVolume] | Status:
        """What the pod would attach to a node with, or without, a CSINode; or why that is unknown."""
        found: set[AttachedVolume] = set()
        for volume in attachable_volumes(pod):
            attached = self._attached(pod, volume, has_csi_node=has_csi_node)
            if isinstance(attached, Status):
                return attached
            if attached is not None:
                found.add(attached)
        return found

    def of_node(self, node: NodeInfo) -> set[AttachedVolume]:
        """What the pods on a node with a CSINode attach; volumes that cannot be identified are left out."""
        attached = (
            self._attached(pod, volume, has_csi_node=True)
            for pod in node.pods.values()
            for volume in attachable_volumes(pod)
        )
        return {volume for volume in attached if volume is not None and not isinstance(volume, Status)}

    def of_attachments(self, attachments: Iterable[VolumeAttachment]) -> set[AttachedVolume]:
        """The CSI volumes that attachment objects refer to."""
        found = set()
        for attachment in attachments:
            name = attachment.spec.source.persistent_volume_name
            volume = self._objects.get(PersistentVolume, name) if attachment.spec.attacher and name else None
            if volume is not None and volume.spec.csi is not None:
                found.add((attachment.spec.attacher, volume.spec.csi.volume_handle))
        return found

    def _attached(self, pod: PodInfo, volume: Volume, *, has_csi_node: bool) -> AttachedVolume | Status | None:
        if volume.persistent_volume_claim is None and volume.ephemeral is None:
            return _inline(volume) if has_csi_node else None
        return self._claimed(pod, volume, has_csi_node=has_csi_node)

    def _claimed(self, pod: PodInfo, volume: Volume, *, has_csi_node: bool) -> AttachedVolume | Status | None:
        named = volume.persistent_volume_claim
        name = named.claim_name if named is not None else f"{pod.name}-{volume.name}"
        if not name:
            return Error("PersistentVolumeClaim had no name")
        claim = find_claim(self._objects, pod.namespace, name)
        if claim is None:
            return Unresolvable(f"looking up PVC {pod.namespace}/{name}: {not_found('persistentvolumeclaim', name)}")
        if named is None and not is_for_pod(pod, claim):
            return Error(wrong_owner(pod, claim))
        return self._of_claim(claim, has_csi_node=has_csi_node)

    def _of_claim(self, claim: PersistentVolumeClaim, *, has_csi_node: bool) -> AttachedVolume | None:
        name = claim.spec.volume_name
        volume = self._objects.get(PersistentVolume, name) if name else None
        if volume is None:
            return self._provisioned(claim, has_csi_node=has_csi_node)
        csi = volume.spec.csi
        if csi is not None:
            return (csi.driver, csi.volume_handle) if csi.driver and csi.volume_handle else None
        return _migrated(volume) if has_csi_node else None

    def _provisioned(self, claim: PersistentVolumeClaim, *, has_csi_node: bool) -> AttachedVolume | None:
        """A claim without a volume counts for the driver of its class."""
        class_name = claim_class(claim)
        storage_class = self._objects.get(StorageClass, class_name) if class_name else None
        if storage_class is None:
            return None
        driver: str | None = storage_class.provisioner
        if is_migratable_provisioner(storage_class.provisioner):
            driver = driver_of_provisioner(storage_class.provisioner) if has_csi_node else None
        return (driver, f"{_UNBOUND}-{claim.namespace}/{claim.name}") if driver else None


def _inline(volume: Volume) -> AttachedVolume | Status | None:
    plugin = inline_plugin(volume)
    if plugin is None or not plugin.is_followed:
        return None
    try:
        return plugin.driver, handle_of_inline(volume, plugin)
    except TranslationError as error:
        return Error(f"converting volume({volume.name}) from inline to csi: {error}", exception=error)


def _migrated(volume: PersistentVolume) -> AttachedVolume | None:
    plugin = plugin_of_volume(volume)
    if plugin is None or not plugin.is_followed:
        return None
    try:
        handle = handle_of_volume(volume, plugin)
    except TranslationError:
        return None
    return (plugin.driver, handle) if handle else None
