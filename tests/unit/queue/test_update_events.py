from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.unit.queue.kit import make_pod

from bayplan.api.meta import Metadata
from bayplan.api.node import Node, NodeCondition, NodeSpec, NodeStatus, Taint
from bayplan.api.pod import (
    ContainerStatus,
    Pod,
    PodCondition,
    PodExtendedResourceClaimStatus,
    PodResourceClaimStatus,
    PodStatus,
    ResourceRequirements,
)
from bayplan.framework.events import ActionType, Resource
from bayplan.queue.update_events import node_update_events, pod_update_events


def pod_actions(old: Pod, new: Pod) -> list[ActionType]:
    return [event.action for event in pod_update_events(old, new)]


def node_actions(old: Node, new: Node) -> list[ActionType]:
    return [event.action for event in node_update_events(old, new)]


def with_status(pod: Pod, **fields: Any) -> Pod:
    return msgspec.structs.replace(pod, status=PodStatus(**fields))


def test_the_resource_says_whether_the_pod_is_assigned() -> None:
    waiting, assigned = make_pod().pod, make_pod(node="n1").pod

    assert pod_update_events(waiting, waiting)[0].resource == Resource.UNSCHEDULABLE_POD
    assert pod_update_events(assigned, assigned)[0].resource == Resource.ASSIGNED_POD


def test_a_pod_update_without_a_name_is_the_general_one() -> None:
    old = make_pod().pod

    assert pod_actions(old, with_status(old, phase="Pending")) == [ActionType.UPDATE]
    assert pod_update_events(old, old)[0].name == "UnschedulablePodUpdate"


def test_changed_labels_are_an_event_and_no_labels_equal_empty_ones() -> None:
    assert pod_actions(make_pod().pod, make_pod(labels={"a": "b"}).pod) == [ActionType.UPDATE_POD_LABEL]
    assert pod_actions(make_pod().pod, make_pod(labels={}).pod) == [ActionType.UPDATE]


@pytest.mark.parametrize(
    ("before", "after", "is_down"),
    [("2", "1", True), ("2", None, True), ("1", "2", False), (None, "1", False), ("1000m", "1", False)],
)
def test_a_smaller_or_missing_request_is_a_scale_down(before: str | None, after: str | None, is_down: bool) -> None:
    actions = pod_actions(make_pod(cpu=before).pod, make_pod(cpu=after).pod)

    assert actions == [ActionType.UPDATE_POD_SCALE_DOWN if is_down else ActionType.UPDATE]


def test_what_the_kubelet_granted_counts_until_the_resize_is_done() -> None:
    """The spec already asks for less; the pod holds the old amount until its status follows."""
    pod = make_pod(cpu="1", node="n1").pod
    granted = ContainerStatus(name="main", resources=ResourceRequirements(requests={"cpu": "2"}))
    done = ContainerStatus(name="main", resources=ResourceRequirements(requests={"cpu": "1"}))

    before, after = with_status(pod, container_statuses=[granted]), with_status(pod, container_statuses=[done])

    assert pod_actions(with_status(make_pod(cpu="2", node="n1").pod, container_statuses=[granted]), before) == [
        ActionType.UPDATE
    ]
    assert pod_actions(before, after) == [ActionType.UPDATE_POD_SCALE_DOWN]


def test_a_resize_that_became_infeasible_is_a_scale_down() -> None:
    pod = make_pod(cpu="3", node="n1").pod
    granted = ContainerStatus(name="main", resources=ResourceRequirements(requests={"cpu": "2"}))
    infeasible = PodCondition(type="PodResizePending", status="True", reason="Infeasible")

    before = with_status(pod, container_statuses=[granted])
    after = with_status(pod, container_statuses=[granted], conditions=[infeasible])

    assert pod_actions(before, after) == [ActionType.UPDATE_POD_SCALE_DOWN]


def test_a_request_that_cannot_be_read_may_have_shrunk() -> None:
    assert pod_actions(make_pod(cpu="1").pod, _with_cpu("lots")) == [ActionType.UPDATE_POD_SCALE_DOWN]


def _with_cpu(text: str) -> Pod:
    pod = make_pod(cpu="1").pod
    requests = ResourceRequirements(requests={"cpu": text})
    containers = [msgspec.structs.replace(container, resources=requests) for container in pod.spec.containers or ()]
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, containers=containers))


def test_only_the_last_gate_to_go_is_an_event() -> None:
    two, one, none = make_pod(gates="ab").pod, make_pod(gates="a").pod, make_pod().pod

    assert pod_actions(two, one) == [ActionType.UPDATE]
    assert pod_actions(one, none) == [ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED]
    assert pod_actions(none, none) == [ActionType.UPDATE]


def test_a_longer_list_of_tolerations_is_an_event() -> None:
    assert pod_actions(make_pod().pod, make_pod(tolerations=1).pod) == [ActionType.UPDATE_POD_TOLERATION]
    assert pod_actions(make_pod(tolerations=1).pod, make_pod(tolerations=1).pod) == [ActionType.UPDATE]


