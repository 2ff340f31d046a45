"""Explaining one decision on a cluster that can be looked at: funnel, reasons, best nodes, lead, victims.

Works on columns and counts, so that five thousand nodes cost little more than fifty. `explained` is for any view;
what a running scheduler knows beside (queue, attempts) is added by `bayplan.explain.service`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from bayplan.app.offline import OfflineScheduler
from bayplan.cluster.pod_info import PodInfo
from bayplan.explain.case import decide_in_full
from bayplan.explain.explanation import Explanation, Funnel, Lead, Step, Victims
from bayplan.explain.sentences import verdict_of
from bayplan.explain.views import ClusterView
from bayplan.framework.runtime.framework import Framework
from bayplan.loop.decide import Decision
from bayplan.loop.notes import phases_of
from bayplan.loop.points import best_nodes, tied_nodes
from bayplan.loop.record import DecisionRecord, PluginTook, Refused, ScoredNode
from bayplan.loop.recorder import refused_nodes

__all__ = ["explained", "explained_from_record", "funnel_of", "lead_of"]

BEFORE_FILTERS = "PreFilter"
_MOST_TIES = 12
_MOST_VICTIMS = 50
MOST_BEST = 10


def explained(
    view: ClusterView,
    info: PodInfo,
    *,
    in_full: bool = False,
    best: int = MOST_BEST,
    decision: Decision | None = None,
) -> Explanation:
    """What would be decided about the pod now. Nothing is assumed, nominated or evicted.

    `decision` is one that was just made, where making it takes more than a view: extenders had to be asked.
    """
    framework = view.framework(info.scheduler_name)
    result = None
    if in_full:
        # Shaped for offline schedulers; a view has all that it asks of one.
        in_detail, result = decide_in_full(cast(OfflineScheduler, view), info.pod)
        decision = decision or in_detail
    if decision is None or (in_full and _differs(info)):
        decision = view.decide(info, explains=True, always_score=True)
    explanation = _described(framework, info, decision, best)
    explanation.result = result
    explanation.verdict = verdict_of(explanation)
    return explanation


def _differs(info: PodInfo) -> bool:
    """Whether the pod as we know it is not the pod as its object says."""
    return bool(info.nominated_node_name) or info.node_name != info.pod.spec.node_name


def _described(framework: Framework, info: PodInfo, decision: Decision, most: int) -> Explanation:
    order = [call.name for call in framework.filter_calls]
    refused = refused_nodes(decision, most=None)
    best = best_nodes(decision, most=most)
    count = len(framework.cluster.nodes)
    nomination = decision.nomination
    victims = None
    if nomination is not None and nomination.nominated_node_name:
        keys = [pod.key for pod in nomination.victims[:_MOST_VICTIMS]]
        victims = Victims(node=nomination.nominated_node_name, pods=keys)
    return Explanation(
        pod=info.key,
        uid=info.uid,
        profile=info.scheduler_name,
        state="pending",
        verdict="",
        node=decision.node_name,
        fits=decision.is_scheduled,
        message=decision.message,
        node_count=count,
        feasible=decision.feasible_nodes,
        funnel=funnel_of(_counts(refused), order, count),
        refused=refused,
        best=best,
        weights={call.name: call.weight for call in framework.score_calls},
        tie_count=decision.ties,
        phases=phases_of(decision.marks),
        times=tuple(PluginTook(plugin=t.plugin, point=t.point, seconds=t.seconds) for t in decision.plugin_times),
        ties=sorted(tied_nodes(decision, most=decision.ties))[:_MOST_TIES],
        lead=lead_of(best) if decision.is_scheduled else None,
        victims=victims,
    )


def explained_from_record(record: DecisionRecord) -> Explanation:
    """What was decided then."""
    best = _leading(record)
    explanation = Explanation(
        pod=record.pod,
        uid=record.uid,
        profile=record.profile,
        state="placed" if record.outcome == "bound" else "pending",
        verdict="",
        node=record.node,
        message=record.message,
        as_of=record.time,
        from_record=True,
        node_count=record.nodes,
        feasible=record.feasible,
        funnel=[Step(plugin=step.plugin, rejected=step.rejected, left=step.left) for step in record.funnel],
        refused=list(record.refused),
        best=best,
        weights={plugin: points.weight for plugin, points in record.points.items()},
        tie_count=record.ties,
        phases=record.phases,
        times=record.times,
        lead=lead_of(best) if record.node else None,
        victims=Victims(node=record.nominated, pods=[v.pod for v in record.victims]) if record.nominated else None,
        preemption=record.preemption if record.node else None,
    )
    explanation.verdict = verdict_of(explanation)
    return explanation


def _leading(record: DecisionRecord) -> list[ScoredNode]:
    if not record.points:
        return []
    chosen = ScoredNode(node=record.node, total=record.total, points=record.points)
    return [chosen] if record.runner_up is None else [chosen, record.runner_up]


def _counts(refused: Sequence[Refused]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for group in refused:
        plugin = group.plugin or BEFORE_FILTERS
        counts[plugin] = counts.get(plugin, 0) + group.count
    return counts


def funnel_of(counts: dict[str, int], order: Sequence[str], node_count: int) -> Funnel:
    """Filters that rejected nobody are left out; what is no filter (PreFilter, an extender) comes first or last."""
    known = {name: place for place, name in enumerate(order)}
    known[BEFORE_FILTERS] = -1
    left, steps = node_count, []
    for plugin in sorted(counts, key=lambda name: known.get(name, len(order))):
        left -= counts[plugin]
        steps.append(Step(plugin=plugin, rejected=counts[plugin], left=max(left, 0)))
    return steps


def lead_of(best: Sequence[ScoredNode]) -> Lead | None:
    """None when nothing was chosen by points."""
    if len(best) < 2:
        return None
    first, second = best[0], best[1]
    gains = {plugin: points.weighted for plugin, points in first.points.items()}
    for plugin, points in second.points.items():
        gains[plugin] = gains.get(plugin, 0) - points.weighted
    ahead = first.total - second.total
    plugin = max(gains, key=lambda name: gains[name], default="")
    return Lead(runner_up=second.node, points=ahead, plugin=plugin if ahead and gains[plugin] > 0 else "")
