"""The decision: a cluster, a pod and a profile in; a node, or the reasons why there is none, out.

A plain function without I/O and await; the time is read only to note how long phases took. Its helpers stand in the
order in which they run: PreFilter, the nominated node, Filter, (PostFilter when nothing fits), Score, choice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from bayplan.cluster.axes import Rows
from bayplan.cluster.node_columns import NodeColumns
from bayplan.cluster.nominated import Nominator
from bayplan.cluster.pod_info import PodInfo
from bayplan.framework.cycle import CycleState
from bayplan.framework.diagnosis import Diagnosis
from bayplan.framework.plugin import PostFilterResult
from bayplan.framework.runtime.call import KeptScoreFailure, PluginFailure
from bayplan.framework.runtime.filtering import FilterOutcome, check_row, check_rows, find_feasible
from bayplan.framework.runtime.framework import Framework
from bayplan.framework.runtime.outline import Outline, PreFilterOutcome
from bayplan.framework.runtime.plan import Plan
from bayplan.framework.runtime.scoring import Scores, score_feasible, score_rows
from bayplan.framework.status import Status, Unresolvable
from bayplan.framework.times import PluginTime, PluginTimes, Sampling
from bayplan.loop.select import TieBreak, nodes_to_find, sample_rows

__all__ = ["Decider", "Decision", "NodeSearch", "decide"]


class Decision:
    """What was decided for one pod in one attempt, and what it was decided on."""

    __slots__ = (
        "_plan",
        "absent",
        "diagnosis",
        "evaluated_nodes",
        "failure",
        "feasible_nodes",
        "marks",
        "node_name",
        "nomination",
        "outcome",
        "pod",
        "refused",
        "row",
        "scores",
        "state",
        "tied",
        "ties",
        "total",
    )

    def __init__(self, pod: PodInfo, state: CycleState) -> None:
        self.pod = pod
        self.state = state
        self._plan: Plan | None = None
        self.node_name = ""
        """Empty when no node was found."""
        self.row = -1
        """Of the node, where it was chosen by points."""
        self.failure: Status | None = None
        """Set when something went wrong, or when the cluster has no nodes."""
        self.diagnosis: Diagnosis | None = None
        """Set when no node fits."""
        self.nomination: PostFilterResult | None = None
        self.evaluated_nodes = self.feasible_nodes = self.total = self.ties = 0
        self.outcome: FilterOutcome | None = None
        """The Filter phase over all nodes; None when only some were evaluated."""
        self.refused: Sequence[tuple[Status, Rows]] = ()
        """Nodes that were rejected one by one or by extenders, by status."""
        self.absent: Status | None = None
        """Status of the nodes that were not evaluated."""
        self.scores: Scores | None = None
        self.tied: Rows | None = None
        """Rows with the highest total; None where nothing was chosen by points. Valid until the next decision."""
        self.marks: list[tuple[str, float]] = []
        """(phase, time at which it ended), the first entry being the start; empty without a clock."""

    @property
    def plan(self) -> Plan | None:
        """The plugins that matter to the pod. Pods pinned to a node share a plan; reading this makes the pod a copy."""
        plan = self._plan
        if plan is not None and self.pod.shape.pinned_to:
            plan = self._plan = plan.of(self.pod)
        return plan

    @property
    def outline(self) -> Outline | None:
        """The part of the plan that all pods of the kind share."""
        return None if self._plan is None else self._plan.outline

    @property
    def fitting_nodes(self) -> int:
        """How many nodes fit, as far as it is known: those included that a sample left out."""
        if self.outcome is None or self.outcome.count == self.feasible_nodes:
            return self.feasible_nodes
        return self.outcome.count - sum([len(rows) for _, rows in self.refused])

    @property
    def is_scheduled(self) -> bool:
        return bool(self.node_name)

    @property
    def plugin_times(self) -> list[PluginTime]:
        """How long each plugin took at each extension point so far; empty unless this cycle is one of the sample."""
        return [] if self.state.times is None else self.state.times.all()

    def rejected_groups(self) -> list[tuple[Status, Rows]]:
        """Every evaluated node that was rejected, by status. Valid until the next decision."""
        return [*(self.outcome.groups() if self.outcome is not None else ()), *self.refused]

    @property
    def message(self) -> str:
        """Why no node was found, in kube-scheduler's words; empty when one was."""
        if self.diagnosis is not None:
            return self.diagnosis.message
        return self.failure.message if self.failure is not None else ""


