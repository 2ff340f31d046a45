"""What came of scheduling one pod, in plain values that stay true when the cluster moves on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from bayplan.api.pod import Pod
from bayplan.cluster.pod_info import PodInfo
from bayplan.framework.runtime.framework import Framework
from bayplan.framework.status import Status
from bayplan.loop.decide import Decision

__all__ = ["ChosenNode", "Outcome", "outcome_of"]


class ChosenNode(str):
    """The name of a node that remembers its decision as a table, for the message of a failed comparison."""

    table: Callable[[], str]

    @classmethod
    def of(cls, name: str, table: Callable[[], str]) -> ChosenNode:
        made = cls(name)
        made.table = table
        return made


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The result of `Harness.schedule` or `Harness.explain`. Read it, or hand it to `expect`."""

    pod: Pod
    node_name: str = ""
    """Where the pod goes; empty when it goes nowhere."""
    best: tuple[str, ...] = ()
    """The nodes that tie for the highest total, sorted; `node_name` is one of them."""
    message: str = ""
    """Why not, as the pod's condition would say it; empty when a node was found."""
    rejections: dict[str, Status] = field(default_factory=dict)
    """By node, the first rejection: its code, reasons and plugin."""
    scores: dict[str, dict[str, int]] = field(default_factory=dict)
    """By node and plugin, the score from 0 to 100, before the weight. A plugin that skipped is not there."""
    totals: dict[str, int] = field(default_factory=dict)
    """By node, the weighted sum."""
    weights: dict[str, int] = field(default_factory=dict)
    unschedulable_plugins: frozenset[str] = frozenset()
    """The plugins to blame; changes that they care about bring the pod back."""
    nominated_node: str = ""
    """Where preemption makes room."""
    victims: tuple[str, ...] = ()
    """Who would be evicted there, most important first, as `namespace/name`."""
    failure: Status | None = None
    """Set when something went wrong, which is not the same as fitting nowhere."""
    waits_for: tuple[str, ...] = ()
    """Plugins that hold the pod at Permit."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "node_name", ChosenNode.of(self.node_name, lambda: _table_of(self)))

    @property
    def is_scheduled(self) -> bool:
        return bool(self.node_name)

    @property
    def feasible(self) -> tuple[str, ...]:
        """The nodes that every filter let pass and that were scored, sorted."""
        return tuple(sorted(self.totals))


def _table_of(outcome: Outcome) -> str:
    from bayplan.testing.tables import verdict_table  # it imports this module

    return verdict_table(outcome)


def outcome_of(pod: Pod, decision: Decision, framework: Framework) -> Outcome:
    """Copy a decision out of the engine. To be called before anything else happens there."""
    scores, totals = _scores(decision, framework)
    if not totals and decision.node_name:
        totals = {decision.node_name: decision.total}
    highest = max(totals.values(), default=0)
    best = tuple(sorted(name for name, total in totals.items() if total == highest))
    diagnosis, nomination = decision.diagnosis, decision.nomination
    nominated = nomination is not None and bool(nomination.nominated_node_name)
    return Outcome(
        pod=pod,
        node_name=decision.node_name,
        best=best if decision.node_name in best else ((decision.node_name,) if decision.node_name else ()),
        message=decision.message,
        rejections=_rejections(decision, framework, totals),
        scores=scores,
        totals=totals,
        weights={call.name: call.weight for call in framework.score_calls},
        unschedulable_plugins=frozenset(diagnosis.unschedulable_plugins) if diagnosis is not None else frozenset(),
        nominated_node=(nomination.nominated_node_name or "") if nomination is not None else "",
        victims=_keys(nomination.victims) if nomination is not None and nominated else (),
        failure=decision.failure,
    )


def _keys(pods: tuple[PodInfo, ...]) -> tuple[str, ...]:
    return tuple(pod.key for pod in pods)


def _rejections(decision: Decision, framework: Framework, feasible: dict[str, int]) -> dict[str, Status]:
    table = framework.cluster.nodes
    found = {table.at(row).name: status for status, rows in decision.rejected_groups() for row in rows.tolist()}
    absent = decision.absent
    if decision.diagnosis is not None and decision.diagnosis.absent is not None:
        absent = decision.diagnosis.absent
    if absent is not None:
        found = {name: absent for name in table.row_of if name not in feasible} | found
    return found


def _scores(decision: Decision, framework: Framework) -> tuple[dict[str, dict[str, int]], dict[str, int]]:
    scores = decision.scores
    if scores is None:
        return {}, {}
    table = framework.cluster.nodes
    weights = {call.name: call.weight for call in framework.score_calls}
    names = [table.at(row).name for row in scores.rows.tolist()]
    by_plugin = {plugin: (share // weights[plugin]).tolist() for plugin, share in scores.shares.items()}
    by_node = {name: {plugin: by_plugin[plugin][i] for plugin in by_plugin} for i, name in enumerate(names)}
    return by_node, dict(zip(names, scores.totals.tolist(), strict=True))
