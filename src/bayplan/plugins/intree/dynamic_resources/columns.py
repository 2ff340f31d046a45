"""Whether the claims of a pod can be allocated, for all nodes at once.

Claims that ask for the same (from one template, say) get the same answer from a node until its devices or their use
change. So an answer is kept for each distinct set of asks as a column over the nodes, and brought up to date only
for the nodes that changed. Where free or taken is all that matters about devices, counting them is the search.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence

import numpy as np
import numpy.typing as npt

from bayplan.framework import NodeInfo
from bayplan.framework.columns import NodeTable, Rows
from bayplan.framework.devices import Devices
from bayplan.plugins.intree.dynamic_resources.counters import CounterBook
from bayplan.plugins.intree.dynamic_resources.pools import NodePools
from bayplan.plugins.intree.dynamic_resources.requests import ALL, MOST_DEVICES, AllocationError, Ask, ClaimAsks
from bayplan.plugins.intree.dynamic_resources.search import InvalidPools, Search

__all__ = ["CAN", "CANNOT", "INVALID", "STALE", "UNDECIDED", "AllocationColumns", "signature_of"]

CAN, CANNOT, INVALID, UNDECIDED = 0, 1, 2, 3
"""Codes of a column. UNDECIDED stands where a search ended in an error: it is run again to say which."""
STALE = 4
"""Of rows without a node, and within this module of rows that are to be worked out."""
_MOST_COLUMNS = 64

Codes = npt.NDArray[np.uint8]


def signature_of(claims: Sequence[ClaimAsks]) -> Hashable:
    """Equal for claims that get the same answer everywhere."""
    return tuple(
        (
            tuple((listed.name, tuple(_meaning(ask) for ask in listed.asks)) for listed in asks.requests),
            tuple(
                (tuple(each.requests or ()), each.match_attribute, each.distinct_attribute)
                for each in asks.claim.spec.devices.constraints or ()
            ),
        )
        for asks in claims
    )


def _meaning(ask: Ask) -> Hashable:
    return (ask.full_name, ask.mode, ask.count, ask.has_admin_access, tuple(ask.capacity.items()), ask.signature)


class AllocationColumns:
    """The columns of all sets of asks that came up lately."""

    def __init__(self, devices: Devices, table: NodeTable, pools: NodePools) -> None:
        self._devices, self._table, self._pools = devices, table, pools
        self._columns: OrderedDict[Hashable, _Column] = OrderedDict()

    def codes(self, claims: Sequence[ClaimAsks], rows: Rows, check_deadline: Callable[[str], None]) -> Codes:
        """The code of each row. Raises what `check_deadline` raises."""
        signature = signature_of(claims)
        column = self._columns.get(signature)
        if column is None:
            column = self._columns[signature] = _Column(self._devices, self._table)
            if len(self._columns) > _MOST_COLUMNS:
                self._columns.popitem(last=False)
        self._columns.move_to_end(signature)
        column.follow()
        found = column.codes.take(rows)
        stale = rows[found == STALE]
        if len(stale):
            counters = CounterBook(self._devices.use)
            simple, without_devices = _only_ask(claims), STALE
            for row in stale.tolist():
                info = self._table.infos[row]
                if info is None:
                    continue
                is_bare = not self._pools.of(info).pools
                if not is_bare or without_devices == STALE:
                    column.codes[row] = answer = self._answer(claims, simple, info, counters, check_deadline)
                    without_devices = answer if is_bare else without_devices
                else:
                    # All nodes without devices get the same answer.
                    column.codes[row] = without_devices
            found = column.codes.take(rows)
        return found

    def _answer(
        self,
        claims: Sequence[ClaimAsks],
        simple: Ask | None,
        node: NodeInfo,
        counters: CounterBook,
        check_deadline: Callable[[str], None],
    ) -> int:
        there = self._pools.of(node)
        try:
            if simple is not None and there.is_plain:
                return self._count(simple, node, check_deadline)
            search = Search(node, there, claims, self._devices.use, counters, check_deadline)
            return CANNOT if search.run() is None else CAN
        except InvalidPools:
            return INVALID
        except AllocationError:
            return UNDECIDED

    def _count(self, ask: Ask, node: NodeInfo, check_deadline: Callable[[str], None]) -> int:
        check_deadline(node.name)
        left, taken = ask.count, self._devices.use.dedicated
        for device, _ in self._pools.of(node).devices:
            if device.id in taken or not ask.selects(device) or not ask.tolerates(device):
                continue
            if device.slice.is_chosen_by_device and not device.nodes.includes(node.name, node.labels):
                continue
            left -= 1
            if left <= 0:
                return CAN
        return CANNOT


def _only_ask(claims: Sequence[ClaimAsks]) -> Ask | None:
    """The ask of claims that together want a number of whole devices, and nothing more."""
    listed = [each for asks in claims for each in asks.requests]
    if len(listed) != 1 or len(listed[0].asks) != 1 or any(a.claim.spec.devices.constraints for a in claims):
        return None
    ask = listed[0].asks[0]
    is_number = ask.mode != ALL and 1 <= ask.count <= MOST_DEVICES
    return ask if is_number and not ask.has_admin_access and not ask.capacity else None


class _Column:
    """One code a row, stale where the node or its devices changed."""

    __slots__ = ("_devices", "_nodes", "_slices", "_table", "_use", "codes")

    def __init__(self, devices: Devices, table: NodeTable) -> None:
        self._devices, self._table = devices, table
        self._nodes = self._slices = self._use = -1
        self.codes: Codes = np.full(table.size, STALE, dtype=np.uint8)

    def follow(self) -> None:
        table, devices = self._table, self._devices
        if len(self.codes) < table.size:
            more = np.full(max(table.size, 2 * len(self.codes)) - len(self.codes), STALE, dtype=np.uint8)
            self.codes = np.concatenate([self.codes, more])
        if self._nodes != table.node_changes.position:
            rows = table.node_changes.since(self._nodes)
            self._nodes = table.node_changes.position
            self.codes[slice(None) if rows is None else rows] = STALE
        if self._slices != devices.slice_changes.position:
            self._forget(devices.slice_changes.since(self._slices))
            self._slices = devices.slice_changes.position
        if self._use != devices.use_changes.position:
            self._forget(devices.use_changes.since(self._use))
            self._use = devices.use_changes.position

    def _forget(self, names: set[str] | None) -> None:
        if names is None or "" in names:
            self.codes[:] = STALE
            return
        for name in names:
            row = self._table.row_of.get(name)
            if row is not None:
                self.codes[row] = STALE
