"""One profile at work: its plugins in order, and the phases of a cycle as plain functions over columns.

    shared_plan ──▶ run_pre_filters ──▶ filtering.find_feasible ──▶ run_pre_scores ──▶ scoring ──▶ a node
                                              └── no node ──▶ run_post_filters

`loop.decide` calls the phases; nothing here waits or does I/O. What filters would answer if pods came or went is in
`dry_runs`. With `remember=False` every decision computes all columns anew: slower, and a test shows that the decisions
are the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from bayplan.cluster.node_columns import NodeColumns
from bayplan.cluster.pod_info import PodInfo
from bayplan.cluster.state import ClusterState
from bayplan.framework.cycle import CycleState
from bayplan.framework.plugin import Plugin, PostFilterResult, PreFilterResult
from bayplan.framework.points import ExtensionPoint, defines
from bayplan.framework.promises import SpeedPromises
from bayplan.framework.runtime.call import (
    POINT_LABELS,
    Complaint,
    PluginFailure,
    call_bound,
    call_plugin,
    caller,
    has_raised,
    tear_down,
)
from bayplan.framework.runtime.dry_runs import DryRuns
from bayplan.framework.runtime.node_calls import FilterCall, ScoreCall
from bayplan.framework.runtime.outline import NO_RESTRICTION, PreFilterOutcome, PreFilterStep, PreScoreStep
from bayplan.framework.runtime.plan import Plan, Planner
from bayplan.framework.runtime.remembered.evaluation import ShapeEvaluation
from bayplan.framework.runtime.remembered.second_use_cache import SecondUseCache
from bayplan.framework.status import Code, Error, Status, Unresolvable, reason_of
from bayplan.framework.times import PluginTimes

__all__ = ["Framework"]

_MEBIBYTE = 1024 * 1024


class Framework:
    def __init__(
        self,
        *,
        profile_name: str,
        cluster: ClusterState,
        plugins: Mapping[str, Plugin],
        points: Mapping[ExtensionPoint, Iterable[str]],
        weights: Mapping[str, int],
        complain: Complaint,
        remember: bool = True,
    ) -> None:
        self.profile_name = profile_name
        self.cluster = cluster
        self.plugins = dict(plugins)
        self.complain = complain
        self.remember = remember
        self._points = {point: [plugins[name] for name in names] for point, names in points.items()}
        self.filter_calls = [FilterCall(p, rank + 1, complain) for rank, p in enumerate(self.at(ExtensionPoint.FILTER))]
        self.score_calls = [ScoreCall(p, weights.get(p.name, 1), complain) for p in self.at(ExtensionPoint.SCORE)]
        self._in_order = list(self.plugins.values())
        self._following_pods = [plugin for plugin in self._in_order if defines(plugin, "pod_gone")]
        self._names = frozenset(self.plugins)
        self.dry_runs = DryRuns(
            cluster,
            filter_calls=self.filter_calls,
            following=[p for p in self.at(ExtensionPoint.PRE_FILTER) if defines(p, "add_pod")],
            complain=complain,
            remember=remember,
        )
        namers = [p for p in self.at(ExtensionPoint.PRE_FILTER) if p.names_pin and remember]
        self._pinned = {plugin: _pinned_by(plugin.name) for plugin in namers}
        self._derived: list[FilterCall | ScoreCall] = []
        """Those whose answers are kept for as long as what was read in their code stays as it was."""
        if remember:
            self._derived += [call for call in self.filter_calls if call.premises is not None]
            self._derived += [call for call in self.score_calls if call.premises is not None]
        self._versions: list[int] = []
        self._version_changes = -1
        self._planner = Planner(
            cluster=cluster,
            points=self._points,
            plugins=self._in_order,
            filter_calls=self.filter_calls,
            score_calls=self.score_calls,
            complain=complain,
            remember=remember,
        )
        self._shares_plans = self._planner.shares_plans
        self._plans = SecondUseCache[Plan](bytes_per_row=ShapeEvaluation.BYTES_PER_ROW, most_bytes=64 * _MEBIBYTE)

    def at(self, point: ExtensionPoint) -> list[Plugin]:
        """The plugins of an extension point, in order."""
        return self._points.get(point, [])

    def teardown(self) -> None:
        """Let every plugin release what it acquired: the framework was replaced, or the scheduler stops."""
        tear_down(self._in_order, self.complain)

    def pod_gone(self, pod: PodInfo) -> None:
        """Report a pod that left its node to the plugins that follow pods."""
        for plugin in self._following_pods:
            call_plugin(plugin, "pod_gone", self.complain, pod, pod.node_name)

    def time_plugins(self, times: PluginTimes | None) -> None:
        """Measure filters and scores, kept ones included; None ends that."""
        for call in self.filter_calls:
            call.times = times
        for score_call in self.score_calls:
            score_call.times = times

    # The plan of a shape

    def plan(self, pod: PodInfo) -> Plan:
        plan = self.shared_plan(pod)
        return plan.of(pod) if pod.shape.pinned_to else plan

    def shared_plan(self, pod: PodInfo) -> Plan:
        """The plan of all pods that differ only in the node they are pinned to. Its evaluation is that of one of them:
        to read it, or to score, take the plan `of` the pod."""
        key = (pod.shape.template_number if self._shares_plans else pod.shape.number, pod.node_name)
        for call in self._derived:
            if call.premises is None or not call.premises.hold():
                self._withdraw(call)
        if self._version_changes != SpeedPromises.version_changes:
            self._version_changes = SpeedPromises.version_changes
            versions = [plugin.version for plugin in self._in_order]
            if versions != self._versions:
                self._versions = versions
        versions = self._versions
        plan = self._plans.get(key)
        # A list that is the same need not be read; one that is not may still say the same.
        if plan is None or (plan.outline.versions is not versions and plan.outline.versions != versions):
            plan = self._planner.plan(pod, versions)
            if self.remember:
                self._plans.offer(key, plan, rows=self.cluster.nodes.capacity, bulk=pod.shape.bulk)
        if self.remember:
            cluster = self.cluster
            as_of = (cluster.objects.generation, cluster.terms.generation, cluster.nodes.node_changes.position)
            if plan.idle_as_of != as_of:
                plan.update_idle(pod, as_of)
        return plan

    def _withdraw(self, call: FilterCall | ScoreCall) -> None:
        """Keep answers no longer. Without premises the call withdrew itself."""
        self._derived = [each for each in self._derived if each is not call]
        if call.premises is not None:
            call.withdraw()
            call.plugin.log.warning(
                "something changed a method, attribute, argument or constant that the code of this plugin reads: its "
                "answers are computed for every decision from now on"
            )

    def forget(self, plugin: str) -> None:
        """Drop the kept answers of a plugin."""
        self.plugins[plugin].version += 1

    # PreFilter

    def run_pre_filters(self, plan: Plan, state: CycleState, pod: PodInfo) -> PreFilterOutcome:
        state.skip_filter, state.skip_score, state.reached = plan.skip_filter, plan.idle, self._names
        steps = plan.due_pre_filters
        if not steps:
            return NO_RESTRICTION
        if len(steps) == 1 and pod.shape.pinned_to and state.times is None:
            pinned = self._pinned.get(steps[0].plugin)
            if pinned is not None:
                return pinned
        nodes = self.cluster.columns()
        rejection: Status | None = None
        names: frozenset[str] | None = None
        restricted_by: list[str] = []
        for step in steps:
            plugin = step.plugin
            if step.is_settled:
                answer: Any = step.answer
            elif state.times is None:
                answer = call_bound(step.bound, plugin, "pre_filter", self.complain, state, pod, nodes)
            else:
                answer = self._timed(step, "pre_filter", state.times, state, pod, nodes)
            if answer is None:
                continue
            if isinstance(answer, PreFilterResult):
                if answer.node_names is not None:
                    restricted_by.append(plugin.name)
                    names = answer.node_names if names is None else names & answer.node_names
                    if not names:
                        state.reached = self._reached_up_to(plugin)
                        return PreFilterOutcome(_nothing_left(restricted_by), names, tuple(restricted_by))
            elif answer.is_skip:
                state.skip_filter |= {plugin.name}
            elif answer.code is Code.UNRESOLVABLE:
                state.reached = self._reached_up_to(plugin)
                return PreFilterOutcome(answer.by(plugin.name), names, tuple(restricted_by))
            elif answer.code is Code.UNSCHEDULABLE:
                rejection = answer.by(plugin.name)
            elif not answer.is_success:
                raise PluginFailure(_explained(f'running PreFilter plugin "{plugin.name}": ', answer.by(plugin.name)))
        if rejection is None and names is None:
            return NO_RESTRICTION
        return PreFilterOutcome(rejection, names, tuple(restricted_by), absent=_left_out(tuple(restricted_by)))

    def _timed(self, step: PreFilterStep | PreScoreStep, method: str, times: PluginTimes, *arguments: Any) -> Any:
        """As `call_bound`, with the time taken."""
        call = (step.bound, step.plugin, method, self.complain, *arguments)
        return times.measure(step.plugin.name, POINT_LABELS[method], call_bound, *call)

    # PreScore

    def run_pre_scores(self, plan: Plan, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> list[ScoreCall]:
        """Run the PreScores that are due; the scores to compute for this decision."""
        for step in plan.due_pre_scores:
            answer: Any = step.failure
            if answer is None:
                if state.times is None:
                    answer = call_bound(step.bound, step.plugin, "pre_score", self.complain, state, pod, nodes)
                else:
                    answer = self._timed(step, "pre_score", state.times, state, pod, nodes)
            if answer is None:
                continue
            name = step.plugin.name
            if answer.is_skip:
                state.skip_score |= {name}
            elif not answer.is_success:
                raise PluginFailure(_explained(f'running PreScore plugin "{name}": ', answer.by(name)))
        if not state.skip_score:
            return plan.due_scores
        return [call for call in plan.due_scores if call.name not in state.skip_score]

    def _reached_up_to(self, last: Plugin) -> frozenset[str]:
        """The plugins whose PreFilter came before the one that ended the phase."""
        plugins = self.at(ExtensionPoint.PRE_FILTER)
        return frozenset(plugin.name for plugin in plugins[: plugins.index(last) + 1])

    # PostFilter

    def run_post_filters(self, state: CycleState, pod: PodInfo, diagnosis: object) -> PostFilterResult:
        """The nomination, if any, and the status whose message ends the pod's message."""
        reasons: list[str] = []
        nomination: PostFilterResult | None = None
        plugins = self.at(ExtensionPoint.POST_FILTER)
        if not plugins:
            return PostFilterResult("")
        for plugin in plugins:
            answer = caller(state)(plugin, "post_filter", self.complain, state, pod, diagnosis)
            if isinstance(answer, Status) and has_raised(answer):
                # Errors that plugins answer with themselves keep their words, which are those of kube-scheduler.
                answer = _explained(f'running PostFilter plugin "{plugin.name}": ', answer)
            result = answer if isinstance(answer, PostFilterResult) else None
            status = result.status if result is not None else answer
            if result is not None and (status is None or status.is_success):
                return result
            if result is not None and result.nominated_node_name is not None:
                nomination = result
            if isinstance(status, Status):
                if status.code is Code.UNRESOLVABLE or not status.is_rejected:
                    return PostFilterResult(result.nominated_node_name if result else None, status.by(plugin.name))
                reasons.extend(status.reasons)
        status = Status(Code.UNSCHEDULABLE, tuple(reasons))
        if nomination is None:
            return PostFilterResult(None, status)
        return nomination._replace(status=status)


def _pinned_by(plugin: str) -> PreFilterOutcome:
    return PreFilterOutcome(None, None, (plugin,), absent=_left_out((plugin,)), is_pinned=True)


@lru_cache(maxsize=64)
def _left_out(plugins: tuple[str, ...]) -> Status:
    """The status of the nodes that plugins do not name."""
    return Unresolvable(f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(plugins))}]")


def _nothing_left(plugins: list[str]) -> Status:
    if len(plugins) == 1:
        return Unresolvable(f"node(s) didn't satisfy plugin {plugins[0]}")
    return Unresolvable(f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(plugins))}] simultaneously")


def _explained(prefix: str, status: Status) -> Status:
    return Error(prefix + reason_of(status), exception=status.exception).by(status.plugin)