def test_generated_claims_are_an_event() -> None:
    pod = make_pod().pod
    claim = PodResourceClaimStatus(name="gpu", resource_claim_name="pod-gpu-x")

    assert pod_actions(pod, with_status(pod, resource_claim_statuses=[claim])) == [
        ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM
    ]
    assert pod_actions(pod, with_status(pod, resource_claim_statuses=[])) == [ActionType.UPDATE]


def test_a_claim_made_for_extended_resources_is_an_event_too() -> None:
    pod = make_pod().pod
    made = PodExtendedResourceClaimStatus(resource_claim_name="pod-extended-resources-x")
    with_claim = with_status(pod, extended_resource_claim_status=made)

    assert pod_actions(pod, with_claim) == [ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM]
    assert pod_actions(with_claim, pod) == [ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM]
    assert pod_actions(with_claim, with_claim) == [ActionType.UPDATE]


def test_several_changes_of_a_pod_are_several_events_in_a_fixed_order() -> None:
    old = make_pod(cpu="2", gates="a").pod
    claim = PodResourceClaimStatus(name="gpu")
    new = with_status(make_pod(cpu="1", labels={"a": "b"}, tolerations=2).pod, resource_claim_statuses=[claim])

    assert pod_actions(old, new) == [
        ActionType.UPDATE_POD_LABEL,
        ActionType.UPDATE_POD_SCALE_DOWN,
        ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED,
        ActionType.UPDATE_POD_TOLERATION,
        ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM,
    ]


def make_node(
    *,
    unschedulable: bool = False,
    taints: list[Taint] | None = None,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    allocatable: dict[str, str] | None = None,
    conditions: list[NodeCondition] | None = None,
    features: list[str] | None = None,
) -> Node:
    amounts: Any = allocatable
    return Node(
        metadata=Metadata(name="n1", labels=labels, annotations=annotations),
        spec=NodeSpec(unschedulable=unschedulable, taints=taints),
        status=NodeStatus(allocatable=amounts, conditions=conditions, declared_features=features),
    )


READY = NodeCondition(type="Ready", status="True")


@pytest.mark.parametrize(
    ("old", "new", "actions"),
    [
        ({"unschedulable": True}, {}, [ActionType.UPDATE_NODE_TAINT]),
        ({}, {"unschedulable": True}, []),
        ({"allocatable": {"cpu": "1"}}, {"allocatable": {"cpu": "2"}}, [ActionType.UPDATE_NODE_ALLOCATABLE]),
        ({"allocatable": {"cpu": "1"}}, {"allocatable": {"cpu": "1000m"}}, []),
        ({"allocatable": {"cpu": "1"}}, {}, [ActionType.UPDATE_NODE_ALLOCATABLE]),
        ({"allocatable": {"cpu": "1"}}, {"allocatable": {"cpu": "many"}}, [ActionType.UPDATE_NODE_ALLOCATABLE]),
        ({"allocatable": {}}, {}, []),
        ({}, {"labels": {"zone": "a"}}, [ActionType.UPDATE_NODE_LABEL]),
        ({}, {"taints": [Taint(key="a")]}, [ActionType.UPDATE_NODE_TAINT]),
        ({"taints": []}, {}, []),
        ({}, {"conditions": [READY]}, [ActionType.UPDATE_NODE_CONDITION]),
        ({"conditions": [READY, READY]}, {"conditions": [READY]}, []),
        ({}, {"annotations": {"a": "b"}}, [ActionType.UPDATE_NODE_ANNOTATION]),
        ({}, {"features": ["x"]}, [ActionType.UPDATE_NODE_DECLARED_FEATURE]),
        ({"features": []}, {}, []),
        ({}, {}, []),
    ],
)
def test_each_change_of_a_node_is_its_event(old: Any, new: Any, actions: list[ActionType]) -> None:
    assert node_actions(make_node(**old), make_node(**new)) == actions


def test_several_changes_of_a_node_are_several_events_in_a_fixed_order() -> None:
    old = make_node(unschedulable=True, taints=[Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")])
    new = make_node(
        allocatable={"cpu": "1"}, labels={"a": "b"}, conditions=[READY], annotations={"c": "d"}, features=["x"]
    )

    assert node_actions(old, new) == [
        ActionType.UPDATE_NODE_TAINT,
        ActionType.UPDATE_NODE_ALLOCATABLE,
        ActionType.UPDATE_NODE_LABEL,
        ActionType.UPDATE_NODE_TAINT,
        ActionType.UPDATE_NODE_CONDITION,
        ActionType.UPDATE_NODE_ANNOTATION,
        ActionType.UPDATE_NODE_DECLARED_FEATURE,
    ]
    assert {event.resource for event in node_update_events(old, new)} == {Resource.NODE}
