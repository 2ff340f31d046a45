"""A cache that keeps a thing at its second use; the least recently used is dropped first.

A cluster may see thousands of pods whose shape never comes again. Keeping a column for each would fill memory with
answers that are never read, and every new one would be written to memory that no processor cache holds. So at its first
use a thing is made for the caller alone.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

__all__ = ["SecondUseCache"]

T = TypeVar("T")
_MOST_SEEN_ONCE = 8192
_AT_LEAST, _AT_MOST = 64, 512
_MOST_BULK = 4 * 1024 * 1024
"""Of all things that are kept, in bytes that do not grow with the rows."""


class SecondUseCache(Generic[T]):
    """Keeps at most `most_bytes` of things that take `bytes_per_row` for each row of the node table."""

    def __init__(self, *, bytes_per_row: int, most_bytes: int) -> None:
        self._most_rows = most_bytes // bytes_per_row
        self._kept: OrderedDict[Hashable, T] = OrderedDict()
        self._seen_once: OrderedDict[int, None] = OrderedDict()
        """Hashes of keys: a key may hold all that a large pod says."""
        self._bulk: dict[Hashable, int] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: Hashable) -> T | None:
        found = self._kept.get(key)
        if found is not None:
            self._kept.move_to_end(key)
        return found

    def find(self, key: Hashable, make: Callable[[], T], *, rows: int, bulk: int = 0) -> T:
        """What is kept under the key, or a new one; `rows` is how many rows a column has now."""
        found = self.get(key)
        if found is None:
            found = make()
            self.offer(key, found, rows=rows, bulk=bulk)
        return found

    def offer(self, key: Hashable, thing: T, *, rows: int, bulk: int = 0) -> None:
        """Keep a thing if its key was offered before. `bulk` is what it takes beside its rows, if that is much."""
        mark = hash(key)
        if mark not in self._seen_once and key not in self._kept:
            self._seen_once[mark] = None
            if len(self._seen_once) > _MOST_SEEN_ONCE:
                self._seen_once.popitem(last=False)
            return
        self._seen_once.pop(mark, None)
        self._kept[key] = thing
        if bulk:
            self._bulk[key] = bulk
        most = min(max(_AT_LEAST, self._most_rows // max(rows, 1)), _AT_MOST)
        while len(self._kept) > most:
            self._forget(next(iter(self._kept)))
        while sum(self._bulk.values()) > _MOST_BULK:
            self._forget(next(iter(self._bulk)))

    def _forget(self, key: Hashable) -> None:
        del self._kept[key]
        self._bulk.pop(key, None)
