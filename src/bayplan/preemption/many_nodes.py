"""Victims on many nodes at once: the same procedure as for one node, a column step for each pod slot.

Only for filters that look at counts (see `DryRun.reads_counts_only`) and nodes whose pods no budget covers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bayplan.framework.cycle import CycleState
from bayplan.framework.handle import DryRun
from bayplan.preemption.candidates import Candidate
from bayplan.preemption.victim_columns import VictimColumns
from bayplan.snapshot.axes import BoolN, Int64N, Rows
from bayplan.snapshot.node_table import NodeTable
from bayplan.snapshot.overlay import OverlayColumns
from bayplan.snapshot.pod_info import PodInfo

__all__ = ["ManyNodes", "find_victims_on"]

_PRIORITY_SHIFT = 1 << 31


class ManyNodes(NamedTuple):
    """The outcome for each of `rows`."""

    rows: Rows
    has_lower: BoolN
    """Whether the node holds a pod of lower priority at all."""
    fits: BoolN
    """Whether the pod fits once all of those left."""
    is_victim: np.ndarray[tuple[int, int], np.dtype[np.bool_]]
    """(slot, position): who has to leave."""

    takes: BoolN
    """Where the pod fits once some victims left."""

    def candidate(self, position: int, columns: VictimColumns, table: NodeTable) -> Candidate:
        row = int(self.rows[position])
        pods = columns.pods[row]
        victims = tuple(pods[slot] for slot in np.flatnonzero(self.is_victim[:, position]).tolist())
        return Candidate(row, table.at(row).name, victims, 0)

    def cheapest(self, columns: VictimColumns) -> Rows:
        """Positions of the candidates that tie on every criterion; the order of criteria is `candidates.price`."""
        positions = np.flatnonzero(self.takes)
        if len(positions) < 2:
            return positions
        victim = self.is_victim.take(positions, axis=1)
        slots = len(victim)
        priority = columns.priority[:slots].take(self.rows[positions], axis=1)
        highest = priority[victim.argmax(axis=0), np.arange(len(positions))]
        costs: list[Callable[[_Slots, _Priorities, Rows], _Costs]] = [
            lambda victim, priority, rows: ((priority + _PRIORITY_SHIFT) * victim).sum(axis=0),
            lambda victim, priority, rows: victim.sum(axis=0),
            lambda victim, priority, rows: -_earliest(victim, priority, columns.start[:slots].take(rows, axis=1)),
        ]
        keep = np.flatnonzero(highest == highest.min())
        for cost in costs:
            positions, victim, priority = positions[keep], victim.take(keep, axis=1), priority.take(keep, axis=1)
            if len(positions) == 1:
                return positions
            found = cost(victim, priority, self.rows[positions])
            keep = np.flatnonzero(found == found.min())
        return positions[keep]


_Slots = np.ndarray[tuple[int, int], np.dtype[np.bool_]]
_Priorities = np.ndarray[tuple[int, int], np.dtype[np.int64]]
_Starts = np.ndarray[tuple[int, int], np.dtype[np.float64]]
_Costs = np.ndarray[tuple[int], np.dtype[np.int64]] | np.ndarray[tuple[int], np.dtype[np.float64]]


def _earliest(victim: _Slots, priority: _Priorities, start: _Starts) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """When the first of the most important victims started; those tie on the highest priority already."""
    highest = priority[victim.argmax(axis=0), np.arange(priority.shape[1])]
    earliest: np.ndarray[tuple[int], np.dtype[np.float64]] = np.where(
        victim & (priority == highest), start, np.inf
    ).min(axis=0)
    return earliest


def find_victims_on(
    dry_run: DryRun,
    state: CycleState,
    pod: PodInfo,
    rows: Rows,
    columns: VictimColumns,
    table: NodeTable,
    nominated: dict[int, list[PodInfo]],
) -> ManyNodes:
    slots = int(columns.filled[rows].max()) if len(rows) else 0
    # `take`, because what an index with rows gives is laid out row by row and slow to work on.
    lower = columns.priority[:slots].take(rows, axis=1) < pod.priority
    usage = columns.usage[:slots].take(rows, axis=2)
    if not lower.all():
        usage *= lower[:, None, :]
    overlay = OverlayColumns(table, rows)
    used, count = overlay.used[: usage.shape[1]], overlay.count
    used -= usage.sum(axis=0)
    count -= lower.sum(axis=0)
    added = _nominated_usage(rows, nominated, overlay) if nominated else None

    def passes(*, only_counts: bool) -> BoolN:
        passing = dry_run.passes(state, pod, overlay, only_counts=only_counts)
        if added is None:
            return passing
        overlay.used += added[0]
        overlay.count += added[1]
        passing = passing & dry_run.passes(state, pod, overlay, only_counts=True)
        overlay.used -= added[0]
        overlay.count -= added[1]
        return passing

    has_lower: BoolN = np.asarray(lower.any(axis=0))
    fits = passes(only_counts=False) & has_lower
    is_victim, takes = np.zeros_like(lower), np.zeros_like(fits)
    for slot in range(slots):
        here, amounts = lower[slot], usage[slot]
        used += amounts
        count += here
        out = here & ~passes(only_counts=True)
        if out.any():
            # What does not fit beside the pod stays out. Nodes where nothing would help are wrong here and left out
            # at the end.
            used -= amounts * out
            count -= out
            is_victim[slot] = out & fits
            takes |= is_victim[slot]
    return ManyNodes(rows, has_lower, fits, is_victim, takes)


def _nominated_usage(
    rows: Rows, nominated: dict[int, list[PodInfo]], overlay: OverlayColumns
) -> tuple[Int64N, Int64N] | None:
    """What the pods nominated to these nodes would use."""
    used = np.zeros_like(overlay.used)
    count = np.zeros_like(overlay.count)
    for position, row in enumerate(rows.tolist()):
        for other in nominated.get(row, ()):
            count[position] += 1
            for place, amount in other.usage.vector:
                used[place, position] += amount
    return (used, count) if count.any() else None
