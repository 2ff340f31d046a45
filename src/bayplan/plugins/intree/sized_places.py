"""Things of a size that are reachable from some nodes: open volumes, and the capacity to make new ones.

The question is always "from which nodes can something at least this large be reached". Each thing has a slot in a few
columns, so that thousands of local disks, each on a node of its own, are asked at once.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping

import numpy as np

from bayplan.cluster.axes import BoolN, Int32N, Int64N, Rows
from bayplan.cluster.node_table import NodeTable
from bayplan.plugins.intree.node_places import PlaceMasks, Places

__all__ = ["SizedPlaces"]

_NONE, _MANY = -1, -2
_FREE = -1


class SizedPlaces:
    """Things by name. `group` is what else a thing must have in common with what is asked for."""

    def __init__(self, table: NodeTable, masks: PlaceMasks) -> None:
        self._table, self._masks = table, masks
        self._slots: dict[str, int] = {}
        self._names: list[str] = []
        self._free: list[int] = []
        self._sizes: Int64N = np.full(8, _FREE, dtype=np.int64)
        self._group: Int32N = np.zeros(8, dtype=np.int32)
        self._places: Int32N = np.zeros(8, dtype=np.int32)
        self._group_ids: dict[Hashable, int] = {}
        self._place_ids: dict[Places, int] = {}
        self._known: list[Places] = []
        self._rows: Int64N = np.zeros(0, dtype=np.int64)
        self._rows_of: tuple[int, ...] = ()
        self._keys: set[str] = set()

    def __len__(self) -> int:
        return len(self._slots)

    def __contains__(self, name: object) -> bool:
        return name in self._slots

    @property
    def groups(self) -> Mapping[Hashable, int]:
        """The groups that things were put with, and their numbers."""
        return self._group_ids

    def put(self, name: str, size: int, places: Places, group: Hashable = None) -> None:
        slot = self._slots.get(name)
        if slot is None:
            slot = self._slots[name] = self._free.pop() if self._free else len(self._names)
            if slot == len(self._names):
                self._names.append(name)
                self._grow()
            self._names[slot] = name
        self._sizes[slot] = max(size, 0)
        self._group[slot] = self._group_ids.setdefault(group, len(self._group_ids))
        self._places[slot] = self._place_id(places)

    def remove(self, name: str) -> None:
        slot = self._slots.pop(name, None)
        if slot is not None:
            self._sizes[slot] = _FREE
            self._free.append(slot)

    def at_least(self, size: int, groups: list[int] | None = None, without: Iterable[str] = ()) -> Rows:
        """The slots of things that are large enough, of one of the groups, and not named in `without`."""
        used = len(self._names)
        mask = self._sizes[:used] >= max(size, 0)
        mask[[self._slots[name] for name in without if name in self._slots]] = False
        if groups is not None and len(groups) < len(self._group_ids):
            wanted = np.zeros(len(self._group_ids), dtype=np.bool_)
            wanted[groups] = True
            mask &= wanted[self._group[:used]]
        return np.flatnonzero(mask)

    def name(self, slot: int) -> str:
        return self._names[slot]

    def smallest_first(self, slots: Rows) -> list[int]:
        """Ordered by size and name, which is the order in which things are chosen."""
        names, sizes = self._names, self._sizes[slots].tolist()
        order = sorted(zip(sizes, slots.tolist(), strict=True), key=lambda pair: (pair[0], names[pair[1]]))
        return [slot for _, slot in order]

    def places(self, slot: int) -> Places:
        return self._known[int(self._places[slot])]

    def reachable_from(self, row: int, slots: Rows) -> Rows:
        """Those of the slots whose thing is reachable from a row."""
        self._locate()
        numbers = self._places[slots]
        rows = self._rows[numbers]
        is_here: BoolN = np.equal(rows, row)
        for number in np.unique(numbers[rows == _MANY]).tolist():
            places = self._known[number]
            if places is None or self._masks.rows(places)[row]:
                is_here |= numbers == number
        here: Rows = slots[is_here]
        return here

    def reach(self, slots: Rows) -> BoolN:
        """The rows from which at least one of the things is reachable."""
        self._locate()
        mask: BoolN = np.zeros(self._table.size, dtype=np.bool_)
        numbers = self._places[slots]
        rows = self._rows[numbers]
        mask[rows[rows >= 0]] = True
        for number in np.unique(numbers[rows == _MANY]).tolist():
            places = self._known[number]
            if places is None:
                mask[:] = True
                return mask
            mask |= self._masks.rows(places)
        return mask

    def _place_id(self, places: Places) -> int:
        number = self._place_ids.get(places)
        if number is None:
            number = self._place_ids[places] = len(self._known)
            self._known.append(places)
            self._keys.update(r.key for term in places or () for r in term.expressions)
            self._rows = np.append(self._rows, self._row_of(places))
        return number

    def _locate(self) -> None:
        """Bring the one row of each place, for those that are a single node, up to the labels of the nodes."""
        stamp = self._stamp()
        if stamp != self._rows_of:
            self._rows = np.array([self._row_of(places) for places in self._known], dtype=np.int64)
            self._rows_of = stamp

    def _row_of(self, places: Places) -> int:
        if places is None:
            return _MANY
        rows = np.flatnonzero(self._masks.rows(places))
        return _NONE if not len(rows) else int(rows[0]) if len(rows) == 1 else _MANY

    def _stamp(self) -> tuple[int, ...]:
        return (self._table.size, *(self._table.label(key).version for key in sorted(self._keys)))

    def _grow(self) -> None:
        if len(self._names) > len(self._sizes):
            more = len(self._sizes)
            self._sizes = np.concatenate([self._sizes, np.full(more, _FREE, dtype=np.int64)])
            self._group = np.concatenate([self._group, np.zeros(more, dtype=np.int32)])
            self._places = np.concatenate([self._places, np.zeros(more, dtype=np.int32)])
