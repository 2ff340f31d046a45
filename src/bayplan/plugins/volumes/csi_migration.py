"""In-tree volumes in the terms of the CSI drivers that replaced them.

A volume that names a cloud disk directly is served by a CSI driver. It counts for the limits of that driver, and the
topology of its PersistentVolume uses the driver's label. Whether a node has migrated is recorded on its CSINode. Only
what decisions need is translated: driver, handle, node affinity.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from bayplan.framework.objects import (
    CSINode,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PersistentVolume,
    Volume,
)

__all__ = [
    "MIGRATED_PLUGINS",
    "InTreePlugin",
    "TranslationError",
    "driver_of_provisioner",
    "handle_of_inline",
    "handle_of_volume",
    "inline_plugin",
    "is_migratable_provisioner",
    "migrated_plugins",
    "plugin_of_volume",
    "translated_affinity",
]

MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"
_ZONE, _REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
_BETA_ZONE, _BETA_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"
_MANY_ZONES = "__"
_UNSPECIFIED = "UNSPECIFIED"


class TranslationError(ValueError):
    """A volume whose in-tree form cannot be parsed."""


class InTreePlugin(NamedTuple):
    name: str
    driver: str
    source: str
    """The field of a volume, and of a PersistentVolume's spec, for this plugin."""
    zone_label: str
    """The driver's own zone label; empty where the affinity of volumes is not translated."""
    is_followed: bool
    """Whether kube-scheduler treats its volumes as CSI volumes at all; it never does for Azure File and vSphere."""


_EBS = InTreePlugin(
    "kubernetes.io/aws-ebs", "ebs.csi.aws.com", "aws_elastic_block_store", "topology.ebs.csi.aws.com/zone", True
)
_GCE = InTreePlugin(
    "kubernetes.io/gce-pd", "pd.csi.storage.gke.io", "gce_persistent_disk", "topology.gke.io/zone", True
)
_CINDER = InTreePlugin(
    "kubernetes.io/cinder", "cinder.csi.openstack.org", "cinder", "topology.cinder.csi.openstack.org/zone", True
)
_PLUGINS = (
    _EBS,
    _GCE,
    InTreePlugin("kubernetes.io/azure-disk", "disk.csi.azure.com", "azure_disk", "", True),
    InTreePlugin("kubernetes.io/azure-file", "file.csi.azure.com", "azure_file", "", False),
    _CINDER,
    InTreePlugin("kubernetes.io/portworx-volume", "pxd.portworx.com", "portworx_volume", "", True),
    InTreePlugin("kubernetes.io/vsphere-volume", "csi.vsphere.vmware.com", "vsphere_volume", "", False),
)
_BY_NAME = {plugin.name: plugin for plugin in _PLUGINS}


def inline_plugin(volume: Volume) -> InTreePlugin | None:
    """The migrated in-tree plugin of a volume that a pod names directly, if any."""
    for plugin in _PLUGINS:
        if getattr(volume, plugin.source) is not None:
            return plugin
    return None


def plugin_of_volume(volume: PersistentVolume) -> InTreePlugin | None:
    for plugin in _PLUGINS:
        if getattr(volume.spec, plugin.source) is not None:
            return plugin
    return None


def is_migratable_provisioner(provisioner: str) -> bool:
    return provisioner in _BY_NAME


def driver_of_provisioner(provisioner: str) -> str | None:
    """The driver that replaces an in-tree provisioner; None if it was not migrated."""
    plugin = _BY_NAME.get(provisioner)
    return plugin.driver if plugin is not None and plugin.is_followed else None


def migrated_plugins(node: CSINode | None) -> frozenset[str]:
    """The in-tree plugins that a node has migrated, by its annotation."""
    if node is None:
        return frozenset()
    listed = node.annotations.get(MIGRATED_PLUGINS, "")
    return frozenset(listed.split(",")) if listed else frozenset()


def handle_of_inline(volume: Volume, plugin: InTreePlugin) -> str:
    """The CSI handle of a volume that a pod names directly. Raises TranslationError."""
    if volume.gce_persistent_disk is not None:
        return f"projects/{_UNSPECIFIED}/zones/{_UNSPECIFIED}/disks/{volume.gce_persistent_disk.pd_name}"
    return _plain_handle(volume, plugin)


def handle_of_volume(volume: PersistentVolume, plugin: InTreePlugin) -> str:
    """The CSI handle of an in-tree PersistentVolume. Raises TranslationError."""
    if volume.spec.gce_persistent_disk is not None:
        return f"projects/{_UNSPECIFIED}/{_gce_place(volume)}/disks/{volume.spec.gce_persistent_disk.pd_name}"
    return _plain_handle(volume.spec, plugin)


