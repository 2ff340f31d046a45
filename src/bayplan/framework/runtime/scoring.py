"""The Score phase: what each feasible node is worth, in total and by plugin."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from bayplan.framework.cycle import CycleState
from bayplan.framework.runtime.call import PluginFailure, ScoreCall, call_plugin
from bayplan.framework.runtime.evaluation import Evaluation
from bayplan.framework.runtime.framework import Framework
from bayplan.framework.runtime.plan import Plan
from bayplan.framework.runtime.search import FilterOutcome
from bayplan.framework.status import Error, Status
from bayplan.snapshot.axes import Int64N, Rows
from bayplan.snapshot.columns import NodeColumns
from bayplan.snapshot.node_table import NodeTable
from bayplan.snapshot.pod_info import PodInfo

__all__ = ["Scores", "run_pre_scores", "score_feasible", "score_rows"]


class _FeasibleColumns(NodeColumns):
    """The feasible nodes; which rows those are is worked out when a plugin first looks."""

    def __init__(self, table: NodeTable, find_rows: Callable[[], Rows]) -> None:
        self.table = table
        self.is_all = False
        self._find_rows = find_rows

    @cached_property
    def _cut(self) -> slice | Rows:
        return self._find_rows()


class Scores:
    """Totals of some rows, and the weighted share of each plugin where it was worked out by row."""

    __slots__ = ("rows", "shares", "totals")

    def __init__(self, rows: Rows, totals: Int64N, shares: dict[str, Int64N]) -> None:
        self.rows = rows
        self.totals = totals
        self.shares = shares


def run_pre_scores(
    framework: Framework, plan: Plan, state: CycleState, pod: PodInfo, find_rows: Callable[[], Rows]
) -> list[ScoreCall]:
    """Run the PreScores that are due; the scores that have to be asked for this decision."""
    if not plan.open_scores:
        return []
    nodes = _FeasibleColumns(framework.snapshot.nodes, find_rows)
    for plugin in plan.pre_scores:
        answer = call_plugin(plugin, "pre_score", framework.complain, state, pod, nodes)
        if isinstance(answer, Status) and answer.is_skip:
            state.skip_score.add(plugin.name)
        elif isinstance(answer, Status) and not answer.is_success:
            text = f'running PreScore plugin "{plugin.name}": {answer.message}'
            raise PluginFailure(Error(text, exception=answer.exception).by(plugin.name))
    return [call for call in plan.open_scores if call.name not in state.skip_score]


def score_feasible(
    framework: Framework, plan: Plan, state: CycleState, pod: PodInfo, outcome: FilterOutcome, asked: list[ScoreCall]
) -> Scores:
    """Score every feasible node, using what the evaluation already added up."""
    rows = outcome.feasible_rows()
    evaluation = plan.evaluation
    if any(column.is_suspect for _, column in evaluation.scores):
        return score_rows(framework, plan, state, pod, rows, asked)
    if outcome.rows is None:
        totals = evaluation.key[rows] + evaluation.offset
    else:
        totals = evaluation.base[rows] + _normalized_total(evaluation, rows)
    shares: dict[str, Int64N] = {}
    view = NodeColumns(framework.snapshot.nodes, rows)
    for call in asked:
        shares[call.name] = share = _share(call, state, pod, call.raw(state, pod, view))
        totals += share
    return Scores(rows, totals, shares)


def _normalized_total(evaluation: Evaluation, rows: Rows) -> Int64N | int:
    total: Int64N | int = evaluation.offset
    for entry in evaluation.normalized:
        normalizer = entry.call.normalizer
        if entry.contribution is not None and normalizer is not None:
            raw = entry.column.values[rows]
            if len(raw):
                total = total + normalizer.apply(raw, normalizer.bounds(raw)) * entry.call.weight
    return total


def score_rows(
    framework: Framework, plan: Plan, state: CycleState, pod: PodInfo, rows: Rows, asked: list[ScoreCall]
) -> Scores:
    """Score just these rows, each plugin by itself: for samples, for explanations, and where scores look suspect."""
    view = NodeColumns(framework.snapshot.nodes, rows)
    remembered = {call.name: column for call, column in plan.evaluation.scores}
    totals = np.zeros(len(rows), dtype=np.int64)
    shares: dict[str, Int64N] = {}
    for call in plan.scores:
        if call.name in remembered:
            raw = remembered[call.name].values[rows]
        elif call in asked:
            raw = call.raw(state, pod, view)
        else:
            continue
        shares[call.name] = share = _share(call, state, pod, raw)
        totals += share
    return Scores(rows, totals, shares)


def _share(call: ScoreCall, state: CycleState, pod: PodInfo, raw: Int64N) -> Int64N:
    scores = call.normalized(state, pod, raw)
    call.check(scores)
    return scores if call.weight == 1 else scores * call.weight
