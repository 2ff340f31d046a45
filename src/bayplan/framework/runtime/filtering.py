"""The Filter phase: which nodes can take the pod, and why the others cannot.

Kept verdicts come from the evaluation; filters that depend on the whole cluster run now, on the nodes that earlier
filters passed; nodes with nominated pods are filtered twice, with those pods and without.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bayplan.cluster.axes import BoolN, Rows
from bayplan.cluster.node_columns import NodeColumns
from bayplan.cluster.node_table import NodeTable
from bayplan.cluster.nominated import NominatedRows, NominatedUsage, Nominator
from bayplan.cluster.overlay import OverlayColumns, overlay_of
from bayplan.cluster.pod_info import PodInfo
from bayplan.framework.cycle import CycleState
from bayplan.framework.runtime.call import PluginFailure
from bayplan.framework.runtime.framework import Framework
from bayplan.framework.runtime.node_calls import FilterCall, checked
from bayplan.framework.runtime.plan import Plan
from bayplan.framework.runtime.remembered.evaluation import ShapeEvaluation
from bayplan.framework.runtime.status_groups import distinct, group_by_status
from bayplan.framework.status import Status
from bayplan.framework.verdicts import Ids, Verdicts

__all__ = ["FilterOutcome", "check_row", "check_rows", "find_feasible"]

Ranks = np.ndarray[tuple[int], np.dtype[np.uint8]]
_OVERRIDDEN = 254
"""Rank of a row whose status is kept apart: rejected because of nominated pods."""
_ONE_BY_ONE_UP_TO = 3
"""Up to so many nodes with nominated pods, filtering one by one is faster than in columns."""


class FilterOutcome:
    """The nodes that pass: those that are feasible by the evaluation, or fewer."""

    __slots__ = ("_evaluation", "_open", "_overrides", "_rank", "_rows", "count", "passing")

    def __init__(
        self,
        evaluation: ShapeEvaluation,
        rank: Ranks | None,
        open_answers: dict[int, tuple[Ids, Callable[[int], Status], str]],
        overrides: list[tuple[Status, Rows]],
    ) -> None:
        self._evaluation = evaluation
        self._rank = rank
        self._open = open_answers
        self._overrides = overrides
        self._rows: Rows | None = None
        self.passing: BoolN | None = None if rank is None else rank == 0
        """Which rows pass; None when exactly the evaluation's feasible nodes do."""
        self.count = evaluation.rank_counts[0] if self.passing is None else int(np.count_nonzero(self.passing))

    @property
    def has_all(self) -> bool:
        """Whether every row holds a node that passes."""
        return self.passing is None and self.count == self._evaluation.table.size

    def feasible_rows(self) -> Rows:
        if self._rows is None:
            # The method takes a third of the time of `np.flatnonzero`, here and below.
            self._rows = (self._evaluation.feasible() if self.passing is None else self.passing).nonzero()[0]
        return self._rows

    def feasible_nodes(self) -> NodeColumns:
        """The nodes that pass, as PreScore and Score see them."""
        table = self._evaluation.table
        return NodeColumns(table) if self.has_all else _FeasibleColumns(table, self)

    def rank(self) -> Ranks:
        if self._rank is not None:
            return self._rank
        return self._evaluation.rank[: self._evaluation.table.size]

    def first_rejections(self) -> list[int]:
        """By rank, how many nodes each filter was the first to reject; place 0 counts those that pass.

        The list is shared: never change it. Rejections because of nominated pods are those of `overrides`.
        """
        if self._rank is None:
            return self._evaluation.rank_counts
        # The filters that run in every decision have the higher ranks.
        last = max([len(self._evaluation.rank_counts), *(rank + 1 for rank in self._open)])
        counts: list[int] = np.bincount(self._rank, minlength=last)[:last].tolist()
        return counts

    @property
    def overrides(self) -> list[tuple[Status, Rows]]:
        """Nodes that are rejected because of the pods nominated to them, by status."""
        return self._overrides

    def groups(self) -> list[tuple[Status, Rows]]:
        """The rejected nodes by status."""
        if self._rank is None:
            return self._evaluation.rejected_groups()
        groups: list[tuple[Status, Rows]] = []
        counts = self._evaluation.rank_counts
        for call, column in self._evaluation.filters:
            # Filters that run in the decision can only replace rejections by others.
            if counts[call.rank]:
                rows = (self._rank == call.rank).nonzero()[0]
                groups += group_by_status(rows, column.ids[rows], column.status)
        for rank, (ids, status, name) in self._open.items():
            rows = (self._rank == rank).nonzero()[0]
            groups += [(status_.by(name), some) for status_, some in group_by_status(rows, ids[rows], status)]
        return groups + self._overrides


