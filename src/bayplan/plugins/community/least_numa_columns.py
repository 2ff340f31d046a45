"""LeastNUMANodes for many nodes at once; `least_numa` is the plain form, and both agree.

Machines of one make have the same cells at the same distances: a *layout*. For a layout, all combinations of cells are
written down once, the nearest first, and a request is tried on all nodes of the layout together, by size: whoever found
room drops out, so most nodes are done after the first or second size. Layouts of many cells have too many combinations
for that and are left to the plain form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import combinations
from typing import NamedTuple
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from bayplan.api.requests import Amounts
from bayplan.cluster.axes import BoolN, Int64N
from bayplan.framework import MAX_NODE_SCORE
from bayplan.plugins.community.least_numa import average_distance
from bayplan.plugins.community.numa_requests import is_host_level
from bayplan.plugins.community.numa_topology import NumaCell, NumaTopology

__all__ = ["Layout", "Layouts", "least_numa_scores"]

_MOST_CELLS = 10
"""1,023 combinations."""
Cells = npt.NDArray[np.int64]
"""(cells, nodes)"""


class _Combinations(NamedTuple):
    """Those of one size, the nearest first, and in the order of their cells where distances are equal."""

    members: Cells
    """(combinations, cells), 1 for a cell that belongs to it."""
    is_nearest: BoolN


class Layout:
    """Cells and their distances."""

    def __init__(self, number: int, cells: Sequence[NumaCell]) -> None:
        self.number = number
        self.size = len(cells)
        self.is_small = self.size <= _MOST_CELLS
        self._cells = [cell._replace(available={}) for cell in cells]

    @cached_property
    def by_size(self) -> list[_Combinations]:
        return [self._combinations(size) for size in range(1, self.size + 1)]

    def _combinations(self, size: int) -> _Combinations:
        found = sorted(
            (average_distance([self._cells[place] for place in places]), places)
            for places in combinations(range(self.size), size)
        )
        members = np.zeros((len(found), self.size), dtype=np.int64)
        for row, (_, places) in enumerate(found):
            members[row, list(places)] = 1
        distances = np.array([distance for distance, _ in found])
        return _Combinations(members, distances == distances[0])


class Layouts:
    """Every layout that some node has, by number; one that no node has any more is let go."""

    def __init__(self) -> None:
        self._by_key: WeakValueDictionary[object, Layout] = WeakValueDictionary()
        self._by_number: WeakValueDictionary[int, Layout] = WeakValueDictionary()
        self._count = 0

    def of(self, topology: NumaTopology) -> Layout:
        """Whoever asks must hold on to the answer."""
        key = tuple((cell.number, tuple(sorted(cell.costs.items()))) for cell in topology.cells)
        layout = self._by_key.get(key)
        if layout is None:
            self._count += 1
            layout = self._by_key[key] = self._by_number[self._count] = Layout(self._count, topology.cells)
        return layout

    def numbered(self, number: int) -> Layout:
        return self._by_number[number]


class _Search:
    """Nodes of one layout, changed as containers are put on them."""

    def __init__(self, layout: Layout, available: Mapping[str, Cells], not_listed: int) -> None:
        self.layout = layout
        self.available = {name: cells[: layout.size].copy() for name, cells in available.items()}
        self.listed = {name: cells != not_listed for name, cells in self.available.items()}
        count = next(iter(available.values())).shape[1]
        self.most: Int64N = np.zeros(count, dtype=np.int64)
        self.is_optimal: BoolN = np.ones(count, dtype=np.bool_)
        self.has_failed: BoolN = np.zeros(count, dtype=np.bool_)

    def place(self, requests: Amounts) -> None:
        wanted = self._wanted(requests)
        concerned = np.logical_or.reduce([relevant for _, relevant in wanted.values()]) if wanted else None
        if concerned is None:
            return
        left = np.flatnonzero(concerned & ~self.has_failed)
        for combos in self.layout.by_size:
            if not len(left):
                return
            fits = self._fits(combos.members, wanted, left)
            found = fits.any(axis=0)
            chosen = fits.argmax(axis=0)[found]
            done = left[found]
            self.most[done] = np.maximum(self.most[done], combos.members[0].sum())
            self.is_optimal[done] &= combos.is_nearest[chosen]
            self._take(combos.members[chosen].T.astype(np.bool_), wanted, done)
            left = left[~found]
        self.has_failed[left] = True

    def _wanted(self, requests: Amounts) -> dict[str, tuple[int, BoolN]]:
        """What is asked for, and on which nodes it concerns cells at all."""
        wanted = {}
        for name, amount in requests.items():
            listed = self.listed[name]
            relevant: BoolN = listed.any(axis=0) if is_host_level(name) else np.ones(listed.shape[1], dtype=np.bool_)
            if amount:
                wanted[name] = (amount, relevant)
        return wanted

    def _fits(
        self, members: Cells, wanted: Mapping[str, tuple[int, BoolN]], columns: npt.NDArray[np.intp]
    ) -> npt.NDArray[np.bool_]:
        """(combinations, nodes): where every cell lists what is wanted, and together they have it."""
        fits: npt.NDArray[np.bool_] = np.ones((len(members), len(columns)), dtype=np.bool_)
        for name, (amount, relevant) in wanted.items():
            listed = self.listed[name][:, columns]
            enough = members @ np.where(listed, self.available[name][:, columns], 0) >= amount
            if not listed.all():
                enough &= members @ (~listed).astype(np.int64) == 0
            fits &= enough | ~relevant[columns]
        return fits

    def _take(
        self,
        chosen: npt.NDArray[np.bool_],
        wanted: Mapping[str, tuple[int, BoolN]],
        columns: npt.NDArray[np.intp],
    ) -> None:
        """From the first of its cells as far as it has it, then from the next. `chosen` is (cells, nodes)."""
        for name, (amount, relevant) in wanted.items():
            cells = self.available[name]
            left = np.where(relevant[columns], amount, 0)
            for place in range(self.layout.size):
                taken = np.where(chosen[place], np.minimum(cells[place, columns], left), 0)
                cells[place, columns] -= taken
                left = left - taken


def least_numa_scores(
    layout: Layout, available: Mapping[str, Cells], parts: Sequence[Amounts], *, most_cells: Int64N, not_listed: int
) -> Int64N:
    """The scores of nodes of one layout, for the parts of a pod that are placed one after the other.

    `most_cells` is, for each node, how many cells its kubelet reckons with.
    """
    search = _Search(layout, available, not_listed)
    for requests in parts:
        search.place(requests)
    unit = MAX_NODE_SCORE // most_cells
    scores: Int64N = np.maximum(MAX_NODE_SCORE - search.most * unit + np.where(search.is_optimal, unit // 2, 0), 0)
    scores[search.has_failed] = 0
    # Nothing was asked for that concerns cells.
    scores[(search.most == 0) & ~search.has_failed] = MAX_NODE_SCORE
    return scores
