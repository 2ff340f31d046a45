"""Objects as they are about to be written, in place of the stored ones.

Between the decision to bind a volume and the answer of the API server, the volume must count as taken for other pods.
An assumed object replaces the stored one while the stored one is the version that the assumption was based on; any
newer version from the API server takes precedence.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from bayplan.framework.columns import Objects
from bayplan.framework.objects import KubeObject

__all__ = ["AssumedObjects"]

K = TypeVar("K", bound=KubeObject)
_SWEEP_ABOVE = 32


class AssumedObjects(Generic[K]):
    """Assumed objects of one kind."""

    def __init__(self, objects: Objects, kind: type[K]) -> None:
        self._objects, self._kind = objects, kind
        self._assumed: dict[str, K] = {}
        self._sweep_at = _SWEEP_ABOVE

    def matching(self, condition: Callable[[K], bool]) -> list[K]:
        """The assumed objects that meet a condition and are still valid."""
        found = [item for item in self._assumed.values() if condition(item)]
        return [item for item in found if self.get(item.key) is item]

    def stored(self, key: str) -> K | None:
        """The object as the API server stores it."""
        return self._objects.get(self._kind, key)

    def get(self, key: str) -> K | None:
        """The assumed object if it is still valid, otherwise the stored one."""
        stored = self.stored(key)
        assumed = self._assumed.get(key)
        if assumed is None:
            return stored
        if stored is not None and _version(stored) == _version(assumed):
            return assumed
        del self._assumed[key]
        return stored

    def assume(self, item: K) -> str:
        """Assume the object in place of the stored one. Returns what is wrong, or an empty string."""
        stored = self.stored(item.key)
        if stored is None:
            return f'"{item.key}" not found'
        if _version(stored) != _version(item):
            return f'"{item.key}" is out of sync (stored: {_version(stored)}, assume: {_version(item)})'
        self._assumed[item.key] = item
        self._sweep_if_due()
        return ""

    def restore(self, item: K) -> None:
        """Drop this assumed object, if it is still there."""
        assumed = self._assumed.get(item.key)
        if assumed is not None and _version(assumed) == _version(item):
            del self._assumed[item.key]

    def _sweep_if_due(self) -> None:
        """Drop assumptions that were confirmed, which `get` notices only for the keys it is called with."""
        if len(self._assumed) > self._sweep_at:
            for key in list(self._assumed):
                self.get(key)
            self._sweep_at = max(_SWEEP_ABOVE, 2 * len(self._assumed))


def _version(item: KubeObject) -> str:
    return item.metadata.resource_version
