"""Nodes from which volumes, and the capacity for new ones, are reachable, by node labels.

Affinity of volumes, topologies of classes and selectors of capacity all become *places*: a tuple of terms any of which
a node must meet, or None for every node. The mask of a tuple is kept until a label that it mentions changes on some
node (`PlaceMasks`). `SizedPlaces` answers from which nodes something at least so large is reachable: each volume or
capacity has a slot in a few columns, so thousands of local disks are compared at once.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping

import numpy as np

from bayplan.framework import NodeColumns
from bayplan.framework.columns import BoolN, Int32N, Int64N, NodeTable, Rows, match_term
from bayplan.framework.objects import (
    LabelSelector,
    NodeRequirement,
    NodeSelector,
    NodeTerm,
    SelectorError,
    TopologyTerm,
    compile_node_selector,
    compile_selector,
)

__all__ = [
    "EVERYWHERE",
    "NOWHERE",
    "PlaceMasks",
    "Places",
    "SizedPlaces",
    "is_reachable",
    "places_of_affinity",
    "places_of_selector",
    "places_of_topologies",
]

Places = tuple[NodeTerm, ...] | None
EVERYWHERE: Places = None
NOWHERE: Places = ()
_MOST_MASKS = 20_000


def places_of_affinity(selector: NodeSelector | None) -> Places:
    """The places of a volume's required node affinity. Requirements on node names are ignored, as in kube-scheduler."""
    if selector is None:
        return EVERYWHERE
    terms = [term for term in compile_node_selector(selector) if term.is_valid and not term.is_empty]
    if any(not term.expressions for term in terms):
        return EVERYWHERE
    return tuple(NodeTerm(term.expressions, ()) for term in terms)


def places_of_topologies(topologies: list[TopologyTerm] | None) -> Places:
    """The places of a class's allowed topologies; without any it is everywhere, an empty term is nowhere."""
    if not topologies:
        return EVERYWHERE
    found = []
    for term in topologies:
        stated = term.match_label_expressions or ()
        if stated and all(requirement.values for requirement in stated):
            found.append(NodeTerm(tuple(NodeRequirement(r.key, "In", tuple(r.values or ())) for r in stated), ()))
    return tuple(found)


def places_of_selector(selector: LabelSelector | None) -> Places:
    """The places of a storage capacity; without a selector it is nowhere."""
    if selector is None:
        return NOWHERE
    try:
        compiled = compile_selector(selector)
    except SelectorError:
        return NOWHERE
    if compiled.is_everything:
        return EVERYWHERE
    stated = (NodeRequirement(r.key, r.operator, tuple(sorted(r.values))) for r in compiled.requirements)
    return (NodeTerm(tuple(stated), ()),)


def is_reachable(places: Places, labels: Mapping[str, str]) -> bool:
    """Whether a node with these labels is among the places."""
    return places is None or any(term.matches(labels, "") for term in places)


class PlaceMasks:
    """Places as columns over all rows of one table."""

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._masks: dict[tuple[NodeTerm, ...], tuple[tuple[int, ...], BoolN]] = {}

    def rows(self, places: tuple[NodeTerm, ...]) -> BoolN:
        """A mask over all rows, True where a node is among the places; shared and read-only."""
        stamp = self._stamp(places)
        known = self._masks.get(places)
        if known is not None and known[0] == stamp:
            return known[1]
        if len(self._masks) >= _MOST_MASKS:
            self._masks.clear()
        mask = self._match(places)
        self._masks[places] = stamp, mask
        return mask

    def of(self, places: Places, nodes: NodeColumns) -> BoolN | None:
        """The same for the positions of `nodes`; None for everywhere."""
        if places is None:
            return None
        mask = self.rows(places)
        return mask if nodes.is_all else mask[nodes.rows]

    def _match(self, places: tuple[NodeTerm, ...]) -> BoolN:
        nodes = NodeColumns(self._table)
        mask: BoolN = np.zeros(len(nodes), dtype=np.bool_)
        for term in places:
            mask |= match_term(term, nodes)
        mask.flags.writeable = False
        return mask

    def _stamp(self, places: tuple[NodeTerm, ...]) -> tuple[int, ...]:
        """Versions of the labels that the places mention; a mask is valid while they and the number of rows stay the
        same."""
        label = self._table.label
        return (self._table.size, *(label(r.key).version for term in places for r in term.expressions))


_NONE, _MANY = -1, -2
_FREE = -1


class SizedPlaces:
    """Volumes or capacities by name, with size, places and group. `group` is what else must agree with the request."""

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
        """The known groups and their numbers."""
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
        """The slots of entries that are large enough, of one of the groups, and not named in `without`."""
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
        """Ordered by size and name, which is the order of choice."""
        names, sizes = self._names, self._sizes[slots].tolist()
        order = sorted(zip(sizes, slots.tolist(), strict=True), key=lambda pair: (pair[0], names[pair[1]]))
        return [slot for _, slot in order]

    def places(self, slot: int) -> Places:
        return self._known[int(self._places[slot])]

    def reachable_from(self, row: int, slots: Rows) -> Rows:
        """Those of the slots whose entry is reachable from a row."""
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
        """The rows from which at least one of the entries is reachable."""
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
        """Update the row of each of the places that are a single node, after node labels changed."""
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
