"""Further whole attempts by the facts of the cases that kube-scheduler's plugin is tested with, under their names:
claims of others that are being allocated, extended resources, binding conditions, pods that are given up."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.unit.plugins.intree.dynamic_resources.device_cases import (
    DRIVER,
    allocated,
    claim,
    device,
    device_class,
    node,
    pod,
    request,
    result,
    slice_of,
)
from tests.unit.plugins.intree.dynamic_resources.test_outcomes import (
    FREE,
    GPU,
    GPU_CLASS,
    IMPLICIT,
    ONE,
    TWO,
    WAITS,
    before_filters,
    deallocation,
    no_node,
    offering,
    reserved,
)
from tests.unit.plugins.intree.dynamic_resources.whole_attempt import outcome

Json = dict[str, Any]
OTHER_GPU = "example.com/gpu2"
NOT_AVAILABLE = "resourceclaim not available on the node"
DEALLOCATED, DELETED = "deallocation of ResourceClaim completed", "deletion of ResourceClaim completed"
MADE = "bound on n: target-extended-resources-x"


def of_another(device_name: str) -> Json:
    return claim("other", request(), status=allocated(result(device_name), users=["other"]))


def bound(name: str, at: str, since: str = "", **conditions: str) -> Json:
    """A claim with a device that needs conditions, and what its driver reported."""
    said = [{"type": type_, "status": value, "reason": "R", "message": "m"} for type_, value in conditions.items()]
    status = allocated(result(at, **WAITS))
    if since:
        status["allocation"]["allocationTimestamp"] = since
    reported = {"driver": DRIVER, "pool": "pool", "device": at, "conditions": said}
    return claim(name, request(), status=status | {"devices": [reported]})


def extended_claim(on: str) -> Json:
    """The claim that an earlier attempt made for the pod's extended resources."""
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "target", "uid": "uid-target", "controller": True}
    metadata = {
        "ownerReferences": [owner],
        "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"},
        "finalizers": ["resource.kubernetes.io/delete-protection"],
    }
    asked = request("container-0-request-0")
    given = allocated(result("a", request="container-0-request-0"), node=on)
    return claim("target-extended-resources-x", asked, status=given, metadata=metadata)


def two_containers() -> Json:
    made = pod()
    one = {"requests": {IMPLICIT: "1"}, "limits": {IMPLICIT: "1"}}
    made["spec"]["containers"] = [{"name": name, "image": "x", "resources": one} for name in ("c", "d")]
    return made


GROUPED = pod("c", schedulingGroup={"podGroupName": "group"})

