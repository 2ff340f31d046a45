"""Making plans: an outline for a kind of pod, columns for what the pod signs, and an evaluation from both.

An outline costs some fifty calls of plugins and is shared by all shapes of a kind if every plugin that had a part in it
promises to look at the kind alone (`Plugin.settles_by_kind`). Columns are shared by pods with the same sign. Nothing
is shared with remembering off.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import TypeVar

import numpy as np

from bayplan.cluster.pod_info import PodInfo
from bayplan.cluster.state import ClusterState
from bayplan.framework.cycle import CycleState
from bayplan.framework.normalize import MAX_NODE_SCORE
from bayplan.framework.plugin import Plugin, PreFilterResult
from bayplan.framework.points import ExtensionPoint
from bayplan.framework.promises import UNSIGNED, Depends
from bayplan.framework.runtime.call import Complaint, FilterCall, ScoreCall, call_plugin
from bayplan.framework.runtime.columns import FilterColumn, ScoreColumn
from bayplan.framework.runtime.evaluation import Evaluation
from bayplan.framework.runtime.joint import JointCall, joined
from bayplan.framework.runtime.memory import Memory
from bayplan.framework.runtime.plan import Outline, Plan, PreFilterStep, PreScoreStep, ScoreOutline
from bayplan.framework.runtime.standing import Standing
from bayplan.framework.status import Status

__all__ = ["Planner"]

C = TypeVar("C")
_MEBIBYTE = 1024 * 1024
_ALONE = (Depends.NODE, Depends.NODES)
_WITH_PODS = (Depends.USE, Depends.ROW)


class Planner:
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
        self._remember = remember
        self._filter_calls = filter_calls
        self._score_calls = score_calls
        self._pre_filters = points.get(ExtensionPoint.PRE_FILTER, [])
        self._pre_scores = points.get(ExtensionPoint.PRE_SCORE, [])
        self._choosy = [p for p in plugins if type(p).is_relevant is not Plugin.is_relevant]
        self._filter_depends = {call.name: call.depends for call in filter_calls}
        self._joints = joined(score_calls, complain) if remember else []
        self.shares_outlines = remember and all(plugin.settles_by_kind for plugin in self._settling())
        """Whether pods of one kind have one outline."""
        remembered: list[FilterCall | ScoreCall] = [*filter_calls, *score_calls]
        alone = [call for call in remembered if call.depends in _ALONE]
        self._shares_standings = self.shares_outlines and all(call.plugin.signs_by_kind for call in alone)
        self._outlines = Memory[Outline](bytes_per_row=Standing.BYTES_PER_ROW, most_bytes=16 * _MEBIBYTE)
        self._filter_columns = Memory[FilterColumn](bytes_per_row=4, most_bytes=32 * _MEBIBYTE)
        self._score_columns = Memory[ScoreColumn](bytes_per_row=8, most_bytes=32 * _MEBIBYTE)
        self._evaluations = Memory[Evaluation](bytes_per_row=Evaluation.BYTES_PER_ROW, most_bytes=64 * _MEBIBYTE)
        self._outlined = 0

    def _settling(self) -> list[Plugin]:
        """The plugins whose answers an outline holds."""
        is_remembered = {call.name: call.is_remembered for call in self._score_calls}
        settled = [p for p in self._pre_filters if self._depends(p) is not Depends.CLUSTER]
        return [*self._choosy, *settled, *(p for p in self._pre_scores if is_remembered.get(p.name, False))]

    def _depends(self, plugin: Plugin) -> Depends:
        return self._filter_depends.get(plugin.name, Depends.CLUSTER)

    def plan(self, pod: PodInfo, versions: list[int]) -> Plan:
        return Plan(self._outline(pod, versions), pod, self)

    # What pods of one kind share

    def _outline(self, pod: PodInfo, versions: list[int]) -> Outline:
        if not self.shares_outlines:
            return self._make_outline(pod, versions)
        key = (pod.shape.kind, pod.node_name)
        outline = self._outlines.get(key)
        if outline is None or outline.versions != versions:
            outline = self._make_outline(pod, versions)
            self._outlines.offer(key, outline, rows=self._cluster.nodes.capacity)
        return outline

    def _make_outline(self, pod: PodInfo, versions: list[int]) -> Outline:
        irrelevant = self._irrelevant(pod)
        skip_filter = {call.name for call in self._filter_calls if call.name in irrelevant}
        pre_filters = self._pre_filter_steps(pod, irrelevant, skip_filter)
        filters = [call for call in self._filter_calls if call.name not in skip_filter]
        self._outlined += 1
        return Outline(
            self._outlined, filters=filters, pre_filters=pre_filters, skip_filter=skip_filter, versions=versions
        )

    def _irrelevant(self, pod: PodInfo) -> set[str]:
        return {plugin.name for plugin in self._choosy if not plugin.is_relevant(pod)}

    def _pre_filter_steps(self, pod: PodInfo, irrelevant: set[str], skip_filter: set[str]) -> list[PreFilterStep]:
        steps = []
        nodes = self._cluster.columns()
        for plugin in self._pre_filters:
            if plugin.name in irrelevant:
                continue
            ask = plugin.pre_filter
            if self._depends(plugin) is Depends.CLUSTER:
                steps.append(PreFilterStep(plugin, ask, None, is_settled=False))
                continue
            answer = call_plugin(plugin, "pre_filter", self._complain, CycleState(), pod, nodes)
            if isinstance(answer, Status) and answer.is_skip:
                skip_filter.add(plugin.name)
            elif isinstance(answer, PreFilterResult):
                # Which nodes it names is the pod's own affair: a kind leaves out the name that a pod is pinned to.
                steps.append(PreFilterStep(plugin, ask, None, is_settled=False))
            elif answer is not None and not (isinstance(answer, Status) and answer.is_success):
                steps.append(PreFilterStep(plugin, ask, answer, is_settled=True))
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
        joint = self._joint_of(remembered)
        row_scores = [c for c in remembered if c.depends in _WITH_PODS and not (joint and c.name in joint.members)]
        with_pods = [*outline.row_filters, *row_scores, *(joint.calls if joint is not None else ())]
        found = ScoreOutline(
            scores=scores,
            pre_scores=pre_scores,
            open_scores=[call for call in scores if not call.is_remembered],
            row_scores=row_scores,
            joint=joint,
            signs=_signs(outline.row_filters, row_scores, joint),
            follows=Depends.ROW if any(call.depends is Depends.ROW for call in with_pods) else Depends.USE,
            last_rank=last_rank,
            dtype=next(kind for kind in (np.int16, np.int32, np.int64) if highest <= np.iinfo(kind).max),
            standing=None,
        )
        if not self._shares_standings or pod.shape.pinned_to:
            return found
        return found._replace(standing=self._standing(outline, found, pod))

    def _pre_score_steps(self, pod: PodInfo, scores: list[ScoreCall]) -> list[PreScoreStep]:
        """The PreScores that are due in a decision. Scores that are known to be skipped leave `scores`."""
        steps = []
        nodes = self._cluster.columns()
        calls = {call.name: call for call in scores}
        for plugin in self._pre_scores:
            call = calls.get(plugin.name)
            if call is None:
                continue
            ask = plugin.pre_score
            if not call.is_remembered:
                steps.append(PreScoreStep(plugin, ask, None))
                continue
            answer = call_plugin(plugin, "pre_score", self._complain, CycleState(), pod, nodes)
            if isinstance(answer, Status) and answer.is_skip:
                scores.remove(call)
            elif isinstance(answer, Status) and not answer.is_success:
                steps.append(PreScoreStep(plugin, ask, answer))
        return steps

    def _joint_of(self, remembered: list[ScoreCall]) -> JointCall | None:
        """The first joint score of which every member has a say."""
        names = {call.name for call in remembered}
        return next((joint for joint in self._joints if joint.members.keys() <= names), None)

    def _standing(self, outline: Outline, scores: ScoreOutline, pod: PodInfo) -> Standing:
        return Standing(
            self._cluster.nodes,
            filters=[(c, self._filter_column(c, pod)) for c in outline.filters if c.depends in _ALONE],
            scores=[(c, self._score_column(c, pod)) for c in scores.scores if c.is_remembered and c.depends in _ALONE],
            last_rank=scores.last_rank,
            dtype=scores.dtype,
        )

    # What pods with the same signs share

    def evaluation(self, outline: Outline, pod: PodInfo) -> Evaluation:
        """That of all pods of the kind which sign alike, or one for this plan alone."""
        scores = outline.scores or self.scores(outline, pod)
        if scores.standing is None:
            return self._make_evaluation(outline, scores, pod)
        key = (outline.number, *[sign(pod) for sign in scores.signs])
        if UNSIGNED in key:
            return self._make_evaluation(outline, scores, pod)
        found = self._evaluations.get(key)
        if found is None:
            found = self._make_evaluation(outline, scores, pod)
            self._evaluations.offer(key, found, rows=self._cluster.nodes.capacity)
        return found

    def _make_evaluation(self, outline: Outline, scores: ScoreOutline, pod: PodInfo) -> Evaluation:
        return Evaluation(
            scores.standing or self._standing(outline, scores, pod),
            filters=[(call, self._filter_column(call, pod)) for call in outline.watched] if outline.watched else (),
            glanced=outline.glanced,
            scores=[(call, self._score_column(call, pod)) for call in scores.row_scores] if scores.row_scores else (),
            joint=scores.joint,
            follows=scores.follows,
        )

    def _filter_column(self, call: FilterCall, pod: PodInfo) -> FilterColumn:
        return self._kept(self._filter_columns, call, pod, lambda: FilterColumn(call))

    def _score_column(self, call: ScoreCall, pod: PodInfo) -> ScoreColumn:
        return self._kept(self._score_columns, call, pod, lambda: ScoreColumn(call))

    def _kept(self, columns: Memory[C], call: FilterCall | ScoreCall, pod: PodInfo, make: Callable[[], C]) -> C:
        sign = call.plugin.sign(pod) if self._remember else UNSIGNED
        if sign is UNSIGNED:
            return make()
        return columns.find((call.name, sign), make, rows=self._cluster.nodes.capacity)


def _signs(
    filters: list[FilterCall], scores: list[ScoreCall], joint: JointCall | None
) -> list[Callable[[PodInfo], Hashable]]:
    signs: list[Callable[[PodInfo], Hashable]] = [call.plugin.sign for call in filters]
    signs += [call.plugin.sign for call in scores]
    if joint is not None:
        signs.append(joint.sign)
    return signs