def _plain_handle(holder: object, plugin: InTreePlugin) -> str:
    source = getattr(holder, plugin.source)
    if plugin is _EBS:
        return _ebs_id(source.volume_id)
    for field in ("disk_uri", "volume_id", "volume_path", "share_name"):
        handle = getattr(source, field, None)
        if handle is not None:
            return str(handle)
    raise TranslationError(f"`{plugin.name}` names no volume")


def _ebs_id(text: str) -> str:
    """`vol-1`, `aws:///vol-1` and `aws://zone/vol-1` all mean `vol-1`."""
    if not text.startswith("aws://"):
        return text
    volume_id = text[len("aws://") :].partition("/")[2].strip("/")
    if not volume_id.startswith("vol-") or "/" in volume_id:
        raise TranslationError(
            f"failed to translate Kubernetes ID to EBS Volume ID Invalid format for AWS volume ({text})"
        )
    return volume_id


def _gce_place(volume: PersistentVolume) -> str:
    zones = (volume.labels.get(_BETA_ZONE) or volume.labels.get(_ZONE, "")).split(_MANY_ZONES)
    if len(zones) > 1:
        return f"regions/{_gce_region(zones)}"
    return f"zones/{zones[0] or _UNSPECIFIED}"


def _gce_region(zones: list[str]) -> str:
    regions = set()
    for zone in zones:
        parts = zone.split("-")
        if len(parts) != 3:
            expected = "zone in unexpected format, expected: {locale}-{region}-{zone}"
            raise TranslationError(f"failed to get region from zones: {expected}, got: {zone}")
        regions.add("-".join(parts[:2]))
    if len(regions) != 1:
        raise TranslationError(
            f"failed to get region from zones: multiple or no regions gotten from zones, got: {sorted(regions)}"
        )
    return regions.pop()


def translated_affinity(volume: PersistentVolume, plugin: InTreePlugin) -> NodeSelector | None:
    """The node affinity in the driver's labels. Raises TranslationError for a volume that cannot be parsed."""
    handle_of_volume(volume, plugin)
    affinity = volume.spec.node_affinity
    required = affinity.required if affinity is not None else None
    if not plugin.zone_label:
        return required
    terms = list(required.node_selector_terms or ()) if required is not None else []
    zone, region = _topology_labels(volume, terms)
    moved = _moved_zone(volume, terms, zone, plugin.zone_label)
    if region == _BETA_REGION and _has_values(moved, region):
        moved = _renamed(moved, region, _REGION)
    if not moved and required is None:
        return None
    return NodeSelector(node_selector_terms=moved)


def _topology_labels(volume: PersistentVolume, terms: list[NodeSelectorTerm]) -> tuple[str, str]:
    """The generation of zone labels that a volume uses: that of its affinity, or else of its labels."""
    keys = {requirement.key for term in terms for requirement in term.match_expressions or ()}
    for place in (keys, volume.labels):
        if _ZONE in place:
            return _ZONE, _REGION
        if _BETA_ZONE in place:
            return _BETA_ZONE, _BETA_REGION
    return _ZONE, _REGION


def _moved_zone(
    volume: PersistentVolume, terms: list[NodeSelectorTerm], zone: str, driver_zone: str
) -> list[NodeSelectorTerm]:
    if _has_values(terms, zone):
        return _renamed(terms, zone, driver_zone)
    zones = sorted({name.strip() for name in volume.labels.get(zone, "").split(_MANY_ZONES)} - {""})
    if not zones:
        return terms
    extra = NodeSelectorRequirement(key=driver_zone, operator="In", values=zones)
    return [_with_requirement(term, extra) for term in terms or [NodeSelectorTerm()]]


def _has_values(terms: Iterable[NodeSelectorTerm], key: str) -> bool:
    return any(r.key == key and r.values for term in terms for r in term.match_expressions or ())


def _renamed(terms: Iterable[NodeSelectorTerm], old: str, new: str) -> list[NodeSelectorTerm]:
    return [
        NodeSelectorTerm(
            match_expressions=[
                NodeSelectorRequirement(key=new if r.key == old else r.key, operator=r.operator, values=r.values)
                for r in term.match_expressions or ()
            ],
            match_fields=term.match_fields,
        )
        for term in terms
    ]


def _with_requirement(term: NodeSelectorTerm, extra: NodeSelectorRequirement) -> NodeSelectorTerm:
    expressions = [*(term.match_expressions or ()), extra]
    return NodeSelectorTerm(match_expressions=expressions, match_fields=term.match_fields)
