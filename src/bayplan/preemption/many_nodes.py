"""Victims on many nodes at once: the same procedure as for one node, a column step for each pod slot.

Only for filters that look at counts (see `DryRun.reads_counts_only`) and nodes whose pods no budget covers.
"""

from __future__ import annotations

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

    def candidate(self, position: int, columns: VictimColumns, table: NodeTable) -> Candidate:
        row = int(self.rows[position])
        pods = columns.pods[row]
        victims = tuple(pods[slot] for slot in np.flatnonzero(self.is_victim[:, position]).tolist())
        return Candidate(row, table.at(row).name, victims, 0)

    def cheapest(self, columns: VictimColumns) -> Rows:
        """Positions of the candidates that tie on every criterion; the order of criteria is `candidates.price`."""
        positions = np.flatnonzero(self.fits & self.is_victim.any(axis=0))
        if len(positions) < 2:
            return positions
        rows = self.rows[positions]
        victim = self.is_victim[:, positions]
        slots = len(victim)
        priority = columns.priority[:slots, rows]
        first = victim.argmax(axis=0)
        highest = priority[first, np.arange(len(rows))]
        keep = highest == highest.min()
        total = np.where(victim, priority + _PRIORITY_SHIFT, 0).sum(axis=0)
        keep = _narrow(keep, total)
        keep = _narrow(keep, victim.sum(axis=0))
        if keep.sum() > 1:
            start = np.where(victim & (priority == highest), columns.start[:slots, rows], np.inf).min(axis=0)
            keep = _narrow(keep, -start)
        return positions[keep]


def _narrow(
    keep: BoolN, cost: np.ndarray[tuple[int], np.dtype[np.int64]] | np.ndarray[tuple[int], np.dtype[np.float64]]
) -> BoolN:
    narrowed: BoolN = keep & (cost == cost[keep].min())
    return narrowed


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
    lower = columns.priority[:slots, rows] < pod.priority
    usage = columns.usage[:slots, :, rows]
    overlay = OverlayColumns(table, rows)
    overlay.used -= np.where(lower[:, None, :], usage, 0).sum(axis=0)
    overlay.count -= lower.sum(axis=0)
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
    is_victim = np.zeros_like(lower)
    for slot in range(slots):
        here = lower[slot] & fits
        if not here.any():
            continue
        amounts = np.where(here, usage[slot], 0)
        overlay.used += amounts
        overlay.count += here
        out = here & ~passes(only_counts=True)
        is_victim[slot] = out
        overlay.used -= np.where(out, amounts, 0)
        overlay.count -= out
    return ManyNodes(rows, has_lower, fits, is_victim)


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
