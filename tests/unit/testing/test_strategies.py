"""Strategies and generators: things that schedulers meet, and things they should not stumble over."""

from __future__ import annotations

from random import Random

import msgspec
import pytest
from hypothesis import given, settings

from bayplan.api.node import Node
from bayplan.api.pod import Pod
from bayplan.testing import Harness
from bayplan.testing.generate import Cluster, random_cluster
from bayplan.testing.odd import ODD_PODS
from bayplan.testing.strategies import clusters, nodes, odd_pods, pods


@settings(max_examples=15, deadline=None)
@given(cluster=clusters(most_nodes=4, most_pods=6), pod=pods(), odd=odd_pods())
def test_generated_clusters_and_pods_can_be_decided_on(cluster: Cluster, pod: Pod, odd: Pod) -> None:
    harness = Harness(nodes=cluster.nodes, pods=[*cluster.pods, *cluster.waiting], objects=cluster.objects)

    assert harness.explain(pod).failure is None
    assert harness.explain(odd).failure is None


@settings(max_examples=15, deadline=None)
@given(node=nodes("n"), running=pods("p", node="n"))
def test_generated_objects_survive_the_wire(node: Node, running: Pod) -> None:
    assert msgspec.json.decode(msgspec.json.encode(node), type=Node) == node
    assert msgspec.json.decode(msgspec.json.encode(running), type=Pod) == running
    assert running.spec.node_name == "n"


def test_the_same_seed_makes_the_same_cluster() -> None:
    assert random_cluster(Random(3)) == random_cluster(Random(3))
    assert random_cluster(Random(3)) != random_cluster(Random(4))


@pytest.mark.parametrize("name", sorted(ODD_PODS))
def test_an_odd_pod_gets_an_answer_and_may_even_run(name: str) -> None:
    harness = Harness(nodes=["n1", "n2"])
    assert harness.schedule(ODD_PODS[name]()).failure is None
    running = ODD_PODS[name]()
    running.metadata.uid, running.spec.node_name = "running", "n1"
    harness.add(running)

    assert harness.explain(ODD_PODS["bare"]()).failure is None
