"""Victims on many nodes at once: the procedure of `node_trial`, with one column step for each pod slot.

Only for filters that read counts (see `DryRun.reads_counts_only`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bayplan.cluster.axes import BoolN, Int64N, Int64RN, Rows
from bayplan.cluster.node_table import NodeTable
from bayplan.cluster.nominated import NominatedUsage
from bayplan.cluster.overlay import OverlayColumns
from bayplan.cluster.pod_info import PodInfo
from bayplan.framework.cycle import CycleState
from bayplan.framework.handle import DryRun
from bayplan.framework.status import Status
from bayplan.preemption.budgets import Budgets
from bayplan.preemption.candidates import Candidate
from bayplan.preemption.victim_columns import Slots, VictimColumns

__all__ = ["VictimsByNode", "find_victims_in_columns", "no_prices"]

_PRIORITY_SHIFT = 1 << 31
_NO_ROWS: Rows = np.empty(0, dtype=np.intp)


Prices = list[npt.NDArray[Any]]
"""A column for each criterion after broken budgets, in the order of `candidates.price`."""


class VictimsByNode(NamedTuple):
    """The outcome of dry runs for each of `rows`."""

    rows: Rows
    has_lower: BoolN
    """Whether the node holds a pod of lower priority at all."""
    is_victim: Slots
    """The pods to evict."""
    takes: BoolN
    """Where the pod fits once the victims are evicted."""
    violations: Int64N
    """How many victims break a disruption budget."""
    refused: list[tuple[Status, Rows]]
    """Rows where the pod does not fit even without all pods of lower priority, by the rejection that remains."""
    prices: Prices
    """The price of the victims, where the pod fits."""

    def candidate(self, position: int, columns: VictimColumns, table: NodeTable) -> Candidate:
        row = int(self.rows[position])
        pods = columns.pods[row]
        victims = tuple(pods[slot] for slot in self.is_victim[:, position].nonzero()[0].tolist())
        return Candidate(row, table.at(row).name, victims, int(self.violations[position]))

    def cheapest(self) -> tuple[Rows, list[int]]:
        """Positions of the candidates that tie on every criterion; and how many candidates there are, then how many
        each criterion left, up to the one that left a single candidate. The order of criteria is `candidates.price`."""
        positions: Rows = self.takes.nonzero()[0]
        left = [len(positions)]
        for costs in (self.violations, *self.prices):
            if len(positions) > 1:
                found = costs[positions]
                positions = positions[found == found.min()]
            left.append(len(positions))
            if len(positions) < 2:
                break
        return positions, left


def no_prices(count: int) -> Prices:
    return [*np.zeros((3, count), dtype=np.int64), np.zeros(count)]


def _prices(is_victim: Slots, columns: VictimColumns, rows: Rows) -> Prices:
    """The highest priority among a node's victims, the sum of their priorities (each shifted above zero), their number,
    and the negated earliest start of the most important ones."""
    slots = len(is_victim)
    priority = columns.priority[:slots].take(rows, axis=1)
    highest = priority[is_victim.argmax(axis=0), np.arange(len(rows))]
    total = ((priority + _PRIORITY_SHIFT) * is_victim).sum(axis=0)
    most_important = is_victim & (priority == highest)
    earliest = np.where(most_important, columns.start[:slots].take(rows, axis=1), np.inf).min(axis=0)
    return [highest, total, is_victim.sum(axis=0), -earliest]


class ColumnTrial:
    """Dry runs on many nodes: usage is subtracted and added on an overlay, and the filters run again.

    A node with nominated pods has a second position, with those pods added; the pod must fit in both.
    """

    def __init__(
        self,
        dry_run: DryRun,
        state: CycleState,
        pod: PodInfo,
        rows: Rows,
        table: NodeTable,
        nominated: NominatedUsage | None,
    ) -> None:
        self._dry_run = dry_run
        self._state = state
        self._pod = pod
        self._rows = rows
        self._with_nominated: Rows = np.flatnonzero(nominated.count[rows]) if nominated is not None else _NO_ROWS
        self._overlay = OverlayColumns(table, self._stacked(rows))
        if nominated is not None and len(self._with_nominated):
            added, used = nominated.used.take(rows[self._with_nominated], axis=1), self._overlay.used
            used[: len(added), len(rows) :] += added
            self._overlay.count[len(rows) :] += nominated.count[rows[self._with_nominated]]

    def _stacked(self, column: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The column with the entries of nodes with nominated pods appended."""
        if not len(self._with_nominated):
            return column
        return np.concatenate([column, column.take(self._with_nominated, axis=-1)], axis=-1)

    def remove(self, amounts: Int64RN, counts: Int64N | BoolN) -> None:
        self._overlay.used[: len(amounts)] -= self._stacked(amounts)
        self._overlay.count -= self._stacked(counts)

    def passes(self, *, only_counts: bool) -> BoolN:
        """Where the pod fits, both with the nominated pods of the node and without them."""
        found = self._dry_run.passes(self._state, self._pod, self._overlay, only_counts=only_counts)
        if not len(self._with_nominated):
            return found
        passing = found[: len(self._rows)]
        passing[self._with_nominated] &= found[len(self._rows) :]
        return passing

    def refused(self, asked: BoolN) -> list[tuple[Status, Rows]]:
        """Positions by rejection, of those in `asked` where the pod does not fit: with nominated pods, else without."""
        twice = asked[self._with_nominated].nonzero()[0]
        groups = [
            (status, self._with_nominated[twice[some]]) for status, some in self._rejections(twice + len(self._rows))
        ]
        left = asked.copy()
        for _, positions in groups:
            left[positions] = False
        rest = left.nonzero()[0]
        return groups + [(status, rest[some]) for status, some in self._rejections(rest)]

    def _rejections(self, positions: Rows) -> list[tuple[Status, Rows]]:
        if not len(positions):
            return []
        part = self._overlay if len(positions) == len(self._overlay) else self._overlay.take(positions)
        return self._dry_run.rejections(self._state, self._pod, part)

    def reprieve(self, here: BoolN, amounts: Int64RN) -> BoolN:
        """Add one pod of each node again; where the incoming pod no longer fits, remove it. The removed ones."""
        used, count = self._overlay.used[: len(amounts)], self._overlay.count
        used += self._stacked(amounts)
        count += self._stacked(here)
        out = here & ~self.passes(only_counts=True)
        if out.any():
            self.remove(amounts * out, out)
        return out


