"""The other objects of the cluster (claims, volumes, services, budgets, ...), by kind and name.

Each kind has a version that grows with every change, so that what was derived from a kind knows when it is stale.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from bayplan.api.meta import KubeObject

__all__ = ["ObjectTable", "Objects"]

K = TypeVar("K", bound=KubeObject)


class ObjectTable:
    """One kind: `namespace/name` (or the name alone) to object, and the keys of each namespace."""

    __slots__ = ("by_key", "by_namespace", "listeners", "version")

    def __init__(self) -> None:
        self.by_key: dict[str, Any] = {}
        self.by_namespace: dict[str, dict[str, Any]] = {}
        self.version = 0
        self.listeners: list[Callable[[], Callable[[Any, Any], None] | None]] = []
        """Each answers the function to call, or None when its owner is gone."""

    def tell(self, old: Any, new: Any) -> None:
        for listener in tuple(self.listeners):
            callback = listener()
            if callback is None:
                self.listeners.remove(listener)
            else:
                callback(old, new)


class Objects:
    def __init__(self) -> None:
        self._tables: dict[type[KubeObject], ObjectTable] = {}
        self.generation = 0
        """Grows with every change of any kind: while it stands, no version has moved."""

    def _table(self, kind: type[KubeObject]) -> ObjectTable:
        table = self._tables.get(kind)
        if table is None:
            table = self._tables[kind] = ObjectTable()
        return table

    def get(self, kind: type[K], key: str) -> K | None:
        """By `namespace/name`, or by name for cluster-scoped kinds."""
        found: K | None = self._table(kind).by_key.get(key)
        return found

    def list(self, kind: type[K], namespace: str | None = None) -> Iterable[K]:
        table = self._table(kind)
        return table.by_key.values() if namespace is None else table.by_namespace.get(namespace, {}).values()

    def version(self, kind: type[KubeObject]) -> int:
        table = self._tables.get(kind)
        return 0 if table is None else table.version

    def on_change(self, kind: type[KubeObject], callback: Callable[[Any, Any], None]) -> None:
        """Call back with (old, new) after each change of a kind. The owner of a method is not kept alive by it."""
        if hasattr(callback, "__self__"):
            self._table(kind).listeners.append(weakref.WeakMethod(callback))
        else:
            self._table(kind).listeners.append(lambda: callback)

    # Written by the cache alone.

    def put(self, item: KubeObject) -> None:
        table = self._table(type(item))
        old = table.by_key.get(item.key)
        table.by_key[item.key] = item
        table.by_namespace.setdefault(item.namespace, {})[item.name] = item
        table.version += 1
        self.generation += 1
        if table.listeners:
            table.tell(old, item)

    def remove(self, item: KubeObject) -> None:
        table = self._table(type(item))
        old = table.by_key.pop(item.key, None)
        if old is not None:
            siblings = table.by_namespace[item.namespace]
            del siblings[item.name]
            if not siblings:
                del table.by_namespace[item.namespace]
            table.version += 1
            self.generation += 1
            if table.listeners:
                table.tell(old, None)
