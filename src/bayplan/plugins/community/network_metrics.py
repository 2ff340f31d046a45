"""The NetworkMetrics custom resource: bandwidth and latency between nodes, as an agent measured them."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from bayplan.framework import CustomResource, ResourcePart
from bayplan.framework.handle import ResourceLister

__all__ = ["NetworkMetrics", "NetworkMetricsSpec", "NetworkTables", "cluster_metrics"]

Table = dict[str, dict[str, float]]


class NetworkTables(ResourcePart):
    """What was measured, by source and target node."""

    bandwidth: Annotated[Table | None, Meta(description="Mbit/s from one node to another.")] = None
    latency: Annotated[Table | None, Meta(description="Milliseconds from one node to another.")] = None

    def bandwidth_between(self, source: str, target: str) -> float:
        """Mbit/s; 0 where nothing was measured."""
        return (self.bandwidth or {}).get(source, {}).get(target, 0.0)

    def latency_between(self, source: str, target: str) -> float:
        """Milliseconds; 0 where nothing was measured."""
        return (self.latency or {}).get(source, {}).get(target, 0.0)


class NetworkMetricsSpec(ResourcePart):
    """The tables, beside whatever else the collector writes."""

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
):
    """Measurements of the cluster's network. Plugins read `kube-system/cluster-metrics`."""

    spec: NetworkMetricsSpec = msgspec.field(default_factory=NetworkMetricsSpec)


def cluster_metrics(lister: ResourceLister) -> NetworkTables | None:
    """The tables of the one object that plugins read."""
    found: NetworkMetrics | None = lister.get("cluster-metrics", "kube-system")
    return None if found is None else found.spec.metrics
