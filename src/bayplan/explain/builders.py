"""Builders: from a record to what is claimed about then, from a decision on a view to what is claimed about now.

Works on columns and counts, so that five thousand nodes cost little more than fifty. What a running scheduler knows
beside (queue, attempts, held pods) is added by `bayplan.explain.service`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bayplan.api.requests import pod_requests
from bayplan.cluster.node_table import NodeTable
from bayplan.cluster.pod_info import PodInfo
from bayplan.explain.claims.devices import LacksDevices
from bayplan.explain.claims.phrases import error_itself
from bayplan.explain.claims.pods import (
    NOW,
    Chosen,
    FitsNowhere,
    GoesTo,
    HeldBack,
    Left,
    RefusedLater,
    Unplaced,
    WouldPreempt,
)
from bayplan.explain.device_report import device_report, lacks
from bayplan.explain.model import Now
from bayplan.explain.suggestions.objections import sole_objectors
from bayplan.explain.suggestions.remedies import human_amount
from bayplan.explain.views import ClusterView
from bayplan.framework.device_findings import DeviceExaminer
from bayplan.framework.runtime.framework import Framework
from bayplan.framework.status import Status
from bayplan.loop.decide import Decision
from bayplan.loop.notes import BEFORE_FILTERS, funnel_of, phases_of
from bayplan.loop.points import best_nodes, tied_nodes
from bayplan.loop.record import DecisionRecord, PluginTook, Points, Refused
from bayplan.loop.recorder import preemption_of, refused_nodes

__all__ = [
    "chosen_of",
    "decide_on",
    "decisive_plugin",
    "gone_of",
    "held_back_claim",
    "later_refusal_of",
    "now_claim",
    "now_of",
    "root_cause",
    "summary_of",
    "too_large",
]

_MOST_TIES = 12
MOST_BEST = 10


# Then


def chosen_of(record: DecisionRecord, *, is_bound: bool = True, is_past: bool = False) -> Chosen:
    """What a record says about the node that it chose. `is_past`: nothing else is known about the pod."""
    runner_up = record.runner_up
    return Chosen(
        pod=record.pod,
        node=record.node,
        by=record.chosen_by,
        nodes=record.nodes,
        feasible=record.feasible,
        total=record.total,
        ties=record.ties,
        runner_up=runner_up.node if runner_up is not None else "",
        ahead=record.total - runner_up.total if runner_up is not None else 0,
        plugin=decisive_plugin(record.points, runner_up.points) if runner_up is not None and record.ties == 1 else "",
        victims=tuple(victim.pod for victim in record.victims),
        is_bound=is_bound,
        scored=record.scored,
        is_past=is_past,
    )


def later_refusal_of(record: DecisionRecord) -> RefusedLater | None:
    """What stopped an attempt after its choice; None if nothing did."""
    if not record.stopped_at:
        return None
    return RefusedLater(
        pod=record.pod,
        node=record.node,
        point=record.stopped_at,
        plugin=record.stopped_by,
        message=error_itself(record.stopped_at, record.stopped_by, record.error),
        has_failed=record.outcome == "error",
    )


def gone_of(key: str, record: DecisionRecord | None) -> Left | Unplaced:
    """Of a pod that neither waits nor runs, from the record of its last attempt."""
    if record is not None and record.outcome == "bound":
        return Left(pod=key, node=record.node)
    said = "" if record is None else record.error if record.node else record.message
    return Unplaced(pod=key, message=said)


def decisive_plugin(first: Mapping[str, Points], second: Mapping[str, Points]) -> str:
    """The plugin that made most of the difference between two nodes; empty if none is for the first."""
    gains = {plugin: points.weighted for plugin, points in first.items()}
    for plugin, points in second.items():
        gains[plugin] = gains.get(plugin, 0) - points.weighted
    plugin = max(gains, key=lambda name: gains[name], default="")
    return plugin if plugin and gains[plugin] > 0 else ""


def summary_of(record: DecisionRecord) -> str:
    """For an annotation: node, score, runner-up."""
    some = f", {record.scored} of them scored" if record.scored else ""
    parts = [f"{record.node}: {record.feasible} of {record.nodes} nodes fit{some}"]
    if record.is_scored:
        parts.append(f"{record.total} point{'' if record.total == 1 else 's'}")
    if record.runner_up is not None:
        claim = chosen_of(record)
        by = f" ({claim.plugin})" if claim.plugin else ""
        ahead = f"{claim.ahead} ahead of {claim.runner_up}{by}"
        parts.append(ahead if claim.ahead else f"tied with {claim.runner_up}")
    return "; ".join(parts)


# Now


def decide_on(view: ClusterView, info: PodInfo) -> Decision:
    """What would be decided about the pod now, with the points of every node. Nothing is assumed or evicted."""
    return view.decide(info, explains=True, always_score=True)


def now_of(framework: Framework, decision: Decision, *, most: int = MOST_BEST) -> Now:
    """To be built before the next decision."""
    refused = refused_nodes(decision, most=None)
    count = len(framework.cluster.nodes)
    return Now(
        node=decision.node_name,
        message=decision.message,
        nodes=count,
        feasible=decision.fitting_nodes,
        funnel=funnel_of(_counts(refused), [call.name for call in framework.filter_calls], count),
        refused=refused,
        best=best_nodes(decision, most=most),
        ties=decision.ties,
        tied=sorted(tied_nodes(decision, most=decision.ties))[:_MOST_TIES],
        preemption=preemption_of(decision.nomination),
        devices=device_report(framework, decision),
        phases=phases_of(decision.marks),
        times=tuple(PluginTook(plugin=t.plugin, point=t.point, seconds=t.seconds) for t in decision.plugin_times),
    )


def _counts(refused: Sequence[Refused]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for group in refused:
        plugin = group.plugin or BEFORE_FILTERS
        counts[plugin] = counts.get(plugin, 0) + group.count
    return counts


def now_claim(
    framework: Framework,
    info: PodInfo,
    decision: Decision,
    now: Now,
    *,
    place: str = "",
    is_offline: bool = False,
    sample: int = 0,
) -> NOW:
    """The one sentence about a pod that waits. `sample`: how many nodes the scheduler scores at a time, if not all."""
    if now.node:
        second = now.best[1] if len(now.best) > 1 else None
        first = now.best[0] if now.best else None
        return GoesTo(
            pod=info.key,
            node=now.node,
            nodes=now.nodes,
            feasible=now.feasible,
            total=first.total if first is not None else 0,
            ties=now.ties,
            runner_up=second.node if second is not None else "",
            ahead=first.total - second.total if first is not None and second is not None else 0,
            plugin=decisive_plugin(first.points, second.points)
            if first is not None and second is not None and now.ties == 1
            else "",
            place=place,
            is_offline=is_offline,
            sample=sample if 0 < sample < now.feasible else 0,
        )
    if now.preemption is not None:
        victims = tuple(victim.pod for victim in now.preemption.victims)
        broken = next((int(k.value) for k in now.preemption.keys if k.key == "disruption budgets broken"), 0)
        return WouldPreempt(
            pod=info.key,
            node=now.preemption.node,
            victims=victims,
            violations=broken,
            ties=now.preemption.ties,
        )
    return _nowhere(framework, info, decision, now)


def _nowhere(framework: Framework, info: PodInfo, decision: Decision, now: Now) -> FitsNowhere | LacksDevices:
    plugin, reason, refused = root_cause(framework, decision, now.refused)
    lacking = lacks(now.devices, info.key, now.nodes) if now.devices is not None and refused else None
    if lacking is not None and isinstance(framework.plugins.get(plugin), DeviceExaminer):
        return lacking
    claim = FitsNowhere(
        pod=info.key, nodes=now.nodes, plugin=plugin, reason=reason, refused=refused, message=now.message
    )
    if not reason.startswith("Insufficient ") and reason != "Too many pods":
        return claim
    found = too_large(info, framework.cluster.nodes)
    if found is None:
        return claim
    resource, asked, largest = found
    return FitsNowhere(
        pod=info.key,
        nodes=now.nodes,
        plugin=plugin,
        reason=reason,
        refused=refused,
        message=now.message,
        resource=resource,
        asked=asked,
        largest=largest,
    )


def root_cause(framework: Framework, decision: Decision, groups: Sequence[Refused]) -> tuple[str, str, int]:
    """(plugin, reason, nodes): the filter that keeps the pod from most nodes all by itself, since without it the pod
    would run there; where no filter does that alone, the one that refuses most."""
    alone = sole_objectors(framework, decision)
    counts: dict[str, int] = {}
    for group in groups:
        counts[group.plugin] = counts.get(group.plugin, 0) + group.count
    # Nodes that PreFilter left out come without a plugin: of a pod that names its node, all but that one.
    named = {plugin: count for plugin, count in counts.items() if plugin}
    blamed = {plugin: nodes for plugin, nodes in alone.items() if plugin in counts} or named or counts
    plugin = max(sorted(blamed), key=lambda name: blamed[name], default="")
    # Whether preemption could help tells groups apart that refuse for the same reason.
    nodes: dict[tuple[str, ...], int] = {}
    for group in groups:
        if group.plugin == plugin:
            nodes[group.reasons] = nodes.get(group.reasons, 0) + group.count
    if not nodes:
        return plugin, decision.message, 0
    # Of as many nodes, those that lack less are nearer.
    reasons = max(nodes, key=lambda reasons: (nodes[reasons], -len(reasons)))
    return plugin, ", ".join(reasons), nodes[reasons]


def too_large(info: PodInfo, table: NodeTable) -> tuple[str, str, str] | None:
    """(resource, what the pod asks, the most that a node offers or ""), where no node could ever hold the pod."""
    nodes = [node for node in table.infos if node is not None]
    for name, amount in pod_requests(info.pod).items():
        most = max((node.allocatable_of(name) for node in nodes), default=0)
        if amount > most:
            return name, human_amount(amount, name), human_amount(most, name) if most else ""
    return None


def held_back_claim(info: PodInfo, status: Status) -> HeldBack:
    gates = tuple(gate.name for gate in info.pod.spec.scheduling_gates or ())
    is_gate = all(gate in status.message for gate in gates)
    return HeldBack(pod=info.key, plugin=status.plugin, message=status.message, gates=gates if is_gate else ())
