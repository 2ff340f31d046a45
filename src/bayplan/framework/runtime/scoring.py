"""The Score phase: the score of each feasible node, in total and by plugin."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from bayplan.cluster.axes import BoolN, Int64N, Rows
from bayplan.cluster.node_columns import NodeColumns
from bayplan.cluster.pod_info import PodInfo
from bayplan.framework.cycle import CycleState
from bayplan.framework.normalize import MAX_NODE_SCORE
from bayplan.framework.promises import Totals
from bayplan.framework.runtime.filtering import FilterOutcome
from bayplan.framework.runtime.node_calls import ScoreCall
from bayplan.framework.runtime.plan import Plan
from bayplan.framework.runtime.remembered.evaluation import ShapeEvaluation
from bayplan.framework.runtime.remembered.leading_rows import best_of

__all__ = ["Scores", "score_feasible", "score_rows"]


class RawScores(Protocol):
    """Raw scores of one plugin by position."""

    def __getitem__(self, position: int, /) -> Any: ...


class _RawByValue:
    """Raw scores by the values of a label: read for a handful of nodes, if at all."""

    __slots__ = ("_bins", "_scores")

    def __init__(self, scores: list[int], bins: Rows) -> None:
        self._scores = scores
        self._bins = bins

    def __getitem__(self, position: int, /) -> Any:
        return self._scores[self._bins[position]]


class Scores:
    """Totals of some nodes, and the scores of each plugin where they were computed by node."""

    __slots__ = ("_nodes", "extra", "raw", "shares", "totals")

    def __init__(
        self, nodes: NodeColumns, totals: Totals, shares: dict[str, Totals], raw: dict[str, RawScores] | None = None
    ) -> None:
        self._nodes = nodes
        self.totals = totals
        self.shares = shares
        """Normalised and weighted."""
        self.raw = {} if raw is None else raw
        """Before normalising."""
        self.extra: Int64N | None = None
        """What extenders added to the totals."""

    def add(self, extra: Int64N) -> None:
        """Add the scores of extenders."""
        self.totals = self.totals + extra
        self.extra = extra if self.extra is None else self.extra + extra

    @property
    def rows(self) -> Rows:
        """The row of each position."""
        return self._nodes.rows

    def best(self) -> tuple[int, Rows]:
        """The highest total and the rows that have it."""
        highest, places = best_of(self.totals)
        return highest, places if self._nodes.is_all else self._nodes.rows[places]


class _BaseScores(Scores):
    """The totals of the evaluation without additions, cut to the nodes that pass when first read."""

    __slots__ = ("_evaluation", "_passing", "_totals")

    def __init__(self, nodes: NodeColumns, evaluation: ShapeEvaluation, passing: BoolN) -> None:
        self._nodes, self._evaluation, self._passing = nodes, evaluation, passing
        self._totals: Totals | None = None
        self.shares, self.raw, self.extra = {}, {}, None

    @property
    def totals(self) -> Totals:  # type: ignore[override]
        if self._totals is None:
            self._totals = _base_totals(self._evaluation, self._nodes)
        return self._totals

    def best(self) -> tuple[int, Rows]:
        base = self._evaluation.base[: len(self._passing)]
        # A product takes a third of the time of `where`. It is ambiguous only where no node has a point.
        highest, rows = best_of(base * self._passing)
        if not highest:
            rows = np.flatnonzero(self._passing)
        return highest + self._evaluation.offset, rows


def score_feasible(
    plan: Plan, state: CycleState, pod: PodInfo, outcome: FilterOutcome, nodes: NodeColumns, calls: list[ScoreCall]
) -> Scores:
    """Score every feasible node (`nodes` are those of `outcome`), using what the evaluation already added up."""
    evaluation = plan.evaluation
    if evaluation.is_suspect:
        return score_rows(plan, state, pod, nodes, calls)
    if outcome.passing is not None and not calls and not evaluation.has_shares:
        return _BaseScores(nodes, evaluation, outcome.passing)
    if outcome.passing is None:
        totals = nodes.cut(evaluation.key) + evaluation.key.dtype.type(evaluation.offset)
    else:
        totals = _base_totals(evaluation, nodes)
    shares: dict[str, Totals] = {}
    answers: dict[str, RawScores] = {}
    for call in calls:
        by_value = call.by_value(state, pod, nodes)
        if by_value is None:
            raw = plan.raw_scores(call, state, pod, nodes)
            share = call.share(state, pod, raw, totals.dtype)
            answers[call.name] = raw
        else:
            share = nodes.by_label(by_value.key, _weighted(call, by_value.normalized, totals.dtype))
            answers[call.name] = _RawByValue(by_value.scores, nodes.label_bins(by_value.key))
        shares[call.name] = share
        totals += share
    return Scores(nodes, totals, shares, answers)


def _base_totals(evaluation: ShapeEvaluation, nodes: NodeColumns) -> Totals:
    """What the evaluation added up, normalised over these nodes."""
    totals: Totals = nodes.cut(evaluation.base) + evaluation.base.dtype.type(evaluation.offset)
    for entry in evaluation.normalized:
        normalizer = entry.call.normalizer
        if entry.contribution is not None and normalizer is not None:
            raw = nodes.cut(entry.column.values)
            if len(raw):
                share = normalizer.apply(raw, normalizer.bounds(raw)) * entry.call.weight
                totals += share.astype(totals.dtype)
    return totals


def _weighted(call: ScoreCall, scores: list[int], dtype: Any) -> Totals:
    if min(scores) < 0 or max(scores) > MAX_NODE_SCORE:
        call.check(np.array(scores, dtype=np.int64))
    weight = call.weight
    return np.array([score * weight for score in scores], dtype=dtype)


def score_rows(plan: Plan, state: CycleState, pod: PodInfo, nodes: NodeColumns, calls: list[ScoreCall]) -> Scores:
    """Score just these nodes, each plugin by itself: for samples, for explanations, and where scores look suspect."""
    remembered = {call.name: column for call, column in plan.evaluation.scores}
    totals = np.zeros(len(nodes), dtype=np.int64)
    shares: dict[str, Totals] = {}
    answers: dict[str, RawScores] = {}
    for call in plan.scores:
        if call.name in remembered:
            raw = nodes.cut(remembered[call.name].values)
        elif call in calls:
            raw = plan.raw_scores(call, state, pod, nodes)
        else:
            continue
        answers[call.name] = raw
        shares[call.name] = share = call.share(state, pod, raw, np.int64)
        totals += share
    return Scores(nodes, totals, shares, answers)
