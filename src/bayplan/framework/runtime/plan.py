"""Plans: what a decision about one pod shape runs, and what is known for all pods of the shape.

A `Planner` makes an outline for a kind of pod (some fifty calls of plugins, shared by all shapes of a kind to which the
same plugins matter, if every plugin that keeps answers there promises `settles_by_kind`), columns for what a pod signs
(shared by pods with the same sign), and an evaluation from both. Nothing is shared with remembering off. A `Plan` is
the outline of one shape with its evaluation, which is made when first needed: a pod that is pinned to one node never
needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, TypeVar

import numpy as np

from bayplan.cluster.axes import Int64N
from bayplan.cluster.node_columns import NodeColumns
from bayplan.cluster.pod_info import PodInfo
from bayplan.cluster.state import ClusterState
from bayplan.framework.answers import check_answer
from bayplan.framework.cycle import CycleState
from bayplan.framework.normalize import MAX_NODE_SCORE
from bayplan.framework.plugin import Plugin, PreFilterResult
from bayplan.framework.points import ExtensionPoint, defines
from bayplan.framework.promises import UNSIGNED, Depends
from bayplan.framework.runtime.call import Complaint, call_plugin, call_promise, not_given
from bayplan.framework.runtime.node_calls import FilterCall, ScoreCall
from bayplan.framework.runtime.outline import Due, FilterGroups, Outline, PreFilterStep, PreScoreStep, ScoreOutline
from bayplan.framework.runtime.remembered.columns import FilterColumn, ScoreColumn
from bayplan.framework.runtime.remembered.combined_score import CombinedScoreCall, combined_scores
from bayplan.framework.runtime.remembered.evaluation import ShapeEvaluation
from bayplan.framework.runtime.remembered.node_only_evaluation import NodeOnlyEvaluation
from bayplan.framework.runtime.remembered.second_use_cache import SecondUseCache
from bayplan.framework.status import Status

__all__ = ["Plan", "Planner"]

C = TypeVar("C")
_NODE_ONLY = (Depends.NODE, Depends.NODES)
_WITH_PODS = (Depends.USE, Depends.ROW)
_MOST_SETS = 256
"""Of plugins that are skipped or idle together: a handful in most clusters."""


class Plan:
    """What a decision about a shape runs. Made anew when the version of a plugin changes."""

    __slots__ = (
        "_due",
        "_evaluation",
        "_planner",
        "_pod",
        "_raw_columns",
        "due_filters",
        "due_pre_filters",
        "idle",
        "idle_as_of",
        "outline",
        "skip_filter",
    )

    def __init__(self, outline: Outline, pod: PodInfo, planner: Planner) -> None:
        self.outline = outline
        self._planner = planner
        self._pod = pod
        self._evaluation: ShapeEvaluation | None = None
        self._raw_columns: dict[str, ScoreColumn] = {}
        self.idle_as_of = (-1, -1, -1)
        # Mostly the same plugins are idle as for the last pod of the kind; `update_idle` finds out which are.
        self._set_due(outline.last_due)

    def of(self, pod: PodInfo) -> Plan:
        """The plan of a pod that is pinned to another node: the same but for what depends on the node."""
        if pod is self._pod:
            return self
        twin = Plan.__new__(Plan)
        twin.outline, twin._planner, twin._pod, twin._evaluation = self.outline, self._planner, pod, None
        twin._raw_columns = {}
        twin.idle, twin.idle_as_of, twin._due = self.idle, self.idle_as_of, self._due
        twin.skip_filter, twin.due_filters = self.skip_filter, self.due_filters
        twin.due_pre_filters = self.due_pre_filters
        return twin

    @property
    def versions(self) -> list[int]:
        return self.outline.versions

    @property
    def filters(self) -> list[FilterCall]:
        """Every filter that takes part for this shape, in order."""
        return self.outline.filters

    @property
    def pre_filters(self) -> list[PreFilterStep]:
        return self.outline.pre_filters

    @property
    def open_filters(self) -> list[FilterCall]:
        """Filters that run in every decision."""
        return self.outline.open_filters

    @property
    def evaluation(self) -> ShapeEvaluation:
        found = self._evaluation
        if found is None:
            found = self._evaluation = self._planner.evaluation(self.outline, self._pod)
        return found

    @property
    def scores(self) -> list[ScoreCall]:
        """Every score that takes part for this shape, in order."""
        return self._score_outline().scores

    @property
    def pre_scores(self) -> list[PreScoreStep]:
        """PreScores of plugins whose scores are not kept, and those that fail."""
        return self._score_outline().pre_scores

    @property
    def open_scores(self) -> list[ScoreCall]:
        """Scores that are computed for every decision."""
        return self._score_outline().open_scores

    @property
    def due_scores(self) -> list[ScoreCall]:
        """The open ones whose plugins are not idle."""
        due = self._due
        if due.scores is None:
            due.scores = [call for call in self.open_scores if call.name not in due.idle]
        return due.scores

    @property
    def due_pre_scores(self) -> list[PreScoreStep]:
        due = self._due
        if due.pre_scores is None:
            idle = due.idle
            due.pre_scores = [s for s in self.pre_scores if s.failure is not None or s.plugin.name not in idle]
        return due.pre_scores

    def raw_scores(self, call: ScoreCall, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Int64N:
        """The raw scores of an open score, for its normaliser to change; kept where they follow from node and shape."""
        if not (call.keeps_raw and self._planner.remembers):
            return call.raw(state, pod, nodes)
        column = self._raw_columns.get(call.name)
        if column is None:
            column = self._raw_columns[call.name] = self._planner.score_column(call, pod)
        column.refresh(nodes.table, pod)
        return nodes.cut(column.values).copy()

    def _score_outline(self) -> ScoreOutline:
        return self.outline.scores or self._planner.scores(self.outline, self._pod)

    def update_idle(self, pod: PodInfo, as_of: tuple[int, int, int]) -> None:
        """Find out which plugins are idle. They stay so until `as_of` changes."""
        idle = self._planner.idle(pod, self.outline.skip_filter)
        self.idle_as_of = as_of
        if idle is not self.idle and idle != self.idle:
            self._set_due(self.outline.due(idle))

    def _set_due(self, due: Due) -> None:
        self._due = due
        self.idle, self.skip_filter = due.idle, due.skip_filter
        self.due_pre_filters, self.due_filters = due.pre_filters, due.filters


class Planner:
    """Makes the plans of one profile, and keeps what they share."""

    def __init__(
        self,
        *,
        cluster: ClusterState,
        points: Mapping[ExtensionPoint, list[Plugin]],
        plugins: list[Plugin],
        filter_calls: list[FilterCall],
        score_calls: list[ScoreCall],
        complain: Complaint,
        remember: bool,
    ) -> None:
        self._cluster = cluster
        self._complain = complain
        self.remembers = remember
        self._filter_calls = filter_calls
        self._score_calls = score_calls
        self._pre_filters = points.get(ExtensionPoint.PRE_FILTER, [])
        self._pre_scores = points.get(ExtensionPoint.PRE_SCORE, [])
        self._choosy = [p for p in plugins if defines(p, "is_relevant")]
        self._idlers = [(p, p.name, p.is_idle) for p in plugins if defines(p, "is_idle")]
        self._filter_depends = {call.name: call.depends for call in filter_calls}
        self._combined = combined_scores(score_calls, complain) if remember else []
        self._personal = [p for p in self._choosy if not p.settles_by_kind]
        """Plugins that may matter to one pod of a kind and not to another."""
        self.shares_outlines = remember and all(plugin.settles_by_kind for plugin in self._settling())
        """Whether pods of one kind have one outline, provided that the same plugins matter to them."""
        self.shares_plans = self.shares_outlines and not self._personal
        """Whether pods that differ in the node that they are pinned to alone have one plan."""
        remembered: list[FilterCall | ScoreCall] = [*filter_calls, *score_calls]
        node_only = [call for call in remembered if call.depends in _NODE_ONLY]
        self._shares_node_only = self.shares_outlines and all(call.plugin.signs_by_kind for call in node_only)
        self._outlines: SecondUseCache[Outline] = _cache(NodeOnlyEvaluation.BYTES_PER_ROW, mebibytes=16)
        self._filter_columns: SecondUseCache[FilterColumn] = _cache(4, mebibytes=32)
        self._score_columns: SecondUseCache[ScoreColumn] = _cache(8, mebibytes=32)
        self._evaluations: SecondUseCache[ShapeEvaluation] = _cache(ShapeEvaluation.BYTES_PER_ROW, mebibytes=64)
        self._groups: dict[frozenset[str], FilterGroups] = {}
        self._unsettled: dict[str, PreFilterStep] = {}
        self._shared_as_of: list[int] | None = None
        """Versions of the plugins for which groups and steps were made; outlines share them."""
        self._idle_sets: dict[tuple[str, ...], frozenset[str]] = {}
        self._outlined = 0

    def _settling(self) -> list[Plugin]:
        """The plugins whose answers an outline keeps."""
        is_remembered = {call.name: call.is_remembered for call in self._score_calls}
        settled = [p for p in self._pre_filters if self._depends(p) is not Depends.CLUSTER]
        return [*settled, *(p for p in self._pre_scores if is_remembered.get(p.name, False))]

    def _depends(self, plugin: Plugin) -> Depends:
        return self._filter_depends.get(plugin.name, Depends.CLUSTER)

    def plan(self, pod: PodInfo, versions: list[int]) -> Plan:
        return Plan(self._outline(pod, versions), pod, self)

    # What pods of one kind share

    def _outline(self, pod: PodInfo, versions: list[int]) -> Outline:
        if not self.shares_outlines:
            return self._make_outline(pod, versions)
        key: tuple[Hashable, ...] = (pod.shape.kind, pod.node_name)
        if self._personal:
            key += tuple([call_promise(p, "is_relevant", self._complain, pod) for p in self._personal])
        outline = self._outlines.get(key)
        if outline is None or outline.versions != versions:
            outline = self._make_outline(pod, versions)
            self._outlines.offer(key, outline, rows=self._cluster.nodes.capacity, bulk=pod.shape.bulk)
        return outline

    def _make_outline(self, pod: PodInfo, versions: list[int]) -> Outline:
        if self._shared_as_of != versions:
            self._shared_as_of = versions
            self._groups.clear()
            steps = [PreFilterStep(p, p.pre_filter, None, is_settled=False) for p in self._pre_filters]
            self._unsettled = {step.plugin.name: step for step in steps}
        irrelevant = self._irrelevant(pod)
        skip_filter = {call.name for call in self._filter_calls if call.name in irrelevant}
        pre_filters = self._pre_filter_steps(pod, irrelevant, skip_filter)
        self._outlined += 1
        groups = self._groups_without(frozenset(skip_filter))
        return Outline(self._outlined, groups=groups, pre_filters=pre_filters, versions=versions)

    def _groups_without(self, skipped: frozenset[str]) -> FilterGroups:
        found = self._groups.get(skipped)
        if found is None:
            if len(self._groups) >= _MOST_SETS:
                self._groups.clear()
            found = self._groups[skipped] = FilterGroups(self._filter_calls, skipped)
        return found

    def _irrelevant(self, pod: PodInfo) -> set[str]:
        return {p.name for p in self._choosy if not call_promise(p, "is_relevant", self._complain, pod)}

    def idle(self, pod: PodInfo, skipped: frozenset[str]) -> frozenset[str]:
        """Names of the plugins that have no effect at present, apart from those that are skipped anyway."""
        idle: tuple[str, ...] = ()
        for plugin, name, is_idle in self._idlers:
            if name in skipped:
                continue
            # As `call_promise`, which costs more than most plugins take to answer.
            try:
                answer: Any = is_idle(pod)
                if answer is False:
                    continue
                if answer is not True:
                    check_answer(name, "is_idle", answer)
            except BaseException as exception:
                answer = not_given(plugin, "is_idle", self._complain, exception, pod)
            if answer:
                idle += (name,)
        found = self._idle_sets.get(idle)
        if found is None:
            if len(self._idle_sets) >= _MOST_SETS:
                self._idle_sets.clear()
            found = self._idle_sets[idle] = frozenset(idle)
        return found

    def _pre_filter_steps(self, pod: PodInfo, irrelevant: set[str], skip_filter: set[str]) -> list[PreFilterStep]:
        steps = []
        nodes = self._cluster.columns()
        for plugin in self._pre_filters:
            if plugin.name in irrelevant:
                continue
            if self._depends(plugin) is Depends.CLUSTER:
                steps.append(self._unsettled[plugin.name])
                continue
            answer = call_plugin(plugin, "pre_filter", self._complain, CycleState(), pod, nodes)
            if isinstance(answer, Status) and answer.is_skip:
                skip_filter.add(plugin.name)
            elif isinstance(answer, PreFilterResult):
                # The named nodes differ within a kind, which leaves out the node that a pod is pinned to.
                steps.append(self._unsettled[plugin.name])
            elif answer is not None and not (isinstance(answer, Status) and answer.is_success):
                steps.append(PreFilterStep(plugin, plugin.pre_filter, answer, is_settled=True))
        return steps

    def scores(self, outline: Outline, pod: PodInfo) -> ScoreOutline:
        if outline.scores is None:
            outline.scores = self._make_scores(outline, pod)
        return outline.scores

    def _make_scores(self, outline: Outline, pod: PodInfo) -> ScoreOutline:
        irrelevant = self._irrelevant(pod)
        scores = [call for call in self._score_calls if call.name not in irrelevant]
        pre_scores = self._pre_score_steps(pod, scores)
        remembered = [call for call in scores if call.is_remembered]
        highest = sum(MAX_NODE_SCORE * call.weight for call in scores)
        last_rank = max((call.rank for call in outline.filters if call.depends is not Depends.CLUSTER), default=0)
        combined = self._combined_of(remembered)
        row_scores = [
            c for c in remembered if c.depends in _WITH_PODS and not (combined and c.name in combined.members)
        ]
        with_pods = [*outline.row_filters, *row_scores, *(combined.calls if combined is not None else ())]
        found = ScoreOutline(
            scores=scores,
            pre_scores=pre_scores,
            open_scores=[call for call in scores if not call.is_remembered],
            row_scores=row_scores,
            combined=combined,
            signs=_signs(outline.row_filters, row_scores, combined),
            follows=Depends.ROW if any(call.depends is Depends.ROW for call in with_pods) else Depends.USE,
            last_rank=last_rank,
            dtype=next(kind for kind in (np.int16, np.int32, np.int64) if highest <= np.iinfo(kind).max),
            node_only=None,
        )
        if not self._shares_node_only or pod.shape.pinned_to:
            return found
        return found._replace(node_only=self._node_only(outline, found, pod))

    def _pre_score_steps(self, pod: PodInfo, scores: list[ScoreCall]) -> list[PreScoreStep]:
        """The PreScores to run in a decision. Scores that are known to be skipped leave `scores`."""
        steps = []
        nodes = self._cluster.columns()
        calls = {call.name: call for call in scores}
        for plugin in self._pre_scores:
            call = calls.get(plugin.name)
            if call is None:
                continue
            bound = plugin.pre_score
            if not call.is_remembered:
                steps.append(PreScoreStep(plugin, bound, None))
                continue
            answer = call_plugin(plugin, "pre_score", self._complain, CycleState(), pod, nodes)
            if isinstance(answer, Status) and answer.is_skip:
                scores.remove(call)
            elif isinstance(answer, Status) and not answer.is_success:
                steps.append(PreScoreStep(plugin, bound, answer))
        return steps

    def _combined_of(self, remembered: list[ScoreCall]) -> CombinedScoreCall | None:
        """The first combined score of which every member takes part."""
        names = {call.name for call in remembered}
        return next((combined for combined in self._combined if combined.members.keys() <= names), None)

    def _node_only(self, outline: Outline, scores: ScoreOutline, pod: PodInfo) -> NodeOnlyEvaluation:
        return NodeOnlyEvaluation(
            self._cluster.nodes,
            filters=[(c, self._filter_column(c, pod)) for c in outline.filters if c.depends in _NODE_ONLY],
            scores=[
                (c, self.score_column(c, pod)) for c in scores.scores if c.is_remembered and c.depends in _NODE_ONLY
            ],
            last_rank=scores.last_rank,
            dtype=scores.dtype,
        )

    # What pods with the same signs share

    def evaluation(self, outline: Outline, pod: PodInfo) -> ShapeEvaluation:
        """The evaluation of all pods of the kind with the same signs, or one for this plan alone."""
        scores = outline.scores or self.scores(outline, pod)
        if scores.node_only is None:
            return self._make_evaluation(outline, scores, pod)
        try:
            key = (outline.number, *[sign(pod) for sign in scores.signs])
            is_signed = UNSIGNED not in key
            found: ShapeEvaluation | None = self._evaluations.get(key) if is_signed else None
        except Exception:
            # The seam is slower, and reports which plugin fails.
            for plugin in [call.plugin for call in outline.row_filters] + [call.plugin for call in scores.row_scores]:
                call_promise(plugin, "sign", self._complain, pod)
            is_signed, found = False, None
        if not is_signed:
            return self._make_evaluation(outline, scores, pod)
        if found is None:
            found = self._make_evaluation(outline, scores, pod)
            self._evaluations.offer(key, found, rows=self._cluster.nodes.capacity, bulk=pod.shape.bulk)
        return found

    def _make_evaluation(self, outline: Outline, scores: ScoreOutline, pod: PodInfo) -> ShapeEvaluation:
        return ShapeEvaluation(
            scores.node_only or self._node_only(outline, scores, pod),
            filters=[(call, self._filter_column(call, pod)) for call in outline.watched] if outline.watched else (),
            optimistic=outline.optimistic,
            scores=[(call, self.score_column(call, pod)) for call in scores.row_scores] if scores.row_scores else (),
            combined=scores.combined,
            follows=scores.follows,
        )

    def _filter_column(self, call: FilterCall, pod: PodInfo) -> FilterColumn:
        return self._kept(self._filter_columns, call, pod, lambda: FilterColumn(call))

    def score_column(self, call: ScoreCall, pod: PodInfo) -> ScoreColumn:
        return self._kept(self._score_columns, call, pod, lambda: ScoreColumn(call))

    def _kept(self, columns: SecondUseCache[C], call: FilterCall | ScoreCall, pod: PodInfo, make: Callable[[], C]) -> C:
        sign = call_promise(call.plugin, "sign", self._complain, pod) if self.remembers else UNSIGNED
        if sign is UNSIGNED:
            return make()
        return columns.find((call.name, sign), make, rows=self._cluster.nodes.capacity, bulk=pod.shape.bulk)


def _cache(bytes_per_row: int, *, mebibytes: int) -> SecondUseCache[Any]:
    return SecondUseCache(bytes_per_row=bytes_per_row, most_bytes=mebibytes * 1024 * 1024)


def _signs(
    filters: list[FilterCall], scores: list[ScoreCall], combined: CombinedScoreCall | None
) -> list[Callable[[PodInfo], Hashable]]:
    signs: list[Callable[[PodInfo], Hashable]] = [call.plugin.sign for call in filters]
    signs += [call.plugin.sign for call in scores]
    if combined is not None:
        signs.append(combined.sign)
    return signs