class _FeasibleColumns(NodeColumns):
    """The rows that pass are computed when a plugin first reads them."""

    __slots__ = ("_outcome",)

    def __init__(self, table: NodeTable, outcome: FilterOutcome) -> None:
        super().__init__(table)
        self.is_all = False
        self._outcome = outcome

    def __len__(self) -> int:
        return self._outcome.count

    def _find_rows(self) -> Rows:
        return self._outcome.feasible_rows()


def find_feasible(
    framework: Framework, plan: Plan, state: CycleState, pod: PodInfo, nominator: Nominator
) -> FilterOutcome:
    """Run Filter over every node."""
    evaluation = plan.evaluation
    evaluation.refresh(pod)
    if FilterCall.has_any_failed and evaluation.has_failures:
        _raise_failures(evaluation)
    due = plan.due_filters
    calls = [call for call in due if call.name not in state.skip_filter] if due else due
    nominated = framework.dry_runs.nominated_rows(nominator)
    usage = nominated.usage_beside(pod)
    if not calls and usage is None:
        return FilterOutcome(evaluation, None, {}, [])
    remembered: Ranks = evaluation.rank[: framework.cluster.nodes.size]
    rank: Ranks | None = None
    answers = {}
    for call in calls:
        so_far = remembered if rank is None else rank
        is_clean = rank is None and evaluation.feasible_count == len(remembered)
        ids, status = _run(framework, call, state, pod, None if is_clean else so_far)
        if ids is None:
            continue
        answers[call.rank] = ids, status, call.name
        rejected = ids != 0
        if is_clean:
            rank = rejected.view(np.uint8) * np.uint8(call.rank)
        else:
            rank = remembered.copy() if rank is None else rank
            np.putmask(rank, rejected, call.rank)
    overrides: list[tuple[Status, Rows]] = []
    if usage is not None:
        rank = remembered.copy() if rank is None else rank
        overrides = _with_nominated(framework, state, pod, nominated, usage, rank)
    return FilterOutcome(evaluation, rank, answers, overrides)


def _raise_failures(evaluation: ShapeEvaluation) -> None:
    for call, column in evaluation.filters:
        if call.has_failed and evaluation.rank_counts[call.rank]:
            for row in np.flatnonzero(evaluation.rank[: evaluation.table.size] == call.rank).tolist():
                checked(column.status(int(column.ids[row])))


def _run(
    framework: Framework, call: FilterCall, state: CycleState, pod: PodInfo, rank: Ranks | None
) -> tuple[Ids | None, Callable[[int], Status]]:
    """Run one filter: numbers of the rows that it is the first to reject, 0 elsewhere; None if it rejects no node.

    `rank` has the rejections so far, and is None if there are none.
    """
    table = framework.cluster.nodes
    candidates = None if rank is None else (rank == 0) | ((rank > call.rank) & (rank < _OVERRIDDEN))
    rows = None if candidates is None or candidates.all() else candidates.nonzero()[0]
    verdicts = call.verdicts(state, pod, NodeColumns(table, rows))
    if verdicts.accepts_all or not np.count_nonzero(verdicts.ids):
        return None, verdicts.status
    _vet(call, verdicts)
    if rows is None:
        return verdicts.ids, verdicts.status
    ids = np.zeros(table.size, dtype=np.int32)
    ids[rows] = verdicts.ids
    return ids, verdicts.status


def _vet(call: FilterCall, verdicts: Verdicts) -> None:
    """A filter may reject; anything else ends the cycle. A tuple of statuses is checked once."""
    statuses = getattr(verdicts.status, "__self__", None)
    if isinstance(statuses, tuple) and int(verdicts.ids.max()) < len(statuses):
        if statuses is call.vetted:
            return
        if all(status.is_rejected for status in statuses[1:]):
            call.vetted = statuses
            return
    for number in distinct(verdicts.ids):
        checked(call.status_of(verdicts.status, number))


