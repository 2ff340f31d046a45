"""Extended resources that device classes stand for: by `spec.extendedResourceName`, and by the name of the class."""

from __future__ import annotations

from collections.abc import Iterable

from bayplan.api.devices import DeviceClass
from bayplan.cluster.objects import Objects

__all__ = ["IMPLICIT_PREFIX", "DeviceClassNames"]

IMPLICIT_PREFIX = "deviceclass.resource.kubernetes.io/"


class DeviceClassNames:
    """Which class stands for an extended resource. Of several classes with one name the newest does, and of those
    that were created in the same second the first by name."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._version = -1
        self._by_resource: dict[str, DeviceClass] = {}

    @property
    def version(self) -> int:
        """Another number whenever a class changed."""
        return self._objects.version(DeviceClass)

    def class_for(self, resource: str) -> DeviceClass | None:
        if self._version != self.version:
            self._read()
        return self._by_resource.get(resource)

    def stand_for_any(self, resources: Iterable[str]) -> bool:
        """Whether a class stands for one of the resources, of which one pod may ask for thousands."""
        if self._version != self.version:
            self._read()
        return bool(self._by_resource) and not self._by_resource.keys().isdisjoint(resources)

    def _read(self) -> None:
        self._version = self.version
        self._by_resource = {}
        for each in sorted(self._objects.list(DeviceClass), key=lambda each: each.name, reverse=True):
            self._by_resource[IMPLICIT_PREFIX + each.name] = each
            name = each.spec.extended_resource_name
            holder = self._by_resource.get(name) if name else None
            if name and (holder is None or _created(each) >= _created(holder)):
                self._by_resource[name] = each


def _created(item: DeviceClass) -> str:
    """Times of the API server are in UTC and of one form, so their text is in order."""
    return item.metadata.creation_timestamp or ""