class NodeSearch:
    """Where the search for a sample of nodes starts next; one for all profiles of a scheduler."""

    __slots__ = ("next_start",)

    def __init__(self) -> None:
        self.next_start = 0


class ExtenderPort(Protocol):
    """HTTP extenders, as far as a decision is concerned."""

    def filter(self, pod: PodInfo, rows: Rows) -> tuple[Rows, list[tuple[Status, Rows]]]:
        """The rows that remain, and the others with their statuses. Raises PluginFailure."""

    def prioritize(self, pod: PodInfo, rows: Rows) -> np.ndarray[tuple[int], np.dtype[np.int64]] | None:
        """What to add to each total; None when no extender scores this pod."""


@dataclass(frozen=True, kw_only=True)
class Decider:
    """What decisions of one profile are made with."""

    framework: Framework
    nominator: Nominator
    tie_break: TieBreak
    search: NodeSearch
    percentage_of_nodes_to_score: int = 100
    extenders: Sequence[ExtenderPort] = ()
    always_score: bool = False
    """Score even when only one node fits."""
    explains: bool = False
    """Keep the scores of every feasible node by plugin."""
    monotonic: Callable[[], float] | None = None
    """A clock to note the time of each phase with; see `Decision.marks`."""
    sampling: Sampling | None = None
    """Which cycles to measure by plugin; see `Decision.plugin_times`."""


def decide(decider: Decider, pod: PodInfo) -> Decision:
    """Find a node for the pod, or the reasons why there is none."""
    decision = Decision(pod, CycleState())
    monotonic, sampling = decider.monotonic, decider.sampling
    if monotonic is not None:
        decision.marks.append(("", monotonic()))
    if not decider.framework.cluster.nodes.row_of:
        decision.failure = Unresolvable("no nodes available to schedule pods")
        return decision
    try:
        if sampling is not None and sampling.is_due():
            _find_node_timed(decider, pod, decision, sampling.times())
        else:
            _find_node(decider, pod, decision)
    except KeptScoreFailure:
        return decide(decider, pod)
    except PluginFailure as failure:
        decision.failure = failure.status
        decision.node_name = ""
    return decision


def _find_node_timed(decider: Decider, pod: PodInfo, decision: Decision, times: PluginTimes) -> None:
    decision.state.times = times
    decider.framework.time_plugins(times)
    try:
        _find_node(decider, pod, decision)
    finally:
        decider.framework.time_plugins(None)


def _find_node(decider: Decider, pod: PodInfo, decision: Decision) -> None:
    framework = decider.framework
    plan = decision._plan = framework.shared_plan(pod)
    prepared = framework.run_pre_filters(plan, decision.state, pod)
    if decider.monotonic is not None:
        decision.marks.append(("PreFilter", decider.monotonic()))
    if prepared.rejection is not None:
        _reject(decider, pod, decision, _prefilter_diagnosis(framework, prepared))
        return
    if pod.nominated_node_name and _takes_nominated(decider, pod, decision):
        return
    if prepared.is_pinned:
        _search_pinned(decider, pod, decision, prepared)
    elif prepared.node_names is not None:
        _search_few(decider, pod, decision, prepared, prepared.node_names)
    else:
        _search_all(decider, pod, decision)
    if decider.monotonic is not None and decision.feasible_nodes > 1 and decision.node_name:
        decision.marks.append(("Score", decider.monotonic()))


def _takes_nominated(decider: Decider, pod: PodInfo, decision: Decision) -> bool:
    """A pod that was nominated to a node gets that node if it fits; other nodes are not evaluated.

    An error of a plugin or an extender is no verdict: all nodes are evaluated then, this one included.
    """
    framework = decider.framework
    row = framework.cluster.nodes.row_of.get(pod.nominated_node_name)
    if row is None:
        return False
    try:
        status = check_row(framework, decision.state, pod, row, decider.nominator)
        if status is not None or not _survives_extenders(decider, pod, row):
            return False
    except PluginFailure:
        return False
    decision.node_name = pod.nominated_node_name
    decision.evaluated_nodes = decision.feasible_nodes = decision.ties = 1
    return True


