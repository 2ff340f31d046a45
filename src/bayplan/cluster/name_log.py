"""A log of names: what changed since a reader last looked, where rows of a table have no say.

Readers keep a position (a plain integer that only grows). A reader that fell behind what is kept looks at everything.
"""

from __future__ import annotations

__all__ = ["NameLog"]

_KEPT = 4096


class NameLog:
    __slots__ = ("_names", "position")

    def __init__(self) -> None:
        self._names: list[str] = []
        self.position = 0

    def record(self, name: str) -> None:
        self._names.append(name)
        self.position += 1
        if len(self._names) > 2 * _KEPT:
            del self._names[:_KEPT]

    def since(self, position: int) -> set[str] | None:
        """The names since an earlier position; None if that is too long ago to tell."""
        count = self.position - position
        if not 0 <= count <= len(self._names):
            return None
        return set(self._names[len(self._names) - count :])
