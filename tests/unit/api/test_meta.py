"""What every object has, and what pods add to it."""

from __future__ import annotations

import msgspec

from bayplan.api.meta import Metadata, OwnerReference
from bayplan.api.node import Node
from bayplan.api.pod import Pod, PodCondition


def test_absent_maps_read_as_empty_ones() -> None:
    made = Pod()

    assert made.labels == {}
    assert made.annotations == {}
    assert made.controller is None
    assert not made.is_terminating


def test_a_key_has_the_namespace_when_there_is_one() -> None:
    assert Pod(metadata=Metadata(name="web", namespace="shop")).key == "shop/web"
    assert Node(metadata=Metadata(name="n1")).key == "n1"


def test_the_controller_is_the_owner_that_says_so() -> None:
    owners = [OwnerReference(kind="Job", name="a"), OwnerReference(kind="ReplicaSet", name="b", controller=True)]

    assert Pod(metadata=Metadata(owner_references=owners)).controller == owners[1]


def test_a_pod_without_a_priority_has_none() -> None:
    made = Pod()

    assert made.priority == 0
    made.spec.priority = -5
    assert made.priority == -5


def test_finished_pods_are_those_that_ended_either_way() -> None:
    phases = {"Pending": False, "Running": False, "Succeeded": True, "Failed": True, "": False}
    for phase, expected in phases.items():
        made = Pod()
        made.status.phase = phase
        assert made.is_finished is expected


def test_a_condition_is_found_by_its_type() -> None:
    made = Pod()
    made.status.conditions = [PodCondition(type="Ready"), PodCondition(type="PodScheduled", reason="Unschedulable")]

    found = made.condition("PodScheduled")
    assert found is not None
    assert found.reason == "Unschedulable"
    assert made.condition("Other") is None


def test_names_on_the_wire_are_camel_case_and_unread_fields_are_dropped() -> None:
    text = (
        b'{"metadata":{"name":"web","managedFields":[{}]},"spec":{"nodeName":"n1","containers":'
        b'[{"ports":[{"hostPort":80,"hostIP":"10.0.0.1"}],"env":[]}]},"status":{"nominatedNodeName":"n2"}}'
    )
    made = msgspec.json.decode(text, type=Pod)

    assert made.spec.node_name == "n1"
    assert made.status.nominated_node_name == "n2"
    assert made.spec.containers is not None
    assert made.spec.containers[0].ports is not None
    assert made.spec.containers[0].ports[0].host_ip == "10.0.0.1"
    assert msgspec.json.decode(msgspec.json.encode(made), type=Pod) == made
