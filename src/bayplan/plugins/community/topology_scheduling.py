"""TopologyScheduling: pods of a job on a chain of nodes with a good network between neighbours.

A chain takes nodes in the order in which they are listed, so the best chain from a node on does not depend on the links
before it: one pass from the last link to the first finds it in links times nodes squared steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bayplan.framework import (
    ActionType,
    ClusterEvent,
    CycleState,
    Error,
    EventHint,
    NodeColumns,
    NodeInfo,
    Plugin,
    PodInfo,
    QueuedPod,
    Resource,
    Skip,
    StateKey,
    Status,
    Unschedulable,
)
from bayplan.framework.objects import milli_value
from bayplan.plugins.distributed_jobs import (
    DistributedJob,
    NetworkMetrics,
    NetworkTables,
    cluster_metrics,
    job_of,
    workload_of,
)

__all__ = ["Link", "TopologyScheduling", "best_chain"]

_CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
_CHOSEN: StateKey[str] = StateKey("TopologyScheduling/chosen node")
_NO_METRICS = Unschedulable("failed to get network metrics: NetworkMetrics kube-system/cluster-metrics not found")
_NO_CHAIN = Unschedulable("no nodes have the bandwidth and latency that the DistributedJob needs")
_NO_PLACE = Unschedulable("the workload has no place in the DistributedJob's order yet")
_ANOTHER_NODE = Unschedulable("node(s) were not chosen for this workload")
_NOT_CHOSEN = Error("no node was chosen; enable TopologyScheduling at preFilter as well as at filter")


class TopologyScheduling(Plugin):
    """Give the workloads of a DistributedJob the chain of nodes with the best network between neighbours.

    *What it does*: orders the queue so that workloads come in the order of their job; then, of all chains of whole
    nodes (not control plane, nothing reserved of the CPU) in the order of their names, takes the one that scores best
    and holds each workload to its place in it. A link scores 200 when it meets the desired bandwidth or latency, in
    proportion below that, and rules the chain out where it breaks a limit.
    *Rejects when*: there is no job or no metrics, no chain meets all limits, or the node is not the chosen one.
    *Scores by*: nothing.
    *Retries on*: changes of DistributedJobs, NetworkMetrics and nodes.
    *Arguments*: none.
    *Differs from the original*: it compares all chains at once instead of one by one, which takes milliseconds where
    the original did not end in practice; chains that break a limit are never chosen; latency is scored by latency (the
    original used the bandwidth there); pods of several namespaces have an order; a chosen node that cannot be found is
    an error (the original waited for it in an endless loop); rejections have reasons; pods without the label are not
    affected.
    """

    watches = (DistributedJob, NetworkMetrics)
    reasons = (
        *(status.message for status in (_NO_METRICS, _NO_CHAIN, _NO_PLACE, _ANOTHER_NODE)),
        "failed to get DistributedJob CRD: <why>",
    )

    def sort_key(self, queued: QueuedPod) -> tuple[int, int, int, float]:
        resource = workload_of(queued.info)
        order = None if resource is None else self._order(queued.info, resource)
        return (resource is None, order or 0, -queued.priority, queued.timestamp)

    def _order(self, pod: PodInfo, resource: str) -> int | None:
        job = job_of(self.handle.resources(DistributedJob), pod.namespace)
        return None if isinstance(job, str) else job.order_of(resource)

    def is_relevant(self, pod: PodInfo) -> bool:
        return workload_of(pod) is not None

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Status | None:
        resource = workload_of(pod)
        if resource is None:
            return Skip()
        tables = cluster_metrics(self.handle.resources(NetworkMetrics))
        if tables is None:
            return _NO_METRICS
        job = job_of(self.handle.resources(DistributedJob), pod.namespace)
        if isinstance(job, str):
            return Unschedulable(f"failed to get DistributedJob CRD: {job}")
        order = job.order_of(resource)
        if order is None or not 1 <= order <= len(job.statuses):
            return _NO_PLACE
        names = sorted(node.name for node in nodes if _is_candidate(node))
        chain = best_chain(names, tables, _links(job), length=len(job.statuses))
        if chain is None:
            return _NO_CHAIN
        state.put(_CHOSEN, chain[order - 1])
        return None

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        if workload_of(pod) is None:
            return None
        chosen = state.get(_CHOSEN)
        if chosen is None:
            return _NOT_CHOSEN
        return None if node.name == chosen else _ANOTHER_NODE

    def events_to_register(self) -> list[EventHint]:
        changes = ActionType.ADD | ActionType.UPDATE_NODE_LABEL | ActionType.UPDATE_NODE_ALLOCATABLE
        return [*(EventHint(kind.changes()) for kind in self.watches), EventHint(ClusterEvent(Resource.NODE, changes))]


def _is_candidate(node: NodeInfo) -> bool:
    """Whether the node is a worker without reserved CPU."""
    capacity = milli_value((node.node.status.capacity or {}).get("cpu", 0))
    return _CONTROL_PLANE not in node.labels and 0 < capacity <= node.allocatable_of("cpu")


def _links(job: DistributedJob) -> list[Link]:
    """The requirements of the chain's links: every dependency, in the order of the statuses."""
    dependencies = [each for status in job.statuses for each in job.dependencies_of(status.resource)]
    return [
        Link(
            least_bandwidth=each.bandwidth.limits,
            wanted_bandwidth=each.bandwidth.requests,
            most_latency=each.latency.limits,
            wanted_latency=each.latency.requests,
        )
        for each in dependencies
    ]


