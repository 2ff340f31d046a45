"""What each plugin gave to a node in a decision: raw, normalised and weighted.

Reads what the decision left in place (remembered columns, bounds, shares) for a handful of rows; only scores that the
engine adds up jointly are computed again, for those rows. To be read before anything changes the cluster.

`PointsReader` is for any number of nodes. `leading_pair` is on the path of every pod: the chosen node and the
runner-up, as tuples of numbers that records share.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bayplan.cluster.axes import Int64N
from bayplan.framework.runtime.node_calls import ScoreCall
from bayplan.framework.runtime.plan import Plan
from bayplan.framework.runtime.remembered.evaluation import ShapeEvaluation
from bayplan.framework.runtime.remembered.node_only_evaluation import Normalized
from bayplan.framework.runtime.scoring import Scores
from bayplan.loop.decide import Decision
from bayplan.loop.record import Points, ScoredNode

__all__ = [
    "EXTENDER",
    "NOTHING_SCORED",
    "LeadingPair",
    "Numbers",
    "PointsReader",
    "best_nodes",
    "leading_pair",
    "points_of",
    "tied_nodes",
    "weighted_points",
]

MOST_NODES = 5
EXTENDER = "Extender"
"""Under this name go the points of all extenders together."""
_MOST_TIES = 5
_KEPT_LAYOUTS = 4096
_MOST_KEPT = 20_000

_NOTHING = (None, None)
_JOINT, _FINAL, _NORMALIZED, _OPEN = range(4)
Numbers = tuple[int | None, ...]
"""Raw and weighted of each plugin by turns; None, None where a plugin skipped the pod."""


LeadingPair = tuple[Sequence[ScoreCall], Numbers, str, int, Numbers]
"""The scores; numbers of the chosen node; name, total and numbers of the runner-up, without a name if there is none."""
NOTHING_SCORED: LeadingPair = ((), (), "", 0, ())


class _Layout:
    """Where the points of each plugin are found in the evaluations of one kind of pod."""

    __slots__ = ("calls", "sources")

    def __init__(self, calls: list[ScoreCall], evaluation: ShapeEvaluation) -> None:
        self.calls = calls
        columns = [call.name for call, _ in evaluation.score_columns]
        normalized = [entry.call.name for entry in evaluation.normalized]
        joined = [call.name for call in evaluation.combined.calls] if evaluation.combined is not None else []
        self.sources: list[tuple[int, int, str, int]] = []
        """(kind, weight, plugin, place among those of the kind) of each of `calls`."""
        for call in calls:
            kinds = ((_JOINT, joined), (_NORMALIZED, normalized), (_FINAL, columns), (_OPEN, [call.name]))
            kind, names = next((kind, names) for kind, names in kinds if call.name in names)
            self.sources.append((kind, call.weight, call.name, names.index(call.name)))


_layouts: dict[int, _Layout] = {}
_kept_numbers: dict[Numbers, Numbers] = {}


def _layout_of(plan: Plan) -> _Layout:
    outlined = plan.outline.scores
    calls = plan.scores if outlined is None else outlined.scores
    found = _layouts.get(id(calls))
    if found is None or found.calls is not calls:
        if len(_layouts) >= _KEPT_LAYOUTS:
            _layouts.clear()
        found = _layouts[id(calls)] = _Layout(calls, plan.evaluation)
    return found


class PointsReader:
    def __init__(self, plan: Plan, scores: Scores | None, *, is_shared: bool) -> None:
        """`is_shared`: the nodes that pass are the feasible ones of the evaluation, whose normalised scores hold."""
        self._layout = _layout_of(plan)
        self._evaluation = plan.evaluation
        self._scores = scores
        self._is_shared = is_shared
        self._bounds: dict[str, tuple[int, int]] = {}

    @property
    def calls(self) -> Sequence[ScoreCall]:
        return self._layout.calls

    def numbers(self, place: int, row: int) -> Numbers:
        """Of the node in a row; `place` is its position among the nodes that were scored."""
        layout, evaluation, scores = self._layout, self._evaluation, self._scores
        found = _read(layout, evaluation, row)
        if scores is None:
            return _shared(tuple(found))
        for place_of_call, (kind, _, name, number) in enumerate(layout.sources):
            some = slice(2 * place_of_call, 2 * place_of_call + 2)
            if name in scores.shares:
                found[some] = (int(scores.raw[name][place]), int(scores.shares[name][place]))
            elif kind == _NORMALIZED and not self._is_shared:
                entry = evaluation.normalized[number]
                if entry.contribution is not None:
                    found[some] = self._normalized(entry, row)
        if scores.extra is not None:
            found += (None, int(scores.extra[place]))
        return _shared(tuple(found))

    def _normalized(self, entry: Normalized, row: int) -> tuple[int, int]:
        """Normalised over the nodes that were scored."""
        call, normalizer = entry.call, entry.call.normalizer
        raw = entry.column.values.item(row)
        assert normalizer is not None and self._scores is not None  # only such scores are kept as Normalized
        bounds = self._bounds.get(call.name)
        if bounds is None:
            bounds = self._bounds[call.name] = normalizer.bounds(entry.column.values[self._scores.rows])
        return raw, normalizer.apply_one(raw, bounds) * call.weight


def points_of(calls: Sequence[ScoreCall], numbers: Numbers) -> dict[str, Points]:
    """Numbers with their names."""
    found: dict[str, Points] = {}
    for place, call in enumerate(calls):
        raw, weighted = numbers[2 * place], numbers[2 * place + 1]
        if weighted is not None:
            normalized = weighted // call.weight if call.weight else 0
            found[call.name] = Points(raw=raw, normalized=normalized, weighted=weighted, weight=call.weight)
    if len(numbers) > 2 * len(calls) and (extra := numbers[-1]) is not None:
        found[EXTENDER] = Points(normalized=extra, weighted=extra)
    return found


def weighted_points(calls: Sequence[ScoreCall], numbers: Numbers) -> dict[str, int]:
    """What each plugin added to the total."""
    found = {call.name: weight for call, weight in zip(calls, numbers[1::2], strict=False) if weight is not None}
    if len(numbers) > 2 * len(calls) and (extra := numbers[-1]) is not None:
        found[EXTENDER] = extra
    return found


def _read(layout: _Layout, evaluation: ShapeEvaluation, row: int) -> list[int | None]:
    """Numbers of the plugins whose answers are remembered, from what the evaluation holds for its feasible nodes."""
    parts = evaluation.combined_parts(row)
    found: list[int | None] = []
    for kind, weight, _, number in layout.sources:
        if kind == _JOINT:
            raw = parts[number]
            found += (raw, raw * weight)
        elif kind == _NORMALIZED:
            entry = evaluation.normalized[number]
            if entry.contribution is None:
                found += (entry.column.uniform_value, entry.column.uniform_share())
            else:
                found += (entry.column.values.item(row), entry.contribution.item(row))
        elif kind == _FINAL:
            raw = evaluation.score_columns[number][1].values.item(row)
            found += (raw, raw * weight)
        else:
            found += _NOTHING
    return found


# On the path of every pod


def leading_pair(decision: Decision, plan: Plan) -> LeadingPair:
    """The points of the chosen node and of the runner-up."""
    tied = decision.tied
    if tied is None:
        return NOTHING_SCORED
    if decision.scores is not None:
        return _pair_of(decision, plan, decision.scores)
    layout, evaluation, row = _layout_of(plan), plan.evaluation, decision.row
    total = second_total = decision.total - evaluation.offset
    if decision.ties > 1:
        second = tied.item(0)
        if second == row:
            second = tied.item(1)
    else:
        second, second_total = _second(evaluation.key[: evaluation.table.size], row, decision.feasible_nodes)
    has_key = evaluation.has_points_key
    key = evaluation.points_key(row, total) if has_key else None
    chosen = _numbers(layout, evaluation, row, key)
    if second < 0:
        return layout.calls, chosen, "", 0, ()
    second_key = evaluation.points_key(second, second_total) if has_key else None
    # Nodes that are alike get the same points.
    others = chosen if has_key and key == second_key else _numbers(layout, evaluation, second, second_key)
    # A tie is kept as one object: a record holds both totals.
    reached = decision.total if second_total == total else second_total + evaluation.offset
    return layout.calls, chosen, evaluation.table.at(second).name, reached, others


def _pair_of(decision: Decision, plan: Plan, scores: Scores) -> LeadingPair:
    """The same where some plugins scored the nodes that passed in this decision."""
    outcome, tied, row = decision.outcome, decision.tied, decision.row
    assert tied is not None  # the caller checked
    reader = PointsReader(plan, scores, is_shared=outcome is not None and outcome.passing is None)
    place = _place_of(scores, row)
    if decision.ties > 1:
        other = tied.item(0) if tied.item(0) != row else tied.item(1)
        second, total = _place_of(scores, other), decision.total
    else:
        second, total = _second(scores.totals, place, decision.feasible_nodes)
    chosen = reader.numbers(place, row)
    if second < 0:
        return reader.calls, chosen, "", 0, ()
    second_row = int(scores.rows[second])
    name = plan.evaluation.table.at(second_row).name
    return reader.calls, chosen, name, total, reader.numbers(second, second_row)


def _second(totals: Int64N, place: int, feasible: int) -> tuple[int, int]:
    """(place of the next best, its total) beside the best at `place`; the place is -1 where there is none."""
    if feasible < 2:
        return -1, 0
    highest, totals[place] = totals[place], -1
    second = int(totals.argmax())
    total, totals[place] = int(totals[second]), highest
    return (second, total) if total >= 0 else (-1, 0)


def _numbers(layout: _Layout, evaluation: ShapeEvaluation, row: int, key: tuple[int, int, int] | None) -> Numbers:
    """As `PointsReader.numbers` where the answers of every plugin are remembered; `key` is that of the row's points."""
    if key is None:
        return _shared(tuple(_read(layout, evaluation, row)))
    known = evaluation.points_known
    found: Numbers | None = known.get(key)
    if found is None:
        if len(known) > _MOST_KEPT:
            known.clear()
        found = known[key] = _shared(tuple(_read(layout, evaluation, row)))
    return found


