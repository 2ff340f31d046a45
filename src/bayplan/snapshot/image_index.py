"""Which rows hold which image, and how large it is.

The size of an image is the one that the first node reported, and stays until no node has it.
"""

from __future__ import annotations

from collections.abc import Iterable

from bayplan.api.node import Node

__all__ = ["ImageIndex", "ImageState"]


class ImageState:
    __slots__ = ("rows", "size_bytes")

    def __init__(self, size_bytes: int) -> None:
        self.size_bytes = size_bytes
        self.rows: set[int] = set()


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
            self._images.setdefault(name, ImageState(size_bytes)).rows.add(row)
        if sizes:
            self._names_by_row[row] = set(sizes)

    def _leave(self, name: str, row: int) -> None:
        state = self._images[name]
        state.rows.discard(row)
        if not state.rows:
            del self._images[name]
