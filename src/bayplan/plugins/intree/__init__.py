"""kube-scheduler's plugins: same names, arguments, reasons and scores, one file or folder each.

`INTREE` lists them in the order of kube-scheduler's default profile. A module is imported when its class is needed, so
that importing one plugin does not import them all. The configuration decides which of them run, and with what weight.
"""

from __future__ import annotations

from importlib import import_module

from bayplan.framework import Plugin
from bayplan.framework.registry import Registry
from bayplan.plugins.shipped import community_entry_points

__all__ = ["INTREE", "default_registry", "intree_plugins"]

INTREE: dict[str, str] = {
    "SchedulingGates": "scheduling_gates",
    "PrioritySort": "priority_sort",
    "NodeUnschedulable": "node_unschedulable",
    "NodeName": "node_name",
    "TaintToleration": "taint_toleration",
    "NodeAffinity": "node_affinity",
    "NodePorts": "node_ports",
    "NodeResourcesFit": "node_resources_fit",
    "VolumeRestrictions": "volume_restrictions",
    "NodeVolumeLimits": "node_volume_limits",
    "VolumeBinding": "volume_binding",
    "VolumeZone": "volume_zone",
    "PodTopologySpread": "pod_topology_spread",
    "InterPodAffinity": "inter_pod_affinity",
    "DynamicResources": "dynamic_resources",
    "DefaultPreemption": "default_preemption",
    "NodeResourcesBalancedAllocation": "node_resources_balanced_allocation",
    "ImageLocality": "image_locality",
    "DefaultBinder": "default_binder",
    "NodeDeclaredFeatures": "node_declared_features",
}
"""Plugin name (also the name of its class) to the module in this package that defines it."""


def intree_plugins() -> list[type[Plugin]]:
    """Every in-tree plugin class, in default order."""
    return [getattr(import_module(f"{__name__}.{module}"), name) for name, module in INTREE.items()]


def default_registry() -> Registry:
    """A new registry with every in-tree plugin; community plugins and installed ones are found when named."""
    return Registry(intree_plugins(), shipped=community_entry_points())
