"""One profile at work: its plugins in order, and the phases of a cycle as plain functions over columns.

`loop.decide` calls the phases; nothing here waits or does I/O. With `remember=False` every decision computes all
columns anew: slower, and a test says that it decides the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np

from bayplan.cluster.axes import BoolN, Rows
from bayplan.cluster.node_columns import NodeColumns
from bayplan.cluster.node_info import NodeInfo
from bayplan.cluster.nominated import NominatedRows, Nominator
from bayplan.cluster.pod_info import PodInfo
from bayplan.cluster.state import ClusterState
from bayplan.framework.cycle import CycleState
from bayplan.framework.plugin import Plugin, PostFilterResult, PreFilterResult
from bayplan.framework.points import ExtensionPoint, defines
from bayplan.framework.promises import Depends
from bayplan.framework.runtime.beside import RejectedBeside
from bayplan.framework.runtime.call import (
    POINT_LABELS,
    Complaint,
    FilterCall,
    PluginFailure,
    ScoreCall,
    call_plugin,
    caller,
    failed,
)
from bayplan.framework.runtime.distinct import group_by_status
from bayplan.framework.runtime.evaluation import Evaluation
from bayplan.framework.runtime.memory import Memory
from bayplan.framework.runtime.plan import (
    NO_RESTRICTION,
    Idlers,
    Plan,
    PreFilterOutcome,
    PreFilterStep,
    PreScoreStep,
)
from bayplan.framework.runtime.planning import Planner
from bayplan.framework.status import Code, Error, Status, Unresolvable
from bayplan.framework.times import PluginTimes

__all__ = ["Framework", "checked"]

C = TypeVar("C")
_MEBIBYTE = 1024 * 1024
_MOST_IN_PLAY = 256


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
        self._nominated: NominatedRows | None = None
        self.rejected_beside = RejectedBeside(cluster.nodes)
        self._points = {point: [plugins[name] for name in names] for point, names in points.items()}
        self.filter_calls = [FilterCall(p, rank + 1, complain) for rank, p in enumerate(self.at(ExtensionPoint.FILTER))]
        self.score_calls = [ScoreCall(p, weights.get(p.name, 1), complain) for p in self.at(ExtensionPoint.SCORE)]
        self._in_order = list(self.plugins.values())
        self._idlers: Idlers = [(p.name, p.is_idle) for p in self._in_order if defines(p, "is_idle")]
        self._names = frozenset(self.plugins)
        self._following = [p for p in self.at(ExtensionPoint.PRE_FILTER) if defines(p, "add_pod")]
        """Plugins whose state dry runs must update pod by pod."""
        self._in_play: dict[frozenset[str], list[FilterCall]] = {}
        namers = [p for p in self.at(ExtensionPoint.PRE_FILTER) if p.names_pin and remember]
        self._pinned = {plugin: _pinned_by(plugin.name) for plugin in namers}
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
        self._shares_plans = self._planner.shares_outlines
        self._plans = Memory[Plan](bytes_per_row=Evaluation.BYTES_PER_ROW, most_bytes=64 * _MEBIBYTE)

    def at(self, point: ExtensionPoint) -> list[Plugin]:
        """The plugins of an extension point, in order."""
        return self._points.get(point, [])

    @property
    def is_columnar(self) -> bool:
        """Whether every filter and score answers in columns, so that looking at all nodes is cheap."""
        return all(c.has_columns for c in self.filter_calls) and all(c.has_columns for c in self.score_calls)

    def teardown(self) -> None:
        """Let every plugin release what it acquired: the framework was replaced, or the scheduler stops."""
        for plugin in self._in_order:
            if defines(plugin, "teardown"):
                call_plugin(plugin, "teardown", self.complain)

    def time_plugins(self, times: PluginTimes | None) -> None:
        """Note how long filters and scores take, remembered ones included; None ends that."""
        for call in self.filter_calls:
            call.times = times
        for score_call in self.score_calls:
            score_call.times = times

    # The plan of a shape

    def plan(self, pod: PodInfo) -> Plan:
        plan = self.shared_plan(pod)
        return plan.of(pod) if pod.shape.pinned_to else plan

    def shared_plan(self, pod: PodInfo) -> Plan:
        """The plan of all pods that differ in the node they are pinned to alone. Its evaluation is that of one of them:
        whoever wants to see it, or to score, asks for the plan `of` the pod."""
        key = (pod.shape.template_number if self._shares_plans else pod.shape.number, pod.node_name)
        if self._version_changes != Plugin.version_changes:
            self._version_changes = Plugin.version_changes
            versions = [plugin.version for plugin in self._in_order]
            if versions != self._versions:
                self._versions = versions
        versions = self._versions
        plan = self._plans.get(key)
        # A list that is the same need not be read; one that is not may still say the same.
        if plan is None or (plan.outline.versions is not versions and plan.outline.versions != versions):
            plan = self._planner.plan(pod, versions)
            if self.remember:
                self._plans.offer(key, plan, rows=self.cluster.nodes.capacity)
        if self.remember:
            cluster = self.cluster
            as_of = (cluster.objects.generation, cluster.terms.generation, cluster.nodes.node_changes.position)
            if plan.idle_as_of != as_of:
                plan.follow(pod, self._idlers, as_of)
        return plan

    def forget(self, plugin: str) -> None:
        """Ask a plugin everything anew."""
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
            answer = step.settled if step.is_settled else self._asked(step, "pre_filter", state, pod, nodes)
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

    def _asked(
        self, step: PreFilterStep | PreScoreStep, method: str, state: CycleState, pod: PodInfo, nodes: NodeColumns
    ) -> Any:
        """The answer as the plugin gave it: it gets the plugin's name only where somebody will read it."""
        try:
            if state.times is not None:
                return state.times.ask(step.plugin.name, POINT_LABELS[method], step.ask, state, pod, nodes)
            return step.ask(state, pod, nodes)
        except Exception as exception:
            return failed(step.plugin, method, self.complain, exception)

    # PreScore

    def run_pre_scores(self, plan: Plan, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> list[ScoreCall]:
        """Run the PreScores that are due; the scores that have to be asked for this decision."""
        for step in plan.due_pre_scores:
            answer = step.failure or self._asked(step, "pre_score", state, pod, nodes)
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

    # Dry runs

    def nominated_rows(self, nominator: Nominator) -> NominatedRows:
        """The nominations of a nominator as columns."""
        known = self._nominated
        if known is not None and self.remember and (known.nominator is nominator or known.is_of(nominator)):
            return known
        known = self._nominated = NominatedRows(nominator, self.cluster.nodes)
        return known

    def run_filters_on(self, state: CycleState, pod: PodInfo, nodes: NodeColumns, position: int) -> Status | None:
        """Every filter on one node of an overlay; the first rejection, None if all let it pass."""
        return self.first_rejection(state, pod, nodes.info(position), lambda: nodes.take(_only(position)))

    def first_rejection(
        self, state: CycleState, pod: PodInfo, info: NodeInfo, columns: Callable[[], NodeColumns] | None = None
    ) -> Status | None:
        """The same on a node as it is, or on one that somebody made up. Filters that know no other form get `columns`;
        a node as it is needs none."""
        view: NodeColumns | None = None
        for call in self._in_play.get(state.skip_filter) or self._find_in_play(state.skip_filter):
            if not call.has_one:
                view = view or (columns() if columns is not None else NodeColumns(self.cluster.nodes, _only(info.row)))
                verdicts = call.verdicts(state, pod, view)
                status = verdicts.status(int(verdicts.ids[0])) if verdicts.ids[0] else None
            elif call.times is not None:
                status = call.one(state, pod, info)
            else:
                # As `call.one` does it: of a pod that may go to one node this is the most, and a call less counts.
                try:
                    status = call.plugin.filter(state, pod, info)
                except Exception as exception:
                    status = call.raised(exception)
            if status is not None and not status.is_success:
                if not status.is_rejected:
                    call.note_failure()
                return checked(status.by(call.name))
        return None

    def _find_in_play(self, skipped: frozenset[str]) -> list[FilterCall]:
        """The filters that are not skipped. There are as many answers as there are kinds of pods, and a few more."""
        if len(self._in_play) >= _MOST_IN_PLAY:
            self._in_play.clear()
        calls = self._in_play[skipped] = [call for call in self.filter_calls if call.name not in skipped]
        return calls

    def run_on_pods(self, method: str, state: CycleState, pod: PodInfo, other: PodInfo, node: NodeInfo) -> None:
        """`add_pod` or `remove_pod` of every plugin whose filter takes part."""
        for plugin in self._following:
            if plugin.name not in state.skip_filter:
                status = call_plugin(plugin, method, self.complain, state, pod, other, node)
                if isinstance(status, Status) and not status.is_success:
                    point = "AddPod" if method == "add_pod" else "RemovePod"
                    raise PluginFailure(_explained(f'running {point} on PreFilter plugin "{plugin.name}": ', status))

    def follows_pods(self, state: CycleState) -> bool:
        """Whether some filter keeps state that dry runs must bring up to date node by node."""
        return any(plugin.name not in state.skip_filter for plugin in self._following)

    def reads_counts_only(self, state: CycleState) -> bool:
        """Whether a dry run can move pods by moving counts: no filter in play looks at the pods themselves."""
        return not self.follows_pods(state) and all(
            call.depends is Depends.NODE or call.plugin.filter_reads_counts_only
            for call in self.filter_calls
            if call.name not in state.skip_filter
        )

    def remembers(self, state: CycleState) -> tuple[tuple[str, int], ...] | None:
        """The filters in play and how often each was told to forget; None if one looks beyond the node."""
        calls = [call for call in self.filter_calls if call.name not in state.skip_filter]
        if not self.remember or any(call.depends > Depends.ROW for call in calls):
            return None
        return tuple((call.name, call.plugin.version) for call in calls)

    def rejections(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> list[tuple[Status, Rows]]:
        """The first rejection of every position that has one, grouped by status."""
        passing = np.ones(len(nodes), dtype=np.bool_)
        groups: list[tuple[Status, Rows]] = []
        for call in self.filter_calls:
            if call.name not in state.skip_filter:
                verdicts = call.verdicts(state, pod, nodes)
                rejected = passing & (verdicts.ids != 0)
                if rejected.any():
                    positions = np.flatnonzero(rejected)
                    found = group_by_status(positions, verdicts.ids[positions], verdicts.status)
                    groups += [(checked(status.by(call.name)), some) for status, some in found]
                    passing &= ~rejected
        return groups

    def passes(self, state: CycleState, pod: PodInfo, nodes: NodeColumns, *, only_counts: bool) -> BoolN:
        """Which positions every filter lets pass."""
        passing: BoolN | None = None
        for call in self.filter_calls:
            if call.name not in state.skip_filter and not (only_counts and call.depends is Depends.NODE):
                found = call.verdicts(state, pod, nodes).ids == 0
                passing = found if passing is None else passing & found
        return np.ones(len(nodes), dtype=np.bool_) if passing is None else passing


def _only(row: int) -> Rows:
    return np.array([row], dtype=np.intp)


def _pinned_by(plugin: str) -> PreFilterOutcome:
    return PreFilterOutcome(None, None, (plugin,), absent=_left_out((plugin,)), is_pinned=True)


@lru_cache(maxsize=64)
def _left_out(plugins: tuple[str, ...]) -> Status:
    """What is said of the nodes that plugins do not name."""
    return Unresolvable(f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(plugins))}]")


def _nothing_left(plugins: list[str]) -> Status:
    if len(plugins) == 1:
        return Unresolvable(f"node(s) didn't satisfy plugin {plugins[0]}")
    return Unresolvable(f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(plugins))}] simultaneously")


def _explained(prefix: str, status: Status) -> Status:
    return Error(prefix + status.message, exception=status.exception).by(status.plugin)


def checked(status: Status) -> Status:
    """A filter may reject; anything else ends the cycle."""
    if not status.is_rejected:
        raise PluginFailure(_explained(f'running "{status.plugin}" filter plugin: ', status))
    return status
