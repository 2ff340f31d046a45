"""Changes since the last call: which rows, and which objects.

Plugins that keep something per row or per object update it before use, instead of computing it again. A follower only
reports what changed; it keeps nothing derived.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import compress, islice
from operator import is_not
from typing import Any, Generic, TypeVar

from bayplan.framework.columns import ChangeLog, NodeTable, Objects
from bayplan.framework.objects import KubeObject

__all__ = ["ObjectFollower", "RowFollower"]

K = TypeVar("K", bound=KubeObject)
Change = tuple[K | None, K | None]


class RowFollower:
    """Rows named by one of the table's change logs."""

    __slots__ = ("_log", "_position", "_table")

    def __init__(self, log: ChangeLog, table: NodeTable) -> None:
        self._log, self._table = log, table
        self._position = -1

    def changed(self) -> Iterable[int]:
        """The rows that changed since the last call; every row the first time, and after falling far behind."""
        position = self._log.position
        if position == self._position:
            return ()
        rows = self._log.since(self._position)
        self._position = position
        return range(self._table.size) if rows is None else set(rows.tolist())


class ObjectFollower(Generic[K]):
    """Objects of one kind that were added, changed or removed. Holds the objects of the last call."""

    __slots__ = ("_kind", "_objects", "_seen", "_version")

    def __init__(self, objects: Objects, kind: type[K]) -> None:
        self._objects, self._kind = objects, kind
        self._seen: list[K] = []
        self._version = 0

    def skip(self) -> None:
        """Treat everything up to now as known."""
        version = self._objects.version(self._kind)
        if version != self._version:
            self._seen, self._version = list(self._objects.list(self._kind)), version

    def changes(self) -> list[Change[K]]:
        """(before, after) of each object that differs from the last call; None stands for absent."""
        version = self._objects.version(self._kind)
        if version == self._version:
            return []
        # A view of a dict has a length and can be reversed, which its declared type does not say.
        items: Any = self._objects.list(self._kind)
        before, steps = self._seen, version - self._version
        self._version = version
        if len(items) - len(before) == steps:
            # Every change made the table longer, so each was an addition, and additions are at the end.
            added: list[K] = list(islice(reversed(items), steps))[::-1]
            before += added
            return [(None, item) for item in added]
        self._seen = list(items)
        return _difference(before, self._seen)


def _difference(before: list[K], after: list[K]) -> list[Change[K]]:
    """Tables keep the order of insertion, so updates are found by comparing places."""
    if len(before) == len(after):
        places = list(compress(range(len(after)), map(is_not, after, before)))
        if all(before[place].key == after[place].key for place in places):
            return [(before[place], after[place]) for place in places]
    known = {item.key: item for item in before}
    changes: list[Change[K]] = []
    for item in after:
        old = known.pop(item.key, None)
        if old is not item:
            changes.append((old, item))
    return changes + [(item, None) for item in known.values()]
