"""LeastNUMANodes: the fewer cells a pod must be spread over, and the nearer they are to each other, the better."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations, islice

from bayplan.api.requests import Amounts
from bayplan.framework import MAX_NODE_SCORE
from bayplan.plugins.community.numa_requests import NumaRequests, is_host_level
from bayplan.plugins.community.numa_topology import POD_SCOPE, NumaCell, NumaTopology

__all__ = ["average_distance", "least_numa_score", "normalized"]

_UNKNOWN_DISTANCE = 255
_MOST_COMBINATIONS = 20_000
"""Of one size. A machine has a handful of cells; an object that claims hundreds must not stop the scheduler."""


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
    """What of a request concerns cells at all."""
    listed = {name for cell in cells for name in cell.available}
    return {n: amount for n, amount in requests.items() if amount and (n in listed or not is_host_level(n))}


def _fewest(cells: Sequence[NumaCell], wanted: Amounts) -> tuple[NumaCell, ...] | None:
    """The smallest combination that has it all; of several, the one whose cells are nearest to each other."""
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
    """The cells once a container took what it wants, from the first of its cells as far as it has it."""
    left, numbers, result = dict(wanted), {cell.number for cell in chosen}, []
    for cell in cells:
        if cell.number in numbers:
            taken = {name: min(cell.available[name], amount) for name, amount in left.items()}
            left = {name: amount - taken[name] for name, amount in left.items()}
            rest = {name: amount - taken.get(name, 0) for name, amount in cell.available.items()}
            cell = cell._replace(available=rest)
        result.append(cell)
    return result
