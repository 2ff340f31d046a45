"""Change logs: which rows of the node table, or which names, changed since a reader last looked.

Readers keep a position (a plain integer that only grows). A reader that fell behind what is kept must compute
everything again; `since` answers None for it. Entries may repeat: what follows from a row or a name is a function of
it, so computing it twice is harmless.
"""

from __future__ import annotations

import numpy as np

from bayplan.cluster.axes import Rows

__all__ = ["ChangeLog", "NameLog"]

_START = 1024
_NAMES_KEPT = 4096


class ChangeLog:
    __slots__ = ("_base", "_buffer", "_used", "keep", "position")

    def __init__(self, keep: int = 4096) -> None:
        self.keep = keep
        self.position = 0
        """Where the log ends now. A plain attribute, because every remembered column compares it in every decision."""
        self._buffer: Rows = np.empty(_START, dtype=np.intp)
        self._used = 0
        self._base = 0

    def append(self, row: int) -> None:
        if self._used == len(self._buffer):
            self._make_room()
        self._buffer[self._used] = row
        self._used += 1
        self.position += 1

    def since(self, position: int) -> Rows | None:
        """The rows that changed after `position`, oldest first; None when that is no longer known."""
        if position < self._base:
            return None
        return self._buffer[position - self._base : self._used]

    def _make_room(self) -> None:
        if self._used > 2 * self.keep:
            dropped = self._used - self.keep
            self._buffer[: self.keep] = self._buffer[dropped : self._used]
            self._base += dropped
            self._used = self.keep
            return
        self._buffer = np.concatenate([self._buffer, np.empty_like(self._buffer)])


class NameLog:
    """The same for things that have a name and no row: nodes with nominations, pods that a plugin released."""

    __slots__ = ("_names", "position")

    def __init__(self) -> None:
        self._names: list[str] = []
        self.position = 0

    def record(self, name: str) -> None:
        self._names.append(name)
        self.position += 1
        if len(self._names) > 2 * _NAMES_KEPT:
            del self._names[:_NAMES_KEPT]

    def since(self, position: int) -> set[str] | None:
        """The names since an earlier position; None when that is no longer known."""
        count = self.position - position
        if not 0 <= count <= len(self._names):
            return None
        return set(self._names[len(self._names) - count :])
