"""The Score phase: what each feasible node is worth, in total and by plugin."""

from __future__ import annotations

import numpy as np

from bayplan.framework.cycle import CycleState
from bayplan.framework.runtime.call import ScoreCall
from bayplan.framework.runtime.evaluation import Evaluation
from bayplan.framework.runtime.plan import Plan
from bayplan.framework.runtime.search import FilterOutcome
from bayplan.snapshot.axes import Int64N, Rows
from bayplan.snapshot.columns import NodeColumns
from bayplan.snapshot.pod_info import PodInfo

__all__ = ["Scores", "score_feasible", "score_rows"]


class Scores:
    """Totals of some nodes, and the answer of each plugin where it was worked out by node."""

    __slots__ = ("_nodes", "extra", "raw", "shares", "totals")

    def __init__(
        self, nodes: NodeColumns, totals: Int64N, shares: dict[str, Int64N], raw: dict[str, Int64N] | None = None
    ) -> None:
        self._nodes = nodes
        self.totals = totals
        self.shares = shares
        """Normalised and weighted."""
        self.raw = {} if raw is None else raw
        """As the plugin gave it."""
        self.extra: Int64N | None = None
        """What others than plugins added to the totals."""

    def add(self, extra: Int64N) -> None:
        """More points, from others than plugins."""
        self.totals = self.totals + extra
        self.extra = extra if self.extra is None else self.extra + extra

    @property
    def rows(self) -> Rows:
        """The row of each position."""
        return self._nodes.rows

    def best(self) -> tuple[int, Rows]:
        """The highest total and the rows that have it."""
        highest = self.totals[self.totals.argmax()]
        places = (self.totals == highest).nonzero()[0]
        return int(highest), places if self._nodes.is_all else self._nodes.rows[places]


def score_feasible(
    plan: Plan, state: CycleState, pod: PodInfo, outcome: FilterOutcome, nodes: NodeColumns, asked: list[ScoreCall]
) -> Scores:
    """Score every feasible node (`nodes` are those of `outcome`), using what the evaluation already added up."""
    evaluation = plan.evaluation
    if evaluation.is_suspect:
        return score_rows(plan, state, pod, nodes, asked)
    if outcome.rows is None:
        totals = np.add(nodes.cut(evaluation.key), evaluation.offset, dtype=np.int64)
    else:
        totals = np.add(nodes.cut(evaluation.base), _normalized_total(evaluation, nodes), dtype=np.int64)
    shares: dict[str, Int64N] = {}
    answers: dict[str, Int64N] = {}
    for call in asked:
        answers[call.name] = raw = call.raw(state, pod, nodes)
        shares[call.name] = share = _share(call, state, pod, raw)
        totals += share
    return Scores(nodes, totals, shares, answers)


def _normalized_total(evaluation: Evaluation, nodes: NodeColumns) -> Int64N | int:
    total: Int64N | int = evaluation.offset
    for entry in evaluation.normalized:
        normalizer = entry.call.normalizer
        if entry.contribution is not None and normalizer is not None:
            raw = nodes.cut(entry.column.values)
            if len(raw):
                total = total + normalizer.apply(raw, normalizer.bounds(raw)) * entry.call.weight
    return total


def score_rows(plan: Plan, state: CycleState, pod: PodInfo, nodes: NodeColumns, asked: list[ScoreCall]) -> Scores:
    """Score just these nodes, each plugin by itself: for samples, for explanations, and where scores look suspect."""
    remembered = {call.name: column for call, column in plan.evaluation.scores}
    totals = np.zeros(len(nodes), dtype=np.int64)
    shares: dict[str, Int64N] = {}
    answers: dict[str, Int64N] = {}
    for call in plan.scores:
        if call.name in remembered:
            raw = nodes.cut(remembered[call.name].values)
        elif call in asked:
            raw = call.raw(state, pod, nodes)
        else:
            continue
        answers[call.name] = raw
        shares[call.name] = share = _share(call, state, pod, raw)
        totals += share
    return Scores(nodes, totals, shares, answers)


def _share(call: ScoreCall, state: CycleState, pod: PodInfo, raw: Int64N) -> Int64N:
    scores = call.normalized(state, pod, raw)
    call.check(scores)
    return scores if call.weight == 1 else scores * call.weight
