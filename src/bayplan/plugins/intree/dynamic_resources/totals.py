"""How many devices of a class a node has and how many of them are taken: the amounts that NodeResourcesFit and
NodeResourcesBalancedAllocation score an extended resource by where devices stand for it.

As in kube-scheduler, every published slice counts that reaches the node, also one of an incomplete pool or of an older
generation, and selectors do not see whether a device can be shared.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from weakref import WeakKeyDictionary

from bayplan.framework import NodeInfo
from bayplan.framework.columns import ClusterState
from bayplan.framework.devices import DeviceClass, DeviceLook, PublishedDevice
from bayplan.framework.objects import value
from bayplan.plugins.intree.dynamic_resources.extended import is_backed_name
from bayplan.plugins.intree.dynamic_resources.selectors import select

__all__ = ["DeviceTotals"]

Totals = tuple[int, int]
"""Devices of a class on a node, and those of them that are taken."""
_NONE: Totals = (0, 0)


class DeviceTotals:
    """The totals of some resources by node, kept until devices, their use, classes or nodes change."""

    def __init__(self, cluster: ClusterState, resources: Iterable[str]) -> None:
        self._devices, self._classes, self._table = cluster.devices, cluster.device_classes, cluster.nodes
        self.resources = tuple(name for name in resources if is_backed_name(name))
        """Those of the resources for which a class could stand."""
        self._state: tuple[int, ...] = ()
        self._known: dict[tuple[str, str], Totals] = {}
        self._unshared: WeakKeyDictionary[DeviceLook, DeviceLook] = WeakKeyDictionary()

    def concerns(self, requests: Mapping[str, int]) -> bool:
        """Whether devices may stand for something that is requested."""
        return any(requests.get(name) and self._classes.class_for(name) is not None for name in self.resources)

    def on(self, node: NodeInfo, requests: Mapping[str, int]) -> dict[str, Totals]:
        """By resource that is requested and that only devices of the node stand for."""
        offered = node.node.status.allocatable or {}
        asked = (name for name in self.resources if requests.get(name) and not value(offered.get(name, 0)))
        found = {name: self._of(name, node) for name in asked}
        return {name: totals for name, totals in found.items() if totals[0]}

    def _of(self, resource: str, node: NodeInfo) -> Totals:
        """(0, 0) where no class stands for the resource, or a selector of the class fails for a device."""
        state = (
            self._devices.slice_changes.position,
            self._devices.use_changes.position,
            self._classes.version,
            self._table.node_changes.position,
        )
        if self._state != state:
            self._state = state
            self._known.clear()
        key = (resource, node.name)
        found = self._known.get(key)
        if found is None:
            class_ = self._classes.class_for(resource)
            found = self._known[key] = _NONE if class_ is None else self._count(class_, node)
        return found

    def _count(self, class_: DeviceClass, node: NodeInfo) -> Totals:
        total = taken = 0
        for device in self._reached(node):
            selected = self._is_selected(class_, device.look)
            if selected is None:
                return _NONE
            if selected:
                total += 1
                taken += self._devices.use.is_allocated(device.id)
        return total, taken

    def _reached(self, node: NodeInfo) -> Iterable[PublishedDevice]:
        for slice_ in self._devices.slices_on(node.name):
            if slice_.is_chosen_by_device:
                yield from (each for each in slice_.devices if each.nodes.includes(node.name, node.labels))
            elif not slice_.nodes.is_made or slice_.nodes.includes(node.name, node.labels):
                yield from slice_.devices

    def _is_selected(self, class_: DeviceClass, look: DeviceLook) -> bool | None:
        """None where an expression fails."""
        if look.is_shareable:
            twin = self._unshared.get(look)
            if twin is None:
                twin = self._unshared[look] = DeviceLook(look.driver, look.attributes, look.capacity, False)
            look = twin
        for selector in class_.spec.selectors or ():
            answer = True if selector.cel is None else select(selector.cel.expression, look)
            if isinstance(answer, Exception):
                return None
            if not answer:
                return False
        return True