def _survives_extenders(decider: Decider, pod: PodInfo, row: int) -> bool:
    rows = np.array([row], dtype=np.intp)
    for extender in decider.extenders:
        rows, _ = extender.filter(pod, rows)
    return bool(len(rows))


def _search_all(decider: Decider, pod: PodInfo, decision: Decision) -> None:
    framework, plan, state = decider.framework, decision.plan, decision.state
    assert plan is not None  # set before the search starts
    outcome = decision.outcome = find_feasible(framework, plan, state, pod, decider.nominator)
    if decider.monotonic is not None:
        decision.marks.append(("Filter", decider.monotonic()))
    decision.evaluated_nodes = len(framework.cluster.nodes.row_of)
    decision.feasible_nodes = outcome.count
    if not outcome.count:
        _reject(decider, pod, decision, _filter_diagnosis(framework, decision))
        return
    enough = nodes_to_find(decision.evaluated_nodes, decider.percentage_of_nodes_to_score)
    if enough < decision.evaluated_nodes or decider.extenders:
        _choose_from_sample(decider, pod, decision, outcome, enough)
    elif outcome.count == 1 and not decider.always_score:
        _take_only(decider, decision, int(outcome.feasible_rows()[0]))
    else:
        _choose(decider, pod, decision, plan, outcome)


def _choose(decider: Decider, pod: PodInfo, decision: Decision, plan: Plan, outcome: FilterOutcome) -> None:
    """Score all feasible nodes and take one of the best."""
    state, evaluation = decision.state, plan.evaluation
    pre_scores, asked = plan.due_pre_scores, plan.due_scores
    if not pre_scores and not asked and outcome.passing is None and not evaluation.is_suspect and not decider.explains:
        decision.total, ties = evaluation.best()
        _take(decider, decision, ties)
        return
    nodes = outcome.feasible_nodes()
    if pre_scores:
        asked = decider.framework.run_pre_scores(plan, state, pod, nodes)
    if decider.explains:
        scores = decision.scores = score_rows(plan, state, pod, nodes, asked)
        decision.total, ties = scores.best()
    elif not asked and outcome.passing is None and not evaluation.is_suspect:
        decision.total, ties = evaluation.best()
    else:
        scores = decision.scores = score_feasible(plan, state, pod, outcome, nodes, asked)
        decision.total, ties = scores.best()
    _take(decider, decision, ties)


def _take(decider: Decider, decision: Decision, ties: Rows) -> None:
    row = int(ties[0]) if len(ties) == 1 else decider.tie_break(ties)
    decision.ties, decision.tied, decision.row = len(ties), ties, row
    decision.node_name = decider.framework.cluster.nodes.at(row).name


def _take_only(decider: Decider, decision: Decision, row: int) -> None:
    decision.node_name, decision.ties = decider.framework.cluster.nodes.at(row).name, 1


def _choose_from_sample(
    decider: Decider, pod: PodInfo, decision: Decision, outcome: FilterOutcome, enough: int
) -> None:
    """Take a sample of the feasible nodes in kube-scheduler's order, then run extenders and scores on it."""
    table = decider.framework.cluster.nodes
    start = decider.search.next_start % len(table)
    rows, visited = sample_rows(table.order.rows(), outcome.rank() == 0, start=start, enough=enough)
    decider.search.next_start = (start + visited) % len(table)
    _choose_among(decider, pod, decision, rows)


def _search_pinned(decider: Decider, pod: PodInfo, decision: Decision, prepared: PreFilterOutcome) -> None:
    """`_search_few` for the one node that a pod of a DaemonSet is pinned to."""
    framework, pin = decider.framework, pod.shape.pinned_to
    row = framework.cluster.nodes.row_of.get(pin)
    if row is None or decider.extenders or decider.always_score:
        _search_few(decider, pod, decision, prepared, (pin,))
        return
    status = check_row(framework, decision.state, pod, row, decider.nominator)
    decision.evaluated_nodes = 1
    decision.absent = prepared.absent
    if status is None:
        decision.feasible_nodes = decision.ties = 1
        decision.node_name = pin
        return
    decision.refused = [(status, np.array([row], dtype=np.intp))]
    _reject(decider, pod, decision, _filter_diagnosis(framework, decision, prepared.restricted_by))


