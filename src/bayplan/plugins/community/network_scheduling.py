"""NetworkScheduling: place each workload of a DistributedJob where the network to the workload before it is good."""

from __future__ import annotations

from typing import NamedTuple

from bayplan.framework import (
    MAX_NODE_SCORE,
    CycleState,
    EventHint,
    NodeInfo,
    Plugin,
    PodInfo,
    Status,
    Unschedulable,
)
from bayplan.plugins.distributed_jobs import (
    Dependency,
    DistributedJob,
    NetworkMetrics,
    NetworkTables,
    cluster_metrics,
    job_of,
    workload_of,
)

__all__ = ["NetworkScheduling"]

_JUST_ENOUGH = 30
"""The score of a link that just meets the limit."""
_NOT_PLACED = Unschedulable("the workload before this one is not on a node yet")
_NO_METRICS = Unschedulable("NetworkMetrics kube-system/cluster-metrics not found")


class _Link(NamedTuple):
    """The requirements of the pod for the network from the workload before it."""

    previous_node: str
    dependency: Dependency
    tables: NetworkTables

    def bandwidth(self, node: str) -> float:
        return self.tables.bandwidth_between(self.previous_node, node)

    def latency(self, node: str) -> float:
        return self.tables.latency_between(self.previous_node, node)


class NetworkScheduling(Plugin):
    """Hold pods of a DistributedJob to the bandwidth and latency that the job states.

    *What it does*: for a pod with the label `resource`, finds the workload's place in the namespace's one
    DistributedJob, the node of the workload before it, and what NetworkMetrics `kube-system/cluster-metrics` says of
    the way from there. Pods without the label, and the first workload, may go anywhere and score 100.
    *Rejects when*: the bandwidth is below the limit or the latency above it; the workload before is not on a node yet;
    there are no metrics.
    *Scores by*: 30 for a bandwidth at the limit, 100 at the request, in proportion between.
    *Retries on*: changes of DistributedJobs and NetworkMetrics.
    *Arguments*: none.
    *Differs from the original*: a bandwidth above the request scores 100 (the original's passed 100 and was refused); a
    request that is not above the limit scores 100 (the original divided by zero); a workload that the job does not
    know, or that states no dependency, may go anywhere (the original read past the end of a list); pods without the
    label need no job; a missing job or missing metrics reject the pod until they come (the original failed and retried
    in a loop). It sends no requests to the API server during a cycle; the original opened two connections per node.
    """

    watches = (DistributedJob, NetworkMetrics)
    reasons = (
        "Insufficient bandwidth for pod <name>",
        "Latency too high for pod <name>",
        *_NOT_PLACED.reasons,
        *_NO_METRICS.reasons,
        "failed to get DistributedJob: <why>",
    )

    def is_relevant(self, pod: PodInfo) -> bool:
        return workload_of(pod) is not None

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        link = self._link(pod)
        if not isinstance(link, _Link):
            return link
        if link.bandwidth(node.name) < link.dependency.bandwidth.limits:
            return Unschedulable(f"Insufficient bandwidth for pod {pod.name}")
        if link.latency(node.name) > link.dependency.latency.limits:
            return Unschedulable(f"Latency too high for pod {pod.name}")
        return None

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        link = self._link(pod)
        if not isinstance(link, _Link):
            return MAX_NODE_SCORE if link is None else 0
        bandwidth, wanted = link.bandwidth(node.name), link.dependency.bandwidth
        if bandwidth < wanted.limits or link.latency(node.name) > link.dependency.latency.limits:
            return 0
        if bandwidth >= wanted.requests:
            return MAX_NODE_SCORE
        share = (bandwidth - wanted.limits) / (wanted.requests - wanted.limits)
        return int(_JUST_ENOUGH + share * (MAX_NODE_SCORE - _JUST_ENOUGH))

    def _link(self, pod: PodInfo) -> _Link | Status | None:
        """The link to check; None when the pod may go anywhere, a status when that is unknown."""
        resource = workload_of(pod)
        if resource is None:
            return None
        job = job_of(self.handle.resources(DistributedJob), pod.namespace)
        if isinstance(job, str):
            return Unschedulable(f"failed to get DistributedJob: {job}")
        order, dependencies = job.order_of(resource), job.dependencies_of(resource)
        if order is None or order == 1 or not dependencies:
            return None
        previous = next((status.node_name for status in job.statuses if status.order == order - 1), "")
        if not previous:
            return _NOT_PLACED
        tables = cluster_metrics(self.handle.resources(NetworkMetrics))
        return _NO_METRICS if tables is None else _Link(previous, dependencies[0], tables)

    def events_to_register(self) -> list[EventHint]:
        return [EventHint(kind.changes()) for kind in self.watches]
