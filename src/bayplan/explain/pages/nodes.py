"""Explaining one node: what it holds, and the verdict on it for each pending pod."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from bayplan.cluster.node_info import NodeInfo
from bayplan.cluster.pod_info import PodInfo
from bayplan.cluster.resources import CPU, MEMORY
from bayplan.explain.claims.pods import NodeAnswers, NodeStands
from bayplan.explain.claims.wording import sentence
from bayplan.explain.device_report import devices_of_node
from bayplan.explain.model import NodeExplanation, PendingHere, ResourceFill, RunningPod
from bayplan.explain.views import ClusterView
from bayplan.framework.status import Status
from bayplan.loop.decide import Decision
from bayplan.observe.time_slices import Work

__all__ = ["ZONE_LABEL", "explained_node", "fill_of"]

ZONE_LABEL = "topology.kubernetes.io/zone"
_MOST_PODS = 100
_MOST_SHAPES = 40


def explained_node(view: ClusterView, node: NodeInfo, waiting: Iterable[PodInfo]) -> Work[NodeExplanation]:
    pending, untried = yield from _pending_here(view, node, waiting)
    explanation = NodeExplanation(
        node=node.name,
        verdict="",
        zone=node.labels.get(ZONE_LABEL, ""),
        unschedulable=node.node.spec.unschedulable,
        taints=[f"{t.key}{f'={t.value}' if t.value else ''}:{t.effect}" for t in node.taints],
        labels=dict(sorted(node.labels.items())),
        resources=fill_of(node),
        pod_count=len(node.pods),
        allowed_pods=node.allowed_pods,
        pods=_largest(view, node),
        devices=devices_of_node(view.cache.cluster, node),
        pending=pending,
    )
    coming = sum(view.cache.is_assumed(uid) for uid in node.pods)
    explanation.claim = _stands(explanation, untried, coming)
    explanation.verdict = sentence(explanation.claim)
    return explanation


def _stands(node: NodeExplanation, untried: int, coming: int) -> NodeStands:
    return NodeStands(
        node=node.node,
        pods=node.pod_count - coming,
        coming=coming,
        allowed=node.allowed_pods,
        fits=sum(group.count for group in node.pending if group.fits),
        waiting=sum(group.count for group in node.pending),
        untried=untried,
        is_cordoned=node.unschedulable,
    )


def fill_of(node: NodeInfo) -> list[ResourceFill]:
    """Resources that the node offers or that pods on it request."""
    names = node.resources.names
    return [
        ResourceFill(resource=name, requested=node.requested_of(name), allocatable=node.allocatable_of(name))
        for name in names
        if node.requested_of(name) or node.allocatable_of(name)
    ]


def _largest(view: ClusterView, node: NodeInfo) -> list[RunningPod]:
    def amounts(pod: PodInfo) -> tuple[int, int]:
        vector = dict(pod.usage.vector)
        return vector.get(CPU, 0), vector.get(MEMORY, 0)

    largest = sorted(node.pods.values(), key=lambda pod: (*(-amount for amount in amounts(pod)), pod.key))
    return [
        RunningPod(
            pod=pod.key,
            cpu_milli=amounts(pod)[0],
            memory_bytes=amounts(pod)[1],
            priority=pod.priority,
            is_assumed=view.cache.is_assumed(pod.uid),
        )
        for pod in largest[:_MOST_PODS]
    ]


def _pending_here(view: ClusterView, node: NodeInfo, waiting: Iterable[PodInfo]) -> Work[tuple[list[PendingHere], int]]:
    """Pods of one shape get one answer; and how many pods are of shapes that were not looked at."""
    groups: dict[int, list[PodInfo]] = {}
    for info in waiting:
        if info.scheduler_name in view.deciders:
            groups.setdefault(info.shape.number, []).append(info)
    largest = sorted(groups.values(), key=lambda pods: -len(pods))[:_MOST_SHAPES]
    answers = []
    for pods in largest:
        answers.append(_answer(view, node, pods))
        yield
    untried = sum(map(len, groups.values())) - sum(map(len, largest))
    return answers, untried


def _answer(view: ClusterView, node: NodeInfo, pods: list[PodInfo]) -> PendingHere:
    decision = view.decide(pods[0], explains=True, always_score=True)
    answer = _here(decision, node, PendingHere(pod=pods[0].key, count=len(pods), fits=False))
    answer.claim = NodeAnswers(
        pod=answer.pod,
        node=node.name,
        fits=answer.fits,
        place=answer.place,
        total=answer.total,
        plugin=answer.plugin,
        reasons=tuple(answer.reasons),
    )
    return answer


def _here(decision: Decision, node: NodeInfo, answer: PendingHere) -> PendingHere:
    place = _position(decision, node.row)
    if place is not None and decision.scores is not None:
        totals = decision.scores.totals
        answer.fits = True
        answer.total = int(totals[place])
        answer.place = int(np.count_nonzero(totals > totals[place])) + 1
        return answer
    status = _status_of(decision, node.row)
    if status is not None:
        answer.plugin, answer.reasons = status.plugin, list(status.reasons)
    return answer


def _position(decision: Decision, row: int) -> int | None:
    if decision.scores is None:
        return None
    places = np.flatnonzero(decision.scores.rows == row)
    return int(places[0]) if len(places) else None


def _status_of(decision: Decision, row: int) -> Status | None:
    groups = decision.diagnosis.groups if decision.diagnosis is not None else decision.rejected_groups()
    for status, rows in groups:
        if row in rows:
            return status
    return decision.diagnosis.absent if decision.diagnosis is not None else decision.absent or decision.failure
