"""The local copy of a reflector, with a callback for each change.

Every change is reported once, in order, as `on_change(old, new)`: `old` is None for an addition, `new` is None for a
deletion. Both sides of one call have the same uid: an object that was deleted and created again under its name is
reported as a deletion and an addition. An object with an unchanged resourceVersion is not reported again.

A callback or transform that raises is logged and counted, and the copy is kept up to date. This module does no I/O.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import Generic

from bayplan.client.decoding import Rejected, T, object_key

_REJECTED_KEPT = 100

_log = logging.getLogger(__name__)


class Replica(Generic[T]):
    """Objects of one resource by key, with a callback for each change."""

    def __init__(
        self,
        resource: str,
        on_change: Callable[[T | None, T | None], None],
        *,
        transform: Callable[[T], T | None] | None = None,
    ) -> None:
        """`resource` is for messages. `transform` trims an object before it is kept, or leaves it out with None."""
        self._resource = resource
        self._on_change = on_change
        self._transform = transform
        self._objects: dict[str, T] = {}
        self._rejected: dict[str, str] = {}
        self.changes = 0
        """How many were reported."""
        self.decode_errors = 0
        self.callback_errors = 0

    @property
    def objects(self) -> Mapping[str, T]:
        return MappingProxyType(self._objects)

    @property
    def rejected(self) -> Mapping[str, str]:
        """Objects whose present version could not be decoded, with the reason; the first hundred of them."""
        return MappingProxyType(self._rejected)

    def keep(self, item: T, key: str = "") -> None:
        """`item` is the present version of its object; `key` is its key, where that is known already."""
        key = key or object_key(item.metadata)
        if self._rejected:
            self._rejected.pop(key, None)
        kept = item if self._transform is None else self._transformed(item)
        if kept is None:
            self.drop(key)
            return
        old = self._objects.get(key)
        if old is not None:
            if old.metadata.uid != kept.metadata.uid:
                self.drop(key)
                old = None
            elif old.metadata.resource_version == kept.metadata.resource_version:
                return
        self._objects[key] = kept
        self._tell(old, kept)

    def drop(self, key: str, *, uid: str = "") -> None:
        """The object is gone; with `uid`, only if it is that one."""
        self._rejected.pop(key, None)
        old = self._objects.get(key)
        if old is None or (uid and old.metadata.uid != uid):
            return
        del self._objects[key]
        self._tell(old, None)

    def drop_all_but(self, keys: Collection[str]) -> None:
        """Drop all objects but those with `keys`, the keys of a whole list."""
        for key in [key for key in self._objects if key not in keys]:
            self.drop(key)

    def reject(self, rejected: Rejected) -> None:
        """Record a version that cannot be decoded; the last good one stays."""
        self.decode_errors += 1
        if len(self._rejected) < _REJECTED_KEPT:
            self._rejected[rejected.key] = rejected.reason
        _log.warning(
            "skipping %s of %s: it does not have the expected form: %s", rejected.key, self._resource, rejected.reason
        )

    def _transformed(self, item: T) -> T | None:
        assert self._transform is not None
        try:
            return self._transform(item)
        except Exception:
            self.callback_errors += 1
            _log.exception("%s of %s could not be transformed", object_key(item.metadata), self._resource)
            return item

    def _tell(self, old: T | None, new: T | None) -> None:
        self.changes += 1
        try:
            self._on_change(old, new)
        except Exception:
            self.callback_errors += 1
            known = new if new is not None else old
            name = object_key(known.metadata) if known is not None else ""
            _log.exception("the change of %s in %s could not be taken in", name, self._resource)
