"""Distributed jobs and the network between nodes: what NetworkScheduling and TopologyScheduling share.

Two custom resources: NetworkMetrics, bandwidth and latency between nodes as an agent measured them, and the workloads
whose pods talk to each other.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from bayplan.framework import CustomResource, PodInfo, ResourceLister, ResourcePart

__all__ = [
    "Allocation",
    "Dependency",
    "DistributedJob",
    "DistributedJobSpec",
    "DistributedJobStatus",
    "NetworkMetrics",
    "NetworkMetricsSpec",
    "NetworkTables",
    "PodPlacement",
    "Workload",
    "WorkloadStatus",
    "cluster_metrics",
    "job_of",
    "workload_of",
]

_LABEL = "resource"


class Allocation(ResourcePart):
    """A hard limit and what is desired."""

    limits: int
    requests: int = 0


class Dependency(ResourcePart):
    """The network between a workload and one that it depends on: Mbit/s and milliseconds."""

    resource: str
    bandwidth: Allocation
    latency: Allocation


class Workload(ResourcePart):
    resource: str
    dependencies: list[Dependency] | None = None


class DistributedJobSpec(ResourcePart):
    workloads: list[Workload] | None = None


class PodPlacement(ResourcePart):
    pod_name: str = ""
    node_name: str = ""


class WorkloadStatus(ResourcePart):
    resource: str
    order: int
    phase: str = ""
    scheduling_info: list[PodPlacement] | None = None

    @property
    def node_name(self) -> str:
        """The node of the workload's first pod."""
        return self.scheduling_info[0].node_name if self.scheduling_info else ""


class DistributedJobStatus(ResourcePart):
    workload_statuses: list[WorkloadStatus] | None = None


class DistributedJob(CustomResource, group="batch.ddl.com", version="v1", plural="distributedjobs", owned=True):
    """A job of several workloads, each of which communicates with the one before it."""

    spec: DistributedJobSpec = msgspec.field(default_factory=DistributedJobSpec)
    status: DistributedJobStatus = msgspec.field(default_factory=DistributedJobStatus)

    @property
    def statuses(self) -> list[WorkloadStatus]:
        return self.status.workload_statuses or []

    def order_of(self, resource: str) -> int | None:
        """The place of a workload in the chain, from 1."""
        return next((status.order for status in self.statuses if status.resource == resource), None)

    def dependencies_of(self, resource: str) -> list[Dependency]:
        found = [w.dependencies or [] for w in self.spec.workloads or () if w.resource == resource]
        return found[0] if found else []


def workload_of(pod: PodInfo) -> str | None:
    """The workload that a pod's label names."""
    return pod.labels.get(_LABEL)


def job_of(lister: ResourceLister, namespace: str) -> DistributedJob | str:
    """The one job of a namespace, or why there is none."""
    jobs: list[DistributedJob] = lister.list(namespace)
    if len(jobs) == 1:
        return jobs[0]
    return f"{'multiple' if jobs else 'no'} DistributedJob resources found in namespace {namespace}"


Table = dict[str, dict[str, float]]


class NetworkTables(ResourcePart):
    """The measurements, by source and target node."""

    bandwidth: Annotated[Table | None, Meta(description="Mbit/s from one node to another.")] = None
    latency: Annotated[Table | None, Meta(description="Milliseconds from one node to another.")] = None

    def bandwidth_between(self, source: str, target: str) -> float:
        """Mbit/s; 0 where nothing was measured."""
        return (self.bandwidth or {}).get(source, {}).get(target, 0.0)

    def latency_between(self, source: str, target: str) -> float:
        """Milliseconds; 0 where nothing was measured."""
        return (self.latency or {}).get(source, {}).get(target, 0.0)


class NetworkMetricsSpec(ResourcePart):
    """The tables, and other fields that the collector may write."""

    metrics: Annotated[NetworkTables, Meta(extra_json_schema={"x-kubernetes-preserve-unknown-fields": True})] = (
        msgspec.field(default_factory=NetworkTables)
    )


class NetworkMetrics(
    CustomResource,
    group="network.example.com",
    version="v1",
    plural="networkmetrics",
    singular="networkmetric",
    short_names=("nm",),
    owned=True,
):
    """Measurements of the cluster's network. Plugins read `kube-system/cluster-metrics`."""

    spec: NetworkMetricsSpec = msgspec.field(default_factory=NetworkMetricsSpec)


def cluster_metrics(lister: ResourceLister) -> NetworkTables | None:
    """The tables of the one object that plugins read."""
    found: NetworkMetrics | None = lister.get("cluster-metrics", "kube-system")
    return None if found is None else found.spec.metrics