def _search_few(
    decider: Decider, pod: PodInfo, decision: Decision, prepared: PreFilterOutcome, names: Iterable[str]
) -> None:
    """Evaluate only the nodes that a plugin's PreFilter named."""
    table = decider.framework.cluster.nodes
    rows = sorted([table.row_of[name] for name in names if name in table.row_of])
    statuses = check_rows(decider.framework, decision.state, pod, rows, decider.nominator)
    decision.evaluated_nodes = len(rows)
    feasible = [row for row, status in statuses.items() if status is None]
    if len(feasible) < len(rows):
        decision.refused = _group_by_status(statuses)
    decision.absent = prepared.absent
    if len(feasible) == 1 and not decider.extenders and not decider.always_score:
        decision.feasible_nodes = 1
        _take_only(decider, decision, feasible[0])
        return
    _choose_among(decider, pod, decision, np.array(feasible, dtype=np.intp), prepared.restricted_by)


def _choose_among(
    decider: Decider, pod: PodInfo, decision: Decision, rows: Rows, restricted_by: tuple[str, ...] = ()
) -> None:
    """Extenders, then scores, over these feasible rows only."""
    framework, plan, state = decider.framework, decision.plan, decision.state
    assert plan is not None  # set before the search starts
    before = len(rows)
    for extender in decider.extenders:
        rows, refused = extender.filter(pod, rows)
        decision.refused = [*decision.refused, *refused]
    decision.feasible_nodes = len(rows)
    if not len(rows):
        diagnosis = _filter_diagnosis(framework, decision, restricted_by)
        if before:
            diagnosis.unschedulable_plugins.add("Extender")
        _reject(decider, pod, decision, diagnosis)
        return
    if len(rows) == 1 and not decider.always_score:
        _take_only(decider, decision, int(rows[0]))
        return
    plan.evaluation.refresh(pod)
    nodes = NodeColumns(framework.cluster.nodes, rows)
    asked = framework.run_pre_scores(plan, state, pod, nodes)
    scores = decision.scores = score_rows(plan, state, pod, nodes, asked)
    for extender in decider.extenders:
        extra = extender.prioritize(pod, rows)
        if extra is not None:
            scores.add(extra)
    decision.total, ties = scores.best()
    _take(decider, decision, ties)


def _group_by_status(statuses: dict[int, Status | None]) -> list[tuple[Status, Rows]]:
    groups: dict[Status, list[int]] = {}
    for row, status in statuses.items():
        if status is not None:
            groups.setdefault(status, []).append(row)
    return [(status, np.array(rows, dtype=np.intp)) for status, rows in groups.items()]


# When nothing fits


def _prefilter_diagnosis(framework: Framework, prepared: PreFilterOutcome) -> Diagnosis:
    rejection = prepared.rejection
    assert rejection is not None  # the caller checked
    return Diagnosis(
        total_nodes=len(framework.cluster.nodes),
        table=framework.cluster.nodes,
        absent=rejection,
        pre_filter_message=rejection.message,
        unschedulable_plugins=prepared.restricted_by,
    )


def _filter_diagnosis(framework: Framework, decision: Decision, restricted_by: tuple[str, ...] = ()) -> Diagnosis:
    return Diagnosis(
        total_nodes=len(framework.cluster.nodes),
        groups=decision.rejected_groups(),
        table=framework.cluster.nodes,
        absent=decision.absent,
        unschedulable_plugins=restricted_by,
    )


def _reject(decider: Decider, pod: PodInfo, decision: Decision, diagnosis: Diagnosis) -> None:
    """Nothing fits: run PostFilter, which may nominate a node."""
    decision.diagnosis = diagnosis
    result = decider.framework.run_post_filters(decision.state, pod, diagnosis)
    if result.status is not None and not result.status.is_success:
        diagnosis.post_filter_message = result.status.message
    decision.nomination = result
    if decider.monotonic is not None:
        decision.marks.append(("PostFilter", decider.monotonic()))
