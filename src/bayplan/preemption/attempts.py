"""Dry runs over some nodes after others, until there are candidates enough: one by one, in columns, or from memory.

Which nodes to try, and how many, is the plugin's business; which of the three ways, what its filters look at.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from bayplan.cluster.axes import Rows
from bayplan.cluster.node_table import NodeTable
from bayplan.cluster.nominated import Beside, NominatedRows
from bayplan.cluster.pod_info import PodInfo
from bayplan.framework.cycle import CycleState
from bayplan.framework.handle import DryRun
from bayplan.framework.status import Status
from bayplan.preemption.budgets import Budgets
from bayplan.preemption.candidates import Candidate
from bayplan.preemption.many_nodes import ManyNodes, find_victims_on
from bayplan.preemption.one_node import NO_VICTIMS, OneNodeTrial, candidate_on, find_victims
from bayplan.preemption.remembered import Outcomes
from bayplan.preemption.victim_columns import VictimColumns

__all__ = ["Attempts", "DryRuns", "Found", "FromMemory", "InColumns", "OneByOne"]


class Found:
    """What a search for victims turned up: candidates (worked out in columns or one by one) and refusals."""

    def __init__(self) -> None:
        self.candidates: list[Candidate] = []
        self.columns: list[tuple[ManyNodes, VictimColumns]] = []
        self.refused: dict[Status, list[int]] = {}
        self.candidate_count = 0
        self.unviolating_count = 0

    def refuse(self, status: Status, rows: list[int]) -> None:
        if rows:
            self.refused.setdefault(status, []).extend(rows)

    def take(self, candidate: Candidate) -> None:
        self.candidates.append(candidate)
        self.count(1, int(candidate.violations == 0))

    def take_all(self, many: ManyNodes, columns: VictimColumns) -> None:
        """Candidates that are counted apart."""
        self.columns.append((many, columns))
        if not many.has_lower.all():
            self.refuse(NO_VICTIMS, many.rows[~many.has_lower].tolist())
        for status, rows in many.refused:
            self.refuse(status, rows.tolist())

    def count(self, candidates: int, unviolating: int) -> None:
        self.candidate_count += candidates
        self.unviolating_count += unviolating


class DryRuns:
    """What dry runs for one pod are made with."""

    def __init__(
        self,
        dry_run: DryRun,
        state: CycleState,
        pod: PodInfo,
        *,
        table: NodeTable,
        columns: VictimColumns,
        budgets: Budgets,
    ) -> None:
        self.dry_run = dry_run
        self.state = state
        self.pod = pod
        self.table = table
        self.columns = columns
        self.budgets = budgets


class Attempts(Protocol):
    def make(self, rows: Rows, found: Found) -> None:
        """Dry runs on some rows: candidates are counted, at least."""

    def end(self, rows: Rows, found: Found) -> None:
        """No more rows follow: tell of those that were tried what was not told yet."""


class OneByOne:
    """For filters that look at the pods of a node themselves."""

    def __init__(self, runs: DryRuns, nominated: NominatedRows) -> None:
        self._runs = runs
        self._nominated = nominated

    def make(self, rows: Rows, found: Found) -> None:
        runs, pod = self._runs, self._runs.pod
        has_lower = runs.columns.has_lower(rows, pod.priority)
        found.refuse(NO_VICTIMS, rows[~has_lower].tolist())
        for row in rows[has_lower].tolist():
            pods = [p for p in runs.table.at(row).pods.values() if p.priority < pod.priority]
            nominated = self._nominated.pods_on(row, pod)
            trial = OneNodeTrial(runs.dry_run, runs.state, pod, runs.table, row, nominated)
            outcome = find_victims(trial, pods, runs.budgets)
            if isinstance(outcome, Status):
                found.refuse(outcome, [row])
            elif outcome[0]:
                found.take(candidate_on(runs.table, row, outcome))

    def end(self, rows: Rows, found: Found) -> None:
        """All is told."""


class InColumns:
    """For filters that look at counts only."""

    def __init__(self, runs: DryRuns, beside: Beside | None) -> None:
        self._runs = runs
        self._beside = beside

    def on(self, rows: Rows) -> ManyNodes:
        runs = self._runs
        return find_victims_on(
            runs.dry_run, runs.state, runs.pod, rows, runs.columns, runs.table, self._beside, runs.budgets
        )

    def make(self, rows: Rows, found: Found) -> None:
        many = self.on(rows)
        found.take_all(many, self._runs.columns)
        unviolating = many.takes & (many.violations == 0)
        found.count(int(np.count_nonzero(many.takes)), int(np.count_nonzero(unviolating)))

    def end(self, rows: Rows, found: Found) -> None:
        """All is told."""


class FromMemory:
    """The same where outcomes of earlier dry runs hold; what they are is read once, for all rows."""

    def __init__(self, fresh: InColumns, outcomes: Outcomes, columns: VictimColumns) -> None:
        self._fresh = fresh
        self._outcomes = outcomes
        self._columns = columns

    def make(self, rows: Rows, found: Found) -> None:
        self._outcomes.complete(rows, self._fresh.on)
        found.count(*self._outcomes.counts(rows))

    def end(self, rows: Rows, found: Found) -> None:
        found.take_all(self._outcomes.outcome(rows, self._columns), self._columns)
