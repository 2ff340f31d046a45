"""Devices of nodes as columns: how many thousandths of each are free, row by row, following the pods on each node.

Which devices a pod holds is known for the pods that this scheduler placed, and otherwise read from the annotation that
was written when they were bound. A pod without either is counted on the devices that fit it best.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bayplan.framework import NodeColumns, NodeInfo
from bayplan.framework.columns import Int64N, NodeTable, OverlayColumns

__all__ = ["WHOLE", "DeviceColumns", "Devices", "GpuRequest", "NodeGpus", "NodeTraits", "best_fitting", "first_free"]

WHOLE = 1000
"""Thousandths of one device."""

Devices = npt.NDArray[np.int64]
"""(devices, nodes): free thousandths; 0 where a node has fewer devices."""


class GpuRequest(NamedTuple):
    """What a pod needs of each of so many devices; 0 devices stand for no device at all."""

    milli: int
    devices: int

    @property
    def is_share(self) -> bool:
        """Whether it leaves room for others on its only device."""
        return self.devices == 1 and self.milli < WHOLE

    @property
    def total(self) -> int:
        return self.milli * self.devices


class NodeGpus(NamedTuple):
    """The devices of one node."""

    free: list[int]
    kinds: int
    """Bits, one for each kind of request that a pod on the node has."""


class NodeTraits(NamedTuple):
    """What follows from node objects alone, one entry a node."""

    number: Int64N
    """The last number in the name."""
    devices: Int64N
    models: Sequence[str]


class DeviceColumns:
    """`free` and `kinds` over all rows of a table, computed again for rows whose pods changed; and the traits."""

    def __init__(
        self,
        table: NodeTable,
        read: Callable[[NodeInfo], NodeGpus],
        read_traits: Callable[[NodeInfo], tuple[int, int, str]],
    ) -> None:
        self._table = table
        self._read = read
        self._read_traits = read_traits
        self._traits_position = -1
        self._traits = NodeTraits(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), ())
        self._layout = self._position = -1
        self._free: Devices = np.zeros((8, 0), dtype=np.int64)
        self._kinds: Int64N = np.zeros(0, dtype=np.int64)

    def of(self, nodes: NodeColumns) -> tuple[Devices, Int64N]:
        """The columns of some nodes, those of a dry run included."""
        if isinstance(nodes, OverlayColumns) or nodes.table is not self._table:
            return self._one_by_one(nodes)
        self._refresh()
        size = self._table.size
        if nodes.is_all:
            return self._free[:, :size], self._kinds[:size]
        return self._free.take(nodes.rows, axis=1), self._kinds.take(nodes.rows)

    def traits(self, nodes: NodeColumns) -> NodeTraits:
        """What the objects of some nodes say."""
        table = nodes.table
        if table is not self._table:
            return self._traits_in(nodes.infos())
        if self._traits_position != table.node_changes.position:
            self._traits_position, self._traits = table.node_changes.position, self._traits_in(table.infos)
        if nodes.is_all:
            return self._traits
        rows, found = nodes.rows, self._traits
        models = [found.models[row] for row in rows.tolist()]
        return NodeTraits(found.number.take(rows), found.devices.take(rows), models)

    def _traits_in(self, infos: Sequence[NodeInfo | None]) -> NodeTraits:
        found = [(0, 0, "") if info is None else self._read_traits(info) for info in infos]
        numbers = np.array([number for number, _, _ in found], dtype=np.int64)
        devices = np.array([count for _, count, _ in found], dtype=np.int64)
        return NodeTraits(numbers, devices, [model for _, _, model in found])

    def _one_by_one(self, nodes: NodeColumns) -> tuple[Devices, Int64N]:
        found = [self._read(info) if info is not None else NodeGpus([], 0) for info in nodes.infos()]
        free = np.zeros((max([8, *(len(each.free) for each in found)]), len(nodes)), dtype=np.int64)
        for position, each in enumerate(found[: len(nodes)]):
            free[: len(each.free), position] = each.free
        return free, np.array([each.kinds for each in found[: len(nodes)]], dtype=np.int64)

    def _refresh(self) -> None:
        table, log = self._table, self._table.use_changes
        if self._position == log.position and self._layout == table.layout:
            return
        rows: Iterable[int] | None = None
        if self._layout == table.layout:
            changed = log.since(self._position)
            rows = None if changed is None else set(changed.tolist())
        if rows is None:
            self._free = np.zeros((len(self._free), table.capacity), dtype=np.int64)
            self._kinds = np.zeros(table.capacity, dtype=np.int64)
            rows = range(table.size)
        for row in rows:
            self._write(row)
        self._layout, self._position = table.layout, log.position

    def _write(self, row: int) -> None:
        info = self._table.infos[row]
        devices = NodeGpus([], 0) if info is None else self._read(info)
        if len(devices.free) > len(self._free):
            more = np.zeros((len(devices.free) - len(self._free), self._free.shape[1]), dtype=np.int64)
            self._free = np.concatenate([self._free, more])
        self._free[:, row] = 0
        self._free[: len(devices.free), row] = devices.free
        self._kinds[row] = devices.kinds


def best_fitting(free: list[int], request: GpuRequest) -> tuple[int, ...]:
    """The devices with the least room that is enough, the first of equals; fewer than wanted where there are none."""
    fitting = sorted((room, index) for index, room in enumerate(free) if room >= request.milli)
    return tuple(sorted(index for _, index in fitting[: request.devices]))


def first_free(free: list[int], request: GpuRequest) -> tuple[int, ...]:
    """The first devices that have room."""
    fitting = [index for index, room in enumerate(free) if room >= request.milli]
    return tuple(fitting[: request.devices])