def _with_nominated(
    framework: Framework, state: CycleState, pod: PodInfo, nominated: NominatedRows, usage: NominatedUsage, rank: Ranks
) -> list[tuple[Status, Rows]]:
    """Filter nodes with nominated pods again, as if those were there; such a rejection takes precedence."""

    def look(rows: Rows) -> list[tuple[Status, Rows]]:
        if len(rows) > _ONE_BY_ONE_UP_TO and framework.dry_runs.reads_counts_only(state):
            return _rejected_by_count(framework, state, pod, usage, rows)
        return _rejected_one_by_one(framework, state, pod, nominated, rows)

    terms = framework.dry_runs.remembers(state)
    if terms is None or nominated.includes(pod):
        groups = look(usage.rows)
    else:
        groups = framework.dry_runs.nominated_rejections.find(pod, usage, terms, look)
    for _, rows in groups:
        rank[rows] = _OVERRIDDEN
    return groups


def _rejected_one_by_one(
    framework: Framework, state: CycleState, pod: PodInfo, nominated: NominatedRows, rows: Rows
) -> list[tuple[Status, Rows]]:
    by_status: dict[Status, list[int]] = {}
    for row in rows.tolist():
        status = _status_with(framework, state, pod, row, nominated.pods_on(row, pod))
        if status is not None:
            by_status.setdefault(status, []).append(row)
    return [(status, np.array(rows, dtype=np.intp)) for status, rows in by_status.items()]


def _rejected_by_count(
    framework: Framework, state: CycleState, pod: PodInfo, usage: NominatedUsage, rows: Rows
) -> list[tuple[Status, Rows]]:
    """The same for filters that read counts only: all nodes at once."""
    overlay = OverlayColumns(framework.cluster.nodes, rows)
    overlay.count_in_all(usage.used.take(rows, axis=1), usage.nonzero.take(rows, axis=1), usage.count[rows])
    found = framework.dry_runs.rejections(state, pod, overlay)
    for status, _ in found:
        _checked(status)
    return [(status, rows[some]) for status, some in found]


def _status_with(framework: Framework, state: CycleState, pod: PodInfo, row: int, pods: list[PodInfo]) -> Status | None:
    table, dry_runs = framework.cluster.nodes, framework.dry_runs
    if dry_runs.follows_pods(state):
        trial, overlay = state.clone(), overlay_of(table, row)
        for other in pods:
            failure = dry_runs.run_on_pods("add_pod", trial, pod, other, overlay.add(0, other))
            if failure is not None:
                raise PluginFailure(failure)
        return _checked(dry_runs.run_filters_on(trial, pod, overlay, 0))
    node = table.at(row).copy()
    for other in pods:
        node.add_pod(other)
    return _checked(dry_runs.first_rejection(state, pod, node, lambda: _overlay_with(table, row, pods)))


def _checked(status: Status | None) -> Status | None:
    """A rejection; a failure ends the cycle."""
    if status is not None and not status.is_rejected:
        raise PluginFailure(status)
    return status


def _overlay_with(table: NodeTable, row: int, pods: list[PodInfo]) -> NodeColumns:
    overlay = overlay_of(table, row)
    for other in pods:
        overlay.add(0, other)
    return overlay


def check_rows(
    framework: Framework, state: CycleState, pod: PodInfo, rows: list[int], nominator: Nominator
) -> dict[int, Status | None]:
    """Filter a handful of rows one by one, for pods that may go to a few nodes only. None stands for passing."""
    return {row: check_row(framework, state, pod, row, nominator) for row in rows}


def check_row(framework: Framework, state: CycleState, pod: PodInfo, row: int, nominator: Nominator) -> Status | None:
    """Filter one row: its rejection, None if it passes."""
    nominated = framework.dry_runs.nominated_rows(nominator)
    if not nominated.is_empty():
        pods = nominated.pods_on(row, pod)
        status = _status_with(framework, state, pod, row, pods) if pods else None
        if status is not None:
            return status
    status = framework.dry_runs.first_rejection(state, pod, framework.cluster.nodes.at(row))
    return status if status is None else _checked(status)
