"""The best nodes of a decision with what each plugin gave them: raw, normalised and weighted.

Reads what the decision left in place (remembered columns, bounds, shares) for a handful of rows; no plugin is called
again. Valid until the cluster changes.
"""

from __future__ import annotations

import msgspec
import numpy as np

from bayplan.cluster.axes import Int64N
from bayplan.framework.runtime.call import ScoreCall
from bayplan.framework.runtime.plan import Plan
from bayplan.framework.runtime.scoring import Scores
from bayplan.framework.runtime.search import FilterOutcome
from bayplan.loop.decide import Decision

__all__ = ["EXTENDER", "PluginScore", "ScoredNode", "best_nodes", "tied_nodes"]

MOST_NODES = 5
EXTENDER = "Extender"
"""The name under which the points of all extenders are added up."""
_MOST_TIES = 5


class PluginScore(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    plugin: str
    weighted: int
    normalized: int
    raw: int | None = None
    """None for extenders, which give points and nothing before."""


class ScoredNode(msgspec.Struct, frozen=True, rename="camel", gc=False):
    node: str
    total: int
    scores: tuple[PluginScore, ...]


def best_nodes(decision: Decision, *, most: int = MOST_NODES) -> list[ScoredNode]:
    """The chosen node, then the others with the highest totals. Empty when nodes were not scored."""
    plan, outcome, scores = decision.plan, decision.outcome, decision.scores
    if plan is None or not decision.node_name:
        return []
    evaluation = plan.evaluation
    if scores is not None:
        rows, totals, reader = scores.rows, scores.totals, _Reader(plan, outcome, scores)
    elif outcome is not None and outcome.passing is None and decision.feasible_nodes > 1:
        rows, totals, reader = None, evaluation.key[: evaluation.table.size], _Reader(plan, outcome, None)
    else:
        return []
    offset = evaluation.offset if rows is None else 0
    found = []
    for place in _highest(totals, min(most, decision.feasible_nodes)):
        row = place if rows is None else int(rows[place])
        found.append(ScoredNode(evaluation.table.at(row).name, int(totals[place]) + offset, reader.scores(place, row)))
    return _chosen_first(found, decision, reader, most)


def tied_nodes(decision: Decision, *, most: int = _MOST_TIES) -> list[str]:
    """Names of nodes that share the highest total, the chosen one first; empty when one is ahead of all."""
    plan = decision.plan
    if decision.ties < 2 or plan is None:
        return []
    rows = decision.scores.best()[1] if decision.scores is not None else plan.evaluation.best()[1]
    table = plan.evaluation.table
    names = (table.at(row).name for row in rows[:most].tolist())
    return [decision.node_name, *(name for name in names if name != decision.node_name)][:most]


def _highest(totals: Int64N, count: int) -> list[int]:
    """Places of the highest totals, the highest first."""
    if count >= len(totals):
        places = np.arange(len(totals))
    else:
        places = np.argpartition(totals, len(totals) - count)[len(totals) - count :]
    order: list[int] = places[np.argsort(-totals[places], kind="stable")].tolist()
    return order


def _chosen_first(found: list[ScoredNode], decision: Decision, reader: _Reader, most: int) -> list[ScoredNode]:
    """Of many ties the chosen one may not be among those picked; it is read by itself then."""
    chosen = next((node for node in found if node.node == decision.node_name), None)
    others = [node for node in found if node.node != decision.node_name]
    if chosen is None:
        row = reader.plan.evaluation.table.row_of[decision.node_name]
        chosen = ScoredNode(decision.node_name, decision.total, reader.scores(reader.place_of(row), row))
    return [chosen, *others[: most - 1]]


class _Reader:
    """What each plugin gave to a row."""

    def __init__(self, plan: Plan, outcome: FilterOutcome | None, scores: Scores | None) -> None:
        self.plan = plan
        self._rows = scores.rows if scores is not None else None
        self._shares = scores.shares if scores is not None else {}
        self._raw = scores.raw if scores is not None else {}
        self._extra = scores.extra if scores is not None else None
        self._columns = {call.name: column for call, column in plan.evaluation.scores}
        self._bounds: dict[str, tuple[int, int]] = {}
        is_shared = outcome is not None and outcome.passing is None
        for entry in plan.evaluation.normalized:
            if is_shared and entry.contribution is not None:
                self._bounds[entry.call.name] = entry.bounds

    def place_of(self, row: int) -> int:
        if self._rows is None:
            return row
        return int(np.flatnonzero(self._rows == row)[0])

    def scores(self, place: int, row: int) -> tuple[PluginScore, ...]:
        found = [self._score(call, place, row) for call in self.plan.scores]
        if self._extra is not None:
            points = int(self._extra[place])
            found.append(PluginScore(EXTENDER, points, points))
        return tuple(score for score in found if score is not None)

    def _score(self, call: ScoreCall, place: int, row: int) -> PluginScore | None:
        column = self._columns.get(call.name)
        share = self._shares.get(call.name)
        raw = int(column.values[row]) if column is not None else None
        if raw is None and call.name in self._raw:
            raw = int(self._raw[call.name][place])
        if share is not None:
            weighted = int(share[place])
        elif raw is not None:
            weighted = self._normalized(call, raw) * call.weight
        else:
            return None  # the plugin had no say for this pod
        return PluginScore(call.name, weighted, weighted // call.weight if call.weight else 0, raw)

    def _normalized(self, call: ScoreCall, raw: int) -> int:
        if call.normalizer is None:
            return raw
        bounds = self._bounds.get(call.name)
        if bounds is None:
            bounds = self._bounds[call.name] = self._find_bounds(call)
        return call.normalizer.apply_one(raw, bounds)

    def _find_bounds(self, call: ScoreCall) -> tuple[int, int]:
        """Over the nodes that were scored."""
        evaluation = self.plan.evaluation
        values = self._columns[call.name].values
        chosen = (
            values[self._rows] if self._rows is not None else values[: evaluation.table.size][evaluation.feasible()]
        )
        normalizer = call.normalizer
        return normalizer.bounds(chosen) if normalizer is not None and len(chosen) else (0, 0)
