"""LeastNUMANodes: the fewer and nearer NUMA cells a pod needs, the higher the score; for one node and for many at once.

Machines of one make have the same cells at the same distances: a *layout*. For a layout, all combinations of cells are
written down once, the nearest first, and a request is tried on all nodes of the layout together, by size: a node with
room drops out, so most nodes are done after the first or second size. Layouts of many cells have too many combinations
for that; their nodes are scored one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import combinations, islice
from typing import NamedTuple
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from bayplan.framework import MAX_NODE_SCORE
from bayplan.framework.columns import BoolN, Int64N
from bayplan.framework.objects import Amounts
from bayplan.plugins.community.node_resource_topology_match.requests import NumaRequests, is_host_level
from bayplan.plugins.community.node_resource_topology_match.topology import POD_SCOPE, NumaCell, NumaTopology

__all__ = ["Layout", "Layouts", "average_distance", "least_numa_score", "least_numa_scores", "normalized"]

_UNKNOWN_DISTANCE = 255
_MOST_COMBINATIONS = 20_000
"""Limit on the combinations of one size. A machine has few cells; an object with hundreds must not block the scheduler.
"""


def least_numa_score(topology: NumaTopology, asked: NumaRequests) -> int:
    cells = list(topology.cells)
    parts = [asked.whole] if topology.settings.scope == POD_SCOPE else [each.requests for each in asked.containers]
    needed = [wanted for wanted in (_on_cells(cells, part) for part in parts) if wanted]
    if not needed:
        return MAX_NODE_SCORE
    most, is_optimal = 0, True
    for wanted in needed:
        chosen = _fewest(cells, wanted)
        if chosen is None:
            return 0
        most = max(most, len(chosen))
        is_optimal = is_optimal and average_distance(chosen) == _nearest(cells, len(chosen))
        cells = _without(cells, chosen, wanted)
    return normalized(most, topology.settings.max_numa_nodes, is_optimal=is_optimal)


def normalized(count: int, most: int, *, is_optimal: bool) -> int:
    """From the number of cells to a score; never below zero."""
    unit = MAX_NODE_SCORE // most
    return max(MAX_NODE_SCORE - count * unit + (unit // 2 if is_optimal else 0), 0)


def _on_cells(cells: Iterable[NumaCell], requests: Amounts) -> Amounts:
    """The part of a request that concerns cells."""
    listed = {name for cell in cells for name in cell.available}
    return {n: amount for n, amount in requests.items() if amount and (n in listed or not is_host_level(n))}


def _fewest(cells: Sequence[NumaCell], wanted: Amounts) -> tuple[NumaCell, ...] | None:
    """The smallest combination with enough of everything; of several, the one whose cells are nearest to each other."""
    able = [cell for cell in cells if all(name in cell.available for name in wanted)]
    for size in range(1, len(able) + 1):
        fitting = [c for c in islice(combinations(able, size), _MOST_COMBINATIONS) if _has_all(c, wanted)]
        if fitting:
            return min(fitting, key=average_distance)
    return None


def _has_all(chosen: Iterable[NumaCell], wanted: Amounts) -> bool:
    chosen = tuple(chosen)
    return all(sum(cell.available[name] for cell in chosen) >= amount for name, amount in wanted.items())


def _nearest(cells: Sequence[NumaCell], size: int) -> float:
    return min(average_distance(c) for c in islice(combinations(cells, size), _MOST_COMBINATIONS))


def average_distance(cells: Sequence[NumaCell]) -> float:
    """The mean over all ordered pairs, a cell with itself included."""
    costs = [cell.costs.get(other.number, _UNKNOWN_DISTANCE) for cell in cells for other in cells]
    return sum(costs) / len(costs)


def _without(cells: Sequence[NumaCell], chosen: Sequence[NumaCell], wanted: Amounts) -> list[NumaCell]:
    """The cells after a container took its request, from the first of its cells as far as it has it, then from the
    next."""
    left, numbers, result = dict(wanted), {cell.number for cell in chosen}, []
    for cell in cells:
        if cell.number in numbers:
            taken = {name: min(cell.available[name], amount) for name, amount in left.items()}
            left = {name: amount - taken[name] for name, amount in left.items()}
            rest = {name: amount - taken.get(name, 0) for name, amount in cell.available.items()}
            cell = cell._replace(available=rest)
        result.append(cell)
    return result


_MOST_CELLS = 10
"""1,023 combinations."""
Cells = npt.NDArray[np.int64]
"""(cells, nodes)"""


class _Combinations(NamedTuple):
    """The combinations of one size, the nearest first, and in the order of their cells where distances are equal."""

    members: Cells
    """(combinations, cells), 1 for a cell that belongs to the combination."""
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
    """Every layout that some node has, by number; unused ones are dropped."""

    def __init__(self) -> None:
        self._by_key: WeakValueDictionary[object, Layout] = WeakValueDictionary()
        self._by_number: WeakValueDictionary[int, Layout] = WeakValueDictionary()
        self._count = 0

    def of(self, topology: NumaTopology) -> Layout:
        """The layout with these cells. The caller must keep a reference to it."""
        key = tuple((cell.number, tuple(sorted(cell.costs.items()))) for cell in topology.cells)
        layout = self._by_key.get(key)
        if layout is None:
            self._count += 1
            layout = self._by_key[key] = self._by_number[self._count] = Layout(self._count, topology.cells)
        return layout

    def numbered(self, number: int) -> Layout:
        return self._by_number[number]


class _Search:
    """Nodes of one layout, changed as containers are placed on them."""

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
        """The requested amounts, and the nodes on which they concern cells."""
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
        """(combinations, nodes): where every cell lists the resources, and together they have enough."""
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
        """Subtract from the first of the cells as far as it has it, then from the next. `chosen` is (cells, nodes)."""
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

    `most_cells` is, for each node, the maximum number of cells of its kubelet.
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
