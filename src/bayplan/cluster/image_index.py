"""Which rows hold which image, and how large it is.

The size of an image is the one that the first node reported, and stays until no node has it.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from bayplan.api.node import Node
from bayplan.cluster.axes import BoolN

__all__ = ["ImageIndex", "ImageState"]


class ImageState:
    """One image. `rows` are those that hold it."""

    __slots__ = ("_held", "rows", "size_bytes")

    def __init__(self, size_bytes: int) -> None:
        self.size_bytes = size_bytes
        self.rows: set[int] = set()
        self._held: BoolN | None = None

    def held(self, capacity: int) -> BoolN:
        """Whether each row holds it, as a column; kept up to date once it was read."""
        if self._held is None or len(self._held) != capacity:
            self._held = np.zeros(capacity, dtype=np.bool_)
            self._held[list(self.rows)] = True
        return self._held

    # Written by the index alone.

    def enter(self, row: int) -> None:
        self.rows.add(row)
        self._note(row, is_held=True)

    def leave(self, row: int) -> None:
        self.rows.discard(row)
        self._note(row, is_held=False)

    def _note(self, row: int, *, is_held: bool) -> None:
        if self._held is None:
            return
        if row < len(self._held):
            self._held[row] = is_held
        else:
            self._held = None


class ImageIndex:
    def __init__(self) -> None:
        self._images: dict[str, ImageState] = {}
        self._names_by_row: dict[int, set[str]] = {}

    def get(self, name: str) -> ImageState | None:
        return self._images.get(name)

    def items(self) -> Iterable[tuple[str, ImageState]]:
        return self._images.items()

    # Written by the cache alone.

    def set_row(self, row: int, node: Node | None) -> None:
        """Take over what a node reports; None when the node is gone."""
        sizes = {n: image.size_bytes for image in (node.status.images or () if node else ()) for n in image.names or ()}
        before = self._names_by_row.pop(row, set())
        for name in before - sizes.keys():
            self._leave(name, row)
        for name, size_bytes in sizes.items():
            self._state(name, size_bytes).enter(row)
        if sizes:
            self._names_by_row[row] = set(sizes)

    def _state(self, name: str, size_bytes: int) -> ImageState:
        state = self._images.get(name)
        if state is None:
            state = self._images[name] = ImageState(size_bytes)
        return state

    def _leave(self, name: str, row: int) -> None:
        state = self._images[name]
        state.leave(row)
        if not state.rows:
            del self._images[name]
