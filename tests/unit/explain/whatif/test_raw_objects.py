"""What an API server would have made of a manifest."""

from __future__ import annotations

import pytest

from bayplan.api.decode import InputError
from bayplan.api.meta import Metadata
from bayplan.api.node import Node, NodeStatus
from bayplan.api.pod import Container, Pod, PodSpec, PodStatus, ResourceRequirements
from bayplan.api.workload import PriorityClass
from bayplan.explain.whatif.raw_objects import check_pod, complete_objects


def pod(**spec: object) -> Pod:
    return Pod(metadata=Metadata(name="p", namespace="default"), spec=PodSpec(containers=[Container(name="c")], **spec))  # type: ignore[arg-type]


def test_capacity_is_allocatable_unless_said_otherwise() -> None:
    open_node, reserved = (
        Node(status=NodeStatus(capacity={"cpu": "4"})),
        Node(status=NodeStatus(capacity={"cpu": "4"}, allocatable={"cpu": "3"})),
    )
    complete_objects([open_node, reserved], priority_classes=[], source="f")

    assert open_node.status.allocatable == {"cpu": "4"}
    assert reserved.status.allocatable == {"cpu": "3"}


def test_pods_get_requests_and_priority() -> None:
    waiting = pod(priority_class_name="high")
    assert waiting.spec.containers is not None
    waiting.spec.containers[0].resources = ResourceRequirements(limits={"cpu": "1"})
    high = PriorityClass(metadata=Metadata(name="high"), value=9)
    complete_objects([waiting], priority_classes=[high], source="f")

    assert waiting.spec.priority == 9
    assert waiting.spec.containers[0].resources.requests == {"cpu": "1"}


def test_an_unknown_priority_class_is_refused_with_the_file() -> None:
    with pytest.raises(InputError, match=r"^f: .*PriorityClass `high`"):
        complete_objects([pod(priority_class_name="high")], priority_classes=[], source="f")


def test_a_pod_without_containers_is_refused() -> None:
    with pytest.raises(InputError, match=r"f: pod `default/p`: has no `spec.containers`"):
        check_pod(Pod(metadata=Metadata(name="p", namespace="default")), source="f")


@pytest.mark.parametrize("text", ["noon", "2026-13-01T00:00:00Z", "9" * 400])
def test_times_that_cannot_be_read_are_refused(text: str) -> None:
    started, created = pod(), pod()
    started.status = PodStatus(start_time=text)
    created.metadata.creation_timestamp = text

    with pytest.raises(InputError, match=r"status\.startTime"):
        check_pod(started, where="pods[0]")
    with pytest.raises(InputError, match=r"metadata\.creationTimestamp"):
        check_pod(created)


def test_good_times_pass() -> None:
    started = pod()
    started.status = PodStatus(start_time="2026-01-31T12:00:00Z")

    check_pod(started)
