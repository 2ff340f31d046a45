"""What a reading takes for shared by the pods of a shape is shared: pods that differ in it have different shapes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from bayplan.api.pod import (
    Affinity,
    Container,
    NodeAffinity,
    Pod,
    PodPort,
    PodSpec,
    ResourceRequirements,
    RestartPolicyRule,
    Toleration,
    TopologySpreadConstraint,
)
from bayplan.framework import Depends, Plugin
from bayplan.framework.reading import body, reading_of
from bayplan.testing import Harness, node, node_term, pod, require_nodes

SPEC: dict[str, Any] = {
    "priority": 7,
    "scheduler_name": "default-scheduler-2",
    "preemption_policy": "Never",
    "host_network": True,
    "host_users": False,
    "containers": [Container(name="other")],
    "init_containers": [Container(name="first")],
    "tolerations": [Toleration(key="a", operator="Exists")],
    "topology_spread_constraints": [TopologySpreadConstraint(topology_key="zone")],
    "node_selector": {"zone": "a"},
    "overhead": {"cpu": "1"},
    "resources": ResourceRequirements(requests={"cpu": "1"}),
    "affinity": Affinity(node_affinity=NodeAffinity()),
}
CONTAINER: dict[str, Any] = {
    "name": "another",
    "image": "app:2",
    "resources": ResourceRequirements(limits={"cpu": "1"}),
    "ports": [PodPort(container_port=80)],
    "restart_policy": "Always",
    "restart_policy_rules": [RestartPolicyRule(action="Restart")],
}


def shape_of(harness: Harness, given: Pod) -> int:
    return harness.info(given).shape.number


def with_spec(given: Pod, **changed: Any) -> Pod:
    return msgspec.structs.replace(given, spec=msgspec.structs.replace(given.spec, **changed))


def test_every_part_of_a_spec_that_is_read_is_tried_here() -> None:
    assert set(body._SPEC) == set(SPEC)
    assert set(body._SPEC) <= set(PodSpec.__struct_fields__)
    assert set(CONTAINER) == set(Container.__struct_fields__)
    assert set(body._POD) == {"labels", "namespace", "priority", "scheduler_name", "spec"}


@pytest.mark.parametrize("field", SPEC)
def test_pods_that_differ_in_their_specs_have_different_shapes(field: str) -> None:
    harness = Harness(nodes=["n"])

    assert shape_of(harness, pod("a")) != shape_of(harness, with_spec(pod("b"), **{field: SPEC[field]}))


@pytest.mark.parametrize("field", CONTAINER)
def test_pods_that_differ_in_their_containers_have_different_shapes(field: str) -> None:
    harness = Harness(nodes=["n"])
    (main,) = pod("a").spec.containers or ()
    changed = msgspec.structs.replace(main, **{field: CONTAINER[field]})

    for place in ("containers", "init_containers"):
        plain, other = (with_spec(pod("a"), **{place: [each]}) for each in (main, changed))
        assert shape_of(harness, plain) != shape_of(harness, other)


def test_pods_that_differ_in_labels_namespace_or_pin_have_different_shapes() -> None:
    harness = Harness(nodes=["n"])
    pods = [
        pod("a"),
        pod("a", labels={"app": "web"}),
        pod("a", namespace="other"),
        pod("a", affinity=require_nodes(node_term(name="n"))),
        pod("a", affinity=require_nodes(node_term(name="m"))),
    ]

    assert len({shape_of(harness, each) for each in pods}) == len(pods)


def test_labels_are_those_of_the_shape_whatever_their_order() -> None:
    """They are read as they are, text and all, so that every pod of a shape must show the same."""
    harness = Harness(nodes=["n"])
    one, other = (harness.info(pod("a", labels=labels)) for labels in ({"a": "1", "b": "2"}, {"b": "2", "a": "1"}))

    assert one.shape is other.shape
    assert list(one.labels) == list(other.labels)


class WholeNode(Plugin):
    """Reads everything that a node object holds."""

    def score(self, state: Any, pod: Any, node: Any) -> int:
        return len(str(node.node)) % 101


def test_a_node_is_asked_about_again_whatever_of_its_object_changed() -> None:
    harness = Harness(nodes=[node("n"), node("m")], plugins=[WholeNode])
    assert reading_of(harness.plugin("WholeNode"), "score").depends is Depends.NODE
    versions = [
        node("n", annotations={"a": "12"}),
        node("n", images={"app:1": "1Gi"}),
        node("n", unschedulable=True),
        node("n", allocatable={"example.com/seat": 3}),
        node("n", features=["Fancy"]),
        node("n", taints=["x=y:PreferNoSchedule"]),
    ]
    for number, version in enumerate(versions):
        harness.add(version)
        scores = harness.explain(pod(f"p{number}", tolerations=["node.kubernetes.io/unschedulable"])).scores

        assert scores["n"]["WholeNode"] == len(str(version)) % 101
