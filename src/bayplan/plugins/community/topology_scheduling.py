"""TopologyScheduling: choose the nodes of all workloads of a DistributedJob together, as one chain."""

from __future__ import annotations

from bayplan.api.quantity import milli_value
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
from bayplan.plugins.community.chains import Link, best_chain
from bayplan.plugins.community.distributed_job import DistributedJob, job_of, workload_of
from bayplan.plugins.community.network_metrics import NetworkMetrics, cluster_metrics

__all__ = ["TopologyScheduling"]

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
    *Differs from the original*: it looks at all chains at once instead of one by one, which takes milliseconds where
    the original took for ever; chains that break a limit are never chosen; latency is scored by latency (the original
    used the bandwidth there); pods of several namespaces have an order; a chosen node that cannot be found is an error
    (the original waited for it in a loop without end); rejections have reasons; pods without the label are left alone.
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
    """A worker of whose CPU nothing is set aside."""
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
