"""The other objects of the cluster (claims, volumes, services, budgets, ...), by kind and name.

Each kind has a version that grows with every change, so that what was derived from a kind knows when it is stale.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from bayplan.api.meta import KubeObject

__all__ = ["ObjectTable", "Objects"]

K = TypeVar("K", bound=KubeObject)


class ObjectTable:
    """One kind: `namespace/name` (or the name alone) to object, and the keys of each namespace."""

    __slots__ = ("by_key", "by_namespace", "version")

    def __init__(self) -> None:
        self.by_key: dict[str, Any] = {}
        self.by_namespace: dict[str, dict[str, Any]] = {}
        self.version = 0


class Objects:
    def __init__(self) -> None:
        self._tables: dict[type[KubeObject], ObjectTable] = {}

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
        return self._table(kind).version

    # Written by the cache alone.

    def put(self, item: KubeObject) -> None:
        table = self._table(type(item))
        table.by_key[item.key] = item
        table.by_namespace.setdefault(item.namespace, {})[item.name] = item
        table.version += 1

    def remove(self, item: KubeObject) -> None:
        table = self._table(type(item))
        if table.by_key.pop(item.key, None) is not None:
            table.by_namespace[item.namespace].pop(item.name, None)
            table.version += 1
