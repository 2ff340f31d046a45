"""Network objects for tests."""

from __future__ import annotations

from bayplan.api.meta import Metadata
from bayplan.plugins.distributed_jobs import (
    Allocation,
    Dependency,
    DistributedJob,
    DistributedJobSpec,
    DistributedJobStatus,
    NetworkMetrics,
    NetworkMetricsSpec,
    NetworkTables,
    PodPlacement,
    Workload,
    WorkloadStatus,
)

Table = dict[str, dict[str, float]]


def metrics(bandwidth: Table, latency: Table) -> NetworkMetrics:
    return NetworkMetrics(
        metadata=Metadata(name="cluster-metrics", namespace="kube-system", uid="metrics"),
        spec=NetworkMetricsSpec(metrics=NetworkTables(bandwidth=bandwidth, latency=latency)),
    )


def job(workloads: list[tuple[str, dict[str, int] | None, str]], *, name: str = "job") -> DistributedJob:
    """A chain of (workload, what it needs of the link to the one before, the node its pod is on)."""
    specs, statuses = [], []
    for order, (resource, wants, node) in enumerate(workloads, start=1):
        specs.append(Workload(resource=resource, dependencies=[_dependency(wants)] if wants else None))
        placed = [PodPlacement(pod_name=resource, node_name=node)] if node else None
        statuses.append(WorkloadStatus(resource=resource, order=order, scheduling_info=placed))
    return DistributedJob(
        metadata=Metadata(name=name, namespace="default", uid=name),
        spec=DistributedJobSpec(workloads=specs),
        status=DistributedJobStatus(workload_statuses=statuses),
    )


def _dependency(wants: dict[str, int]) -> Dependency:
    return Dependency(
        resource="before",
        bandwidth=Allocation(limits=wants["limits"], requests=wants["requests"]),
        latency=Allocation(limits=wants.get("latency_limits", 1000), requests=wants.get("latency_requests", 0)),
    )
