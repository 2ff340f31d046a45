"""The search for victims over batches of nodes, in one of three ways: node by node, in columns, or from kept outcomes.

The plugin decides which nodes are tried and how many. Which way is possible follows from what the filters read.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from bayplan.cluster.axes import Rows
from bayplan.cluster.node_table import NodeTable
from bayplan.cluster.nominated import NominatedRows, NominatedUsage
from bayplan.cluster.pod_info import PodInfo
from bayplan.framework.cycle import CycleState
from bayplan.framework.handle import DryRun
from bayplan.framework.status import Error, Status
from bayplan.preemption.budgets import Budgets
from bayplan.preemption.candidates import Candidate
from bayplan.preemption.column_trial import VictimsByNode, find_victims_in_columns
from bayplan.preemption.node_trial import NO_VICTIMS, NodeTrial, candidate_on, find_victims
from bayplan.preemption.outcome_cache import KnownOutcomes
from bayplan.preemption.victim_columns import VictimColumns

__all__ = ["Found", "FromCache", "InColumns", "NodeByNode", "SearchInputs", "SearchStrategy"]


class Found:
    """The result of a search: candidates (as columns or one by one), and the nodes that no eviction would help."""

    def __init__(self) -> None:
        self.candidates: list[Candidate] = []
        self.columns: list[tuple[VictimsByNode, VictimColumns]] = []
        self.refused: dict[Status, list[int]] = {}
        self.candidate_count = 0
        self.unviolating_count = 0

    def refuse(self, status: Status, rows: list[int]) -> None:
        if rows:
            self.refused.setdefault(status, []).extend(rows)

    @property
    def failure(self) -> Status | None:
        """What to say when filters failed and no node is a candidate; each different failure once."""
        failures = [status for status in self.refused if not status.is_rejected]
        messages = list(dict.fromkeys(status.message for status in failures))
        if not messages:
            return None
        reason = messages[0] if len(messages) == 1 else f"[{', '.join(messages)}]"
        return Error(f"preemption: {reason}", exception=failures[0].exception)

    def take(self, candidate: Candidate) -> None:
        self.candidates.append(candidate)
        self.count(1, int(candidate.violations == 0))

    def take_all(self, many: VictimsByNode, columns: VictimColumns) -> None:
        """Add a batch of outcomes. Its candidates are counted separately, by `count`."""
        self.columns.append((many, columns))
        if not many.has_lower.all():
            self.refuse(NO_VICTIMS, many.rows[~many.has_lower].tolist())
        for status, rows in many.refused:
            self.refuse(status, rows.tolist())

    def count(self, candidates: int, unviolating: int) -> None:
        self.candidate_count += candidates
        self.unviolating_count += unviolating


class SearchInputs:
    """What every way of searching needs for one pod."""

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


class SearchStrategy(Protocol):
    def try_rows(self, rows: Rows, found: Found) -> None:
        """Dry runs on a batch of rows. Counts their candidates in `found`; may leave the rest to `finish`."""

    def finish(self, rows: Rows, found: Found) -> None:
        """Add to `found` what `try_rows` left out. Called once, with all rows that were tried."""


class NodeByNode:
    """For filters that read the pods of a node themselves."""

    def __init__(self, runs: SearchInputs, nominated: NominatedRows) -> None:
        self._runs = runs
        self._nominated = nominated

    def try_rows(self, rows: Rows, found: Found) -> None:
        runs, pod = self._runs, self._runs.pod
        has_lower = runs.columns.has_lower(rows, pod.priority)
        found.refuse(NO_VICTIMS, rows[~has_lower].tolist())
        for row in rows[has_lower].tolist():
            pods = [p for p in runs.table.at(row).pods.values() if p.priority < pod.priority]
            nominated = self._nominated.pods_on(row, pod)
            trial = NodeTrial(runs.dry_run, runs.state, pod, runs.table, row, nominated)
            outcome = find_victims(trial, pods, runs.budgets)
            if isinstance(outcome, Status):
                found.refuse(outcome, [row])
            elif outcome[0]:
                found.take(candidate_on(runs.table, row, outcome))

    def finish(self, rows: Rows, found: Found) -> None:
        """No-op: `try_rows` reported every row."""


class InColumns:
    """For filters that read counts only."""

    def __init__(self, runs: SearchInputs, nominated: NominatedUsage | None) -> None:
        self._runs = runs
        self._nominated = nominated

    def on(self, rows: Rows) -> VictimsByNode:
        runs = self._runs
        return find_victims_in_columns(
            runs.dry_run, runs.state, runs.pod, rows, runs.columns, runs.table, self._nominated, runs.budgets
        )

    def try_rows(self, rows: Rows, found: Found) -> None:
        many = self.on(rows)
        found.take_all(many, self._runs.columns)
        unviolating = many.takes & (many.violations == 0)
        found.count(int(np.count_nonzero(many.takes)), int(np.count_nonzero(unviolating)))

    def finish(self, rows: Rows, found: Found) -> None:
        """No-op: `try_rows` reported every row."""


class FromCache:
    """As `InColumns`, with the outcomes of earlier dry runs where they still hold; read once, for all rows together."""

    def __init__(self, fresh: InColumns, outcomes: KnownOutcomes, columns: VictimColumns) -> None:
        self._fresh = fresh
        self._outcomes = outcomes
        self._columns = columns

    def try_rows(self, rows: Rows, found: Found) -> None:
        self._outcomes.complete(rows, self._fresh.on)
        found.count(*self._outcomes.counts(rows))

    def finish(self, rows: Rows, found: Found) -> None:
        found.take_all(self._outcomes.outcome(rows, self._columns), self._columns)