def _shared(numbers: Numbers) -> Numbers:
    """The same numbers as other nodes have, kept once."""
    if len(_kept_numbers) > _MOST_KEPT:
        _kept_numbers.clear()
    return _kept_numbers.setdefault(numbers, numbers)


def _place_of(scores: Scores, row: int) -> int:
    """Rows are in order unless they are a sample."""
    rows = scores.rows
    place = int(rows.searchsorted(row))
    if place < len(rows) and rows[place] == row:
        return place
    return int(np.flatnonzero(rows == row)[0])


# For any number of nodes


def best_nodes(decision: Decision, *, most: int = MOST_NODES) -> list[ScoredNode]:
    """The chosen node, then the others with the highest totals. Empty when nodes were not scored."""
    plan, outcome, scores = decision.plan, decision.outcome, decision.scores
    if plan is None or decision.tied is None:
        return []
    evaluation = plan.evaluation
    reader = PointsReader(plan, scores, is_shared=outcome is not None and outcome.passing is None)
    rows = None if scores is None else scores.rows
    totals = evaluation.key[: evaluation.table.size] if scores is None else scores.totals
    offset = evaluation.offset if scores is None else 0
    chosen = evaluation.table.row_of[decision.node_name]
    places = _highest(totals, min(most, decision.feasible_nodes))
    first = chosen if scores is None else _place_of(scores, chosen)
    found = []
    for place in [first, *(place for place in places if place != first)][:most]:
        row = place if rows is None else int(rows[place])
        points = points_of(reader.calls, reader.numbers(place, row))
        name = evaluation.table.at(row).name
        found.append(ScoredNode(node=name, total=int(totals[place]) + offset, points=points))
    return found


def tied_nodes(decision: Decision, *, most: int = _MOST_TIES) -> tuple[str, ...]:
    """Names of nodes that share the highest total, the chosen one first; empty when one is ahead of all."""
    plan, tied = decision.plan, decision.tied
    if decision.ties < 2 or plan is None or tied is None:
        return ()
    table = plan.evaluation.table
    names = [table.at(row).name for row in tied[: most + 1].tolist()]
    return (decision.node_name, *[name for name in names if name != decision.node_name][: most - 1])


def _highest(totals: Int64N, count: int) -> list[int]:
    """Places of the highest totals, the highest first, and of equal ones the first."""
    places = np.arange(len(totals))
    if count < len(totals):
        least = np.partition(totals, len(totals) - count)[len(totals) - count]
        above, equal = np.flatnonzero(totals > least), np.flatnonzero(totals == least)
        places = np.sort(np.concatenate((above, equal[: count - len(above)])))
    order: list[int] = places[np.argsort(-totals[places].astype(np.int64), kind="stable")].tolist()
    return order