ROWS: list[Any] = [
    pytest.param([GPU_CLASS], {"target": pod()}, "bound on n: nothing", id="empty-with-extended-resources-enabled"),
    pytest.param(
        [reserved(), ONE],
        {"target": GROUPED},
        "bound on n: c [r=a; for target]",
        id="podgroup-claim-reference-feature-disabled-reserves-for-pod",
    ),
    pytest.param(
        [FREE, ONE],
        {"target": GROUPED},
        "bound on n: c [r=a; for target; protected]",
        id="podgroup-with-resources-feature-disabled-reserves-for-pod",
    ),
    pytest.param([FREE, ONE], {"is_bound": False}, "given up: c [], 0 devices taken", id="skip-bind"),
    pytest.param(
        [FREE, ONE, claim("other", request())],
        {"target": pod("c"), "in_flight": of_another("a")},
        no_node("cannot allocate all claims"),
        id="exhausted-resources-in-flight-claim",
    ),
    pytest.param(
        [FREE, TWO, claim("other", request())],
        {"target": pod("c"), "in_flight": of_another("b")},
        "bound on n: c [r=a; for target; protected], other []",
        id="other-resources-in-flight-claim",
    ),
    pytest.param(
        [FREE, ONE],
        {"target": pod("c"), "in_flight": claim("c", request(), status=allocated(result("a")))},
        before_filters("resource claim default/c is in the process of being allocated"),
        id="the claim itself is in flight",
    ),
    pytest.param(
        [claim("c", request(of="none")), ONE],
        {},
        before_filters("request r: device class none does not exist"),
        id="claim-with-request-with-unknown-device-class",
    ),
    pytest.param(
        [GPU_CLASS, device_class("gpu2", extendedResourceName=OTHER_GPU), offering("2"), ONE],
        {"target": pod(requests={GPU: "1", OTHER_GPU: "1"})},
        f"{MADE} [container-0-request-1=a; for target; protected]",
        id="extended-resource-one-device-plugin-one-dra",
    ),
    pytest.param(
        [device_class(), offering("0"), ONE],
        {"target": pod(requests={GPU: "1"})},
        "refused: 0/1 nodes are available: 1 Insufficient example.com/gpu. no new claims to deallocate, "
        "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.",
        id="non-DRA-extended-resource-name-with-zero-allocatable",
    ),
    pytest.param(
        [device_class(), TWO],
        {"target": two_containers()},
        f"{MADE} [container-0-request-0=a container-1-request-0=b; for target; protected]",
        id="implicit-extended-resource-name-two-containers-with-resources",
    ),
    pytest.param(
        [GPU_CLASS, ONE, extended_claim("n")],
        {"target": pod(requests={GPU: "1"})},
        no_node("cannot schedule extended resource claim", after=DELETED),
        id="extended-resource-name-with-resources-has-claim",
    ),
    pytest.param(
        [GPU_CLASS, ONE, extended_claim("m")],
        {"target": pod(requests={GPU: "1"})},
        no_node("cannot schedule extended resource claim", after=DELETED),
        id="extended-resource-name-with-resources-delete-claim",
    ),
    pytest.param(
        [GPU_CLASS, ONE],
        {"target": pod(requests={GPU: "1"}), "is_bound": False},
        "given up: nothing, 0 devices taken",
        id="extended-resource-name-skip-bind",
    ),
    pytest.param(
        [reserved(), ONE],
        {"before_write": deallocation},
        "failed: claim default/c got deallocated elsewhere in the meantime; left: c []",
        id="add-allocation-timestamp-failure",
    ),
    pytest.param(
        [bound("c", "a", since="2020-01-01T00:00:00Z"), ONE],
        {},
        no_node(NOT_AVAILABLE, after=DEALLOCATED),
        id="bound-claim-with-timed-out-binding",
    ),
    pytest.param(
        [reserved(), claim("other", request()), ONE],
        {"target": pod("c")},
        "bound on n: c [r=a; for target], other []",
        id="bound-claim-without-binding-conditions",
    ),
    pytest.param(
        [bound("c", "a", ready="True"), bound("d", "b", ready="True"), TWO],
        {},
        "bound on n: c [r=a; for target], d [r=b; for target]",
        id="multi-claims-binding-conditions-all-success",
    ),
    pytest.param(
        [bound("c", "a", ready="True"), bound("d", "b", broken="True"), TWO],
        {},
        no_node(NOT_AVAILABLE, after=DEALLOCATED),
        id="multi-claims-binding-conditions-one-fail",
    ),
    pytest.param(
        [FREE, ONE, node("n"), node("m"), node("o")],
        {},
        "bound on n: c [r=a; for target; protected]",
        id="one of three nodes has a device",
    ),
    pytest.param(
        [FREE, slice_of(device("a"), node=None, allNodes=True)],
        {},
        "bound on n: c [r=a; for target; protected]",
        id="a device of all nodes",
    ),
]


@pytest.mark.parametrize(("objects", "circumstances", "expected"), ROWS)
def test_what_becomes_of_a_pod(objects: list[Json], circumstances: dict[str, Any], expected: str) -> None:
    assert asyncio.run(outcome(*objects, **circumstances)) == expected
