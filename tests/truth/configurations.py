"""The configurations of generated cases: the plugins that take part beside the default ones, and what they watch."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bayplan.app.settings import Settings, load_settings
from bayplan.deploy.crds import crd_documents
from bayplan.plugins.community.capacity_scheduling.elastic_quota import ElasticQuota
from bayplan.plugins.community.coscheduling.pod_group import PodGroup
from bayplan.plugins.community.node_crd_resource_fit import ClusterScopedResource
from bayplan.plugins.community.node_resource_topology_match.node_resource_topology import NodeResourceTopology
from bayplan.plugins.distributed_jobs import DistributedJob, NetworkMetrics
from tests.companions.quotas import CAPACITY
from tests.companions.world import configuration
from tests.truth.documents import Case, JsonObject

__all__ = ["PATIENT", "POLICIES", "definitions_for", "loaded", "settings_with"]

PATIENT = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{pluginConfig: [{name: DynamicResources, args: {filterTimeout: 0s}}]}]
"""
"""The default configuration, but for a limit that decisions on a busy machine may reach."""

POLICIES: dict[str, list[dict[str, str]]] = {
    "labels": [{"expression": 'node.labels["tier"] == "gold"', "reason": "node(s) were not of the gold tier"}],
    "crowds": [{"expression": "node.pods < 2", "reason": "node(s) ran enough pods"}],
    "sizes": [
        {
            "expression": 'pod.requests["cpu"].isLessThan(quantity("500m")) || "large" in node.labels',
            "reason": "node(s) were not for large pods",
        }
    ],
}
"""Filters of ExpressionPolicy, by what they are about."""
_SORTING = ("Coscheduling", "TopologyScheduling")
"""Plugins that order the queue, so that the default one must not."""


@lru_cache
def settings_with(plugin: str) -> Settings:
    """`plugin` may have an argument after a colon; without any, the default plugins."""
    name, _, argument = plugin.partition(":")
    if not name:
        return loaded(PATIENT)
    if name == "Refusing":
        return loaded(_refusing(argument), [str(Path(__file__).parent / "refusing.py")])
    if name == "CapacityScheduling":
        return loaded(CAPACITY)
    args: dict[str, Any] = {name: {"filters": POLICIES[argument]}} if name == "ExpressionPolicy" else {}
    return loaded(configuration(name, disabled=["PrioritySort"] if name in _SORTING else [], args=args))


def _refusing(argument: str) -> str:
    point, _, fails = argument.partition(" ")
    text = configuration("Refusing", args={"Refusing": {"point": point, "fails": bool(fails)}})
    # A pod whose attempt failed is tried again after its back-off: here not before it was asked about.
    return re.sub(r"(podInitial|podMax)BackoffSeconds: \d+", r"\1BackoffSeconds: 600", text) if fails else text


def loaded(text: str, own: Sequence[str] = ()) -> Settings:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "config.yaml"
        path.write_text(text)
        return load_settings(path, own)


def definitions_for(case: Case) -> Sequence[JsonObject]:
    """Of the custom resources that the case has objects of, and of those that its plugins watch."""
    kinds = {item["kind"] for item in case.objects} | _WATCHED.get(case.plugin.partition(":")[0], frozenset())
    return [crd for crd in _all_definitions() if crd["spec"]["names"]["kind"] in kinds]


_WATCHED = {
    "NodeCRDResourceFit": frozenset({"ClusterScopedResources"}),
    "NetworkScheduling": frozenset({"DistributedJob", "NetworkMetrics"}),
    "TopologyScheduling": frozenset({"DistributedJob", "NetworkMetrics"}),
}


@lru_cache
def _all_definitions() -> Sequence[JsonObject]:
    return crd_documents(
        [PodGroup, ElasticQuota, NodeResourceTopology, ClusterScopedResource, DistributedJob, NetworkMetrics]
    )