def find_victims_in_columns(
    dry_run: DryRun,
    state: CycleState,
    pod: PodInfo,
    rows: Rows,
    columns: VictimColumns,
    table: NodeTable,
    nominated: NominatedUsage | None,
    budgets: Budgets,
) -> VictimsByNode:
    """The victims on each of `rows`: all pods of lower priority are removed, then reprieved slot by slot."""
    slots = int(columns.filled[rows].max()) if len(rows) else 0
    # `take` keeps slots contiguous; indexing with rows would lay the result out row by row, which is slower.
    lower: Slots = columns.priority[:slots].take(rows, axis=1) < pod.priority
    usage = columns.usage[:slots].take(rows, axis=2)
    if not lower.all():
        usage *= lower[:, None, :]
    trial = ColumnTrial(dry_run, state, pod, rows, table, nominated)
    trial.remove(usage.sum(axis=0), lower.sum(axis=0))
    has_lower: BoolN = np.asarray(lower.any(axis=0))
    refused = trial.refused(has_lower)
    fits = has_lower.copy()
    for _, positions in refused:
        fits[positions] = False
    is_victim, violations = np.zeros_like(lower), np.zeros(len(rows), dtype=np.int64)
    prices = no_prices(len(rows))
    if fits.any():
        breaks = budgets.breaking(columns, rows, lower) if budgets else None
        is_victim = _remaining_victims(trial, lower, breaks, usage) & fits
        prices = _prices(is_victim, columns, rows)
        if breaks is not None:
            violations = (is_victim & breaks).sum(axis=0)
    takes: BoolN = np.asarray(is_victim.any(axis=0))
    by_row = [(status, rows[positions]) for status, positions in refused]
    return VictimsByNode(rows, has_lower, is_victim, takes, violations, by_row, prices)


def _remaining_victims(trial: ColumnTrial, lower: Slots, breaks: Slots | None, usage: npt.NDArray[np.int64]) -> Slots:
    """Pods that remain victims after reprieve. Pods that would break a budget are reprieved first."""
    remaining = np.zeros_like(lower)
    for wave in (lower,) if breaks is None else (breaks, lower & ~breaks):
        for slot in range(len(lower)):
            if wave is lower or wave[slot].any():
                amounts = usage[slot] if wave is lower else usage[slot] * wave[slot]
                remaining[slot] |= trial.reprieve(wave[slot], amounts)
    return remaining
