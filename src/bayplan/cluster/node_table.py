"""The node table: one row a node, every fact about it in a column and in its NodeInfo.

Rows are stable while a node exists; a deleted node leaves a hole that the next node fills. Columns are returned
read-only. The write methods at the end belong to the cache, which is the only caller.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from bayplan.api.node import Node, Taint
from bayplan.cluster.axes import BoolN, FloatRN, Int32N, Int64N, Int64RN
from bayplan.cluster.changes import ChangeLog
from bayplan.cluster.derived import DerivedColumns
from bayplan.cluster.interned import Interned
from bayplan.cluster.label_columns import LabelColumn, LabelColumns
from bayplan.cluster.node_info import NodeInfo
from bayplan.cluster.node_order import NodeOrder
from bayplan.cluster.resources import NATIVE, ResourceAxis

__all__ = ["NodeTable", "TaintSet"]

D = TypeVar("D", bound=DerivedColumns)
TaintSet = tuple[tuple[str, str, str], ...]
_FIRST_CAPACITY = 64


class NodeTable:
    def __init__(self, resources: ResourceAxis) -> None:
        self.resources = resources
        self.infos: list[NodeInfo | None] = []
        self.size = 0
        """Rows in use, holes included: the length of `infos` and of every returned column. A plain attribute, like
        `capacity`: every column is cut to it."""
        self.capacity = 0
        """Rows there is room for."""
        self.row_of: dict[str, int] = {}
        self.order = NodeOrder()
        self.row_changes = ChangeLog()
        """Rows whose node or pods changed."""
        self.use_changes = ChangeLog()
        """The same without the rows on which a pod merely has other labels or annotations, or has started."""
        self.node_changes = ChangeLog()
        """Rows whose node object changed, came or went."""
        self.layout = 0
        """Grows when columns are reallocated: remembered columns then have the wrong length."""
        self.largest_amount = 0
        """No node offers more of anything; bounds amounts, so that exact float arithmetic can be used."""
        self.taint_sets: list[list[Taint]] = []
        """By number. The number of a set that no node has any more is used again."""
        self._taint_numbers: Interned[TaintSet] = Interned()
        self._free: list[int] = []
        self._offering: list[int] = []
        """By place, how many nodes offer the resource."""
        self._derived: dict[type[DerivedColumns], DerivedColumns] = {}
        self._scarce: dict[int, bool] = {}
        self._scarce_position = -1
        self._labels = LabelColumns(0)
        self._allocate(_FIRST_CAPACITY)

    def __len__(self) -> int:
        """How many nodes there are."""
        return len(self.row_of)

    def info(self, name: str) -> NodeInfo | None:
        row = self.row_of.get(name)
        return None if row is None else self.infos[row]

    def at(self, row: int) -> NodeInfo:
        info = self.infos[row]
        if info is None:
            raise KeyError(f"row {row} holds no node")
        return info

    def label(self, key: str) -> LabelColumn:
        return self._labels.column(key)

    def label_columns(self) -> LabelColumns:
        """Every label column that was read so far."""
        return self._labels

    def derived(self, kind: type[D]) -> D:
        """The columns of that kind over this table, shared by all readers."""
        found = self._derived.get(kind)
        if found is None:
            found = self._derived[kind] = kind(self)
        return found  # type: ignore[return-value]

    def is_scarce(self, place: int) -> bool:
        """Whether some node offers nothing of a resource."""
        if self._scarce_position != self.node_changes.position:
            self._scarce_position, self._scarce = self.node_changes.position, {}
        known = self._scarce.get(place)
        if known is None:
            offers_nothing = self.allocatable[place, : self.size] == 0 if place < len(self.allocatable) else True
            known = self._scarce[place] = bool((offers_nothing & self.valid[: self.size]).any())
        return known

    # Columns. Shapes are (capacity,) or (R, capacity); readers cut them to `size`.
    valid: BoolN
    unschedulable: BoolN
    taint_set: Int32N
    allocatable: Int64RN
    divisor: FloatRN
    """Allocatable as floats, and 1 where a node offers nothing: what shares are divided by."""
    requested: Int64RN
    nonzero: Int64RN
    pod_count: Int64N
    allowed_pods: Int64N

    def _allocate(self, capacity: int) -> None:
        old = self.capacity
        rank = max(len(self.resources), 8)
        for name, shape, kind in (
            ("valid", (capacity,), np.bool_),
            ("unschedulable", (capacity,), np.bool_),
            ("taint_set", (capacity,), np.int32),
            ("allocatable", (rank, capacity), np.int64),
            ("divisor", (rank, capacity), np.float64),
            ("requested", (rank, capacity), np.int64),
            ("nonzero", (2, capacity), np.int64),
            ("pod_count", (capacity,), np.int64),
            ("allowed_pods", (capacity,), np.int64),
        ):
            fresh = np.full(shape, 1 if name == "divisor" else 0, dtype=kind)
            before = getattr(self, name, None)
            if before is not None:
                if fresh.ndim == 2:
                    kept = min(before.shape[0], fresh.shape[0])
                    fresh[:kept, :old] = before[:kept]
                else:
                    fresh[:old] = before
            setattr(self, name, fresh)
        self._labels.grow(capacity)
        self.capacity = capacity
        self.layout += 1
        self.row_changes.keep = self.use_changes.keep = self.node_changes.keep = max(4096, capacity)

    # Written by the cache alone.

    def ensure_resources(self) -> None:
        """Make room for resources that were named since the columns were made."""
        if len(self.resources) > self.allocatable.shape[0]:
            self._allocate(self.capacity)

    def add(self, node: Node) -> NodeInfo:
        row = self._free.pop() if self._free else len(self.infos)
        if row >= self.capacity:
            self._allocate(2 * self.capacity)
        info = NodeInfo(node, row, self.resources)
        if row == len(self.infos):
            self.infos.append(info)
            self.size += 1
        else:
            self.infos[row] = info
        self.row_of[node.name] = row
        self.order.add(row, node)
        self._count_offer(info, 1)
        self.write_node(info)
        self.write_pods(info)
        return info

    def update(self, info: NodeInfo, node: Node) -> None:
        self._count_offer(info, -1)
        info.set_node(node)
        self._count_offer(info, 1)
        self.order.update(info.row, node)
        self.write_node(info)

    def remove(self, info: NodeInfo) -> None:
        row = info.row
        self._count_offer(info, -1)
        self.order.remove(row)
        del self.row_of[info.name]
        self.infos[row] = None
        self.valid[row] = False
        self._taint_numbers.release(int(self.taint_set[row]))
        self.allocatable[:, row] = 0
        self.divisor[:, row] = 1
        self.requested[:, row] = 0
        self.nonzero[:, row] = 0
        self.pod_count[row] = self.allowed_pods[row] = 0
        self._labels.set_row(row, {})
        self._free.append(row)
        self.node_changes.append(row)
        self.note_use(row)

    def write_node(self, info: NodeInfo) -> None:
        """Bring the columns of a node object up to its NodeInfo."""
        self.ensure_resources()
        row = info.row
        self._write_taints(row, info.taints)
        self.valid[row] = True
        self.unschedulable[row] = info.node.spec.unschedulable
        self.allocatable[:, row] = 0
        self.allocatable[: len(info.allocatable), row] = info.allocatable
        self.divisor[:, row] = np.maximum(self.allocatable[:, row], 1)
        self.allowed_pods[row] = info.allowed_pods
        self.largest_amount = max(self.largest_amount, *info.allocatable)
        self._labels.set_row(row, info.labels)
        self.node_changes.append(row)
        self.note_use(row)

    def write_pods(self, info: NodeInfo) -> None:
        """Bring the columns of what runs on a node up to its NodeInfo."""
        self.ensure_resources()
        row = info.row
        self.requested[: len(info.requested), row] = info.requested
        self.nonzero[0, row] = info.nonzero_cpu
        self.nonzero[1, row] = info.nonzero_memory
        self.pod_count[row] = len(info.pods)
        self.note_use(row)

    def _count_offer(self, info: NodeInfo, sign: int) -> None:
        offering = self._offering
        for place, _ in info.offer:
            if place >= len(offering):
                offering.extend([0] * (len(self.resources) - len(offering)))
            offering[place] += sign

    def unoffered(self) -> int:
        """How many places are held by resources that no node offers any more."""
        return self._offering[len(NATIVE) :].count(0)

    def place_again(self) -> None:
        """Free the columns of resources that no node offers, while no pod on a node requests a scalar resource."""
        names = zip(self.resources.names, self._offering, strict=False)
        self.resources.keep([name for name, count in names if count and name not in NATIVE])
        self.allocatable, self.requested = self.allocatable[: len(NATIVE)], self.requested[: len(NATIVE)]
        self.divisor = self.divisor[: len(NATIVE)]
        self._allocate(self.capacity)
        self._offering = []
        for info in self.infos:
            if info is not None:
                info.place_again()
                self._count_offer(info, 1)
                self.write_node(info)

    def note_use(self, row: int) -> None:
        """What a node offers, or what is used of it, is not what it was."""
        self.row_changes.append(row)
        self.use_changes.append(row)

    def _write_taints(self, row: int, taints: list[Taint]) -> None:
        if self.valid[row]:
            self._taint_numbers.release(int(self.taint_set[row]))
        number = self._taint_numbers.hold(tuple((taint.key, taint.value, taint.effect) for taint in taints))
        if number == len(self.taint_sets):
            self.taint_sets.append(taints)
        else:
            self.taint_sets[number] = taints
        self.taint_set[row] = number
