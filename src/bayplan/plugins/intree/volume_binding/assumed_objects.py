"""Objects as we are about to write them, in place of what the API server still says.

Between the decision to bind a volume and the answer of the API server, other pods must see the volume as taken. An
assumed object stands in for the stored one as long as the stored one is the version that the assumption was made from;
any newer version from the API server wins.
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
    """One kind."""

    def __init__(self, objects: Objects, kind: type[K]) -> None:
        self._objects, self._kind = objects, kind
        self._assumed: dict[str, K] = {}
        self._sweep_at = _SWEEP_ABOVE

    def matching(self, condition: Callable[[K], bool]) -> list[K]:
        """The assumptions that meet a condition and still hold."""
        found = [item for item in self._assumed.values() if condition(item)]
        return [item for item in found if self.get(item.key) is item]

    def stored(self, key: str) -> K | None:
        """What the API server says."""
        return self._objects.get(self._kind, key)

    def get(self, key: str) -> K | None:
        """The assumed object where there is one that still holds, otherwise the stored one."""
        stored = self.stored(key)
        assumed = self._assumed.get(key)
        if assumed is None:
            return stored
        if stored is not None and _version(stored) == _version(assumed):
            return assumed
        del self._assumed[key]
        return stored

    def assume(self, item: K) -> str:
        """Put the object in place of the stored one; what is wrong, or an empty string."""
        stored = self.stored(item.key)
        if stored is None:
            return f'"{item.key}" not found'
        if _version(stored) != _version(item):
            return f'"{item.key}" is out of sync (stored: {_version(stored)}, assume: {_version(item)})'
        self._assumed[item.key] = item
        self._sweep_if_due()
        return ""

    def restore(self, item: K) -> None:
        """Take back the assumption that this object is, if it is still there."""
        assumed = self._assumed.get(item.key)
        if assumed is not None and _version(assumed) == _version(item):
            del self._assumed[item.key]

    def _sweep_if_due(self) -> None:
        """Assumptions that came true are only noticed when somebody looks; do not let them pile up."""
        if len(self._assumed) > self._sweep_at:
            for key in list(self._assumed):
                self.get(key)
            self._sweep_at = max(_SWEEP_ABOVE, 2 * len(self._assumed))


def _version(item: KubeObject) -> str:
    return item.metadata.resource_version
