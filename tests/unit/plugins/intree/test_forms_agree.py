"""On random clusters and pods, every filter and score says the same for all nodes at once as for one node."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from tests.unit.plugins.small_cluster import (
    STATE,
    SmallCluster,
    check_filter_forms,
    check_score_forms,
    clusters,
    pod_specs,
)

from bayplan.framework import Plugin
from bayplan.plugins.intree.dynamic_resources import DynamicResources
from bayplan.plugins.intree.image_locality import ImageLocality
from bayplan.plugins.intree.node_affinity import NodeAffinity
from bayplan.plugins.intree.node_declared_features import NodeDeclaredFeatures
from bayplan.plugins.intree.node_name import NodeName
from bayplan.plugins.intree.node_ports import NodePorts
from bayplan.plugins.intree.node_unschedulable import NodeUnschedulable
from bayplan.plugins.intree.taint_toleration import TaintToleration

FILTERS = (NodeAffinity, NodeDeclaredFeatures, NodeName, NodePorts, NodeUnschedulable, TaintToleration)
SCORES = (DynamicResources, ImageLocality, NodeAffinity, TaintToleration)
ENFORCED = {
    "addedAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "NotIn", "values": ["b", "3"]}]}]
        },
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 9, "preference": {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}}
        ],
    }
}


@pytest.mark.parametrize("kind", FILTERS)
@settings(max_examples=25, deadline=None)
@given(cluster=clusters(), spec=pod_specs())
def test_a_filter_says_the_same_in_both_forms(kind: type[Plugin], cluster: SmallCluster, spec: dict[str, Any]) -> None:
    check_filter_forms(cluster.plugin(kind), cluster.pod(**spec), cluster.columns)


@pytest.mark.parametrize("kind", SCORES)
@settings(max_examples=25, deadline=None)
@given(cluster=clusters(), spec=pod_specs())
def test_a_score_is_the_same_in_both_forms(kind: type[Plugin], cluster: SmallCluster, spec: dict[str, Any]) -> None:
    check_score_forms(cluster.plugin(kind), cluster.pod(**spec), cluster.columns)


@settings(max_examples=25, deadline=None)
@given(cluster=clusters(), spec=pod_specs())
def test_enforced_affinity_is_the_same_in_both_forms(cluster: SmallCluster, spec: dict[str, Any]) -> None:
    plugin, pod = cluster.plugin(NodeAffinity, **ENFORCED), cluster.pod(**spec)

    check_filter_forms(plugin, pod, cluster.columns)
    check_score_forms(plugin, pod, cluster.columns)


@pytest.mark.parametrize("kind", FILTERS)
@settings(max_examples=25, deadline=None)
@given(cluster=clusters(), spec=pod_specs())
def test_a_filter_without_a_say_rejects_no_node(
    kind: type[Plugin], cluster: SmallCluster, spec: dict[str, Any]
) -> None:
    plugin: Any = cluster.plugin(kind)
    pod = cluster.pod(**spec)
    if not plugin.is_relevant(pod):
        assert not plugin.filter_nodes(STATE, pod, cluster.columns).ids.any()


@pytest.mark.parametrize("kind", [k for k in FILTERS if k is not NodeName])
@settings(max_examples=25, deadline=None)
@given(cluster=clusters(), first=pod_specs(), second=pod_specs())
def test_pods_with_equal_signs_get_equal_answers(
    kind: type[Plugin], cluster: SmallCluster, first: dict[str, Any], second: dict[str, Any]
) -> None:
    plugin: Any = cluster.plugin(kind)
    one, other = cluster.pod(**first), cluster.pod(**second)
    if plugin.sign(one) == plugin.sign(other):
        for node in cluster.columns:
            assert plugin.filter(STATE, one, node) == plugin.filter(STATE, other, node)