_FULL = 200.0
_HALF = 100.0
Matrix = npt.NDArray[np.float64]


class Link(NamedTuple):
    """The requirements of two neighbours of the chain for the network between them."""

    least_bandwidth: float
    wanted_bandwidth: float
    most_latency: float
    wanted_latency: float


_ANY = Link(0.0, 0.0, np.inf, np.inf)


def best_chain(names: Sequence[str], tables: NetworkTables, links: Sequence[Link], *, length: int) -> list[str] | None:
    """The chain with the highest sum of link scores, the first in the order of `names` among equals; None without.

    Links beyond the last requirement need nothing.
    """
    if length < 1 or len(names) < length:
        return None
    bandwidth, latency = _matrix(names, tables.bandwidth), _matrix(names, tables.latency)
    onward: Matrix = np.zeros(len(names))
    steps: list[Matrix] = []
    for place in reversed(range(length - 1)):
        link = links[place] if place < len(links) else _ANY
        step = _scores(bandwidth, latency, link) + onward[np.newaxis, :]
        steps.append(step)
        onward = step.max(axis=1)
    if not np.isfinite(onward.max()):
        return None
    chain = [int(onward.argmax())]
    for step in reversed(steps):
        chain.append(int(step[chain[-1]].argmax()))
    return [names[place] for place in chain]


def _matrix(names: Sequence[str], table: dict[str, dict[str, float]] | None) -> Matrix:
    places = {name: place for place, name in enumerate(names)}
    matrix = np.zeros((len(names), len(names)))
    for source, row in (table or {}).items():
        if source in places:
            for target, value in row.items():
                if target in places:
                    matrix[places[source], places[target]] = value
    return matrix


def _scores(bandwidth: Matrix, latency: Matrix, link: Link) -> Matrix:
    """The score of each pair as neighbours; minus infinity where the pair is not allowed."""
    partly = np.zeros_like(bandwidth)
    if link.wanted_bandwidth > link.least_bandwidth:
        partly += (bandwidth - link.least_bandwidth) / (link.wanted_bandwidth - link.least_bandwidth) * _HALF
    if link.most_latency > link.wanted_latency:
        partly += (link.most_latency - latency) / (link.most_latency - link.wanted_latency) * _HALF
    is_full = (bandwidth >= link.wanted_bandwidth) | (latency <= link.wanted_latency)
    is_broken = (bandwidth < link.least_bandwidth) | (latency > link.most_latency)
    scores = np.where(is_broken, -np.inf, np.where(is_full, _FULL, partly))
    scores[np.tril_indices(len(scores))] = -np.inf  # a chain goes forward in the list and visits a node once
    return scores
