"""Whole attempts, one a row, by the facts of the cases that kube-scheduler's plugin is tested with.

Left out are those about pod groups and about cpu and memory by devices, which are alpha, and about features turned off.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.unit.plugins.intree.dynamic_resources.device_cases import (
    DRIVER,
    allocated,
    alternative,
    claim,
    device,
    device_class,
    first_of,
    held,
    node,
    pod,
    request,
    result,
    slice_of,
)
from tests.unit.plugins.intree.dynamic_resources.whole_attempt import outcome

Json = dict[str, Any]
GPU, IMPLICIT = "example.com/gpu", "deviceclass.resource.kubernetes.io/gpu"
ONE, TWO = slice_of(device("a")), slice_of(device("a"), device("b"))
FREE = claim("c", request())
PROTECTED = {"finalizers": ["resource.kubernetes.io/delete-protection"]}
GPU_CLASS = device_class("gpu", extendedResourceName=GPU)
TAINTED = slice_of(device("a", taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}]))
ADMIN = claim("c", request(adminAccess=True))
MISSING = f'device.attributes["{DRIVER}"].absent > 1'
WAITS = {"bindingConditions": ["ready"], "bindingFailureConditions": ["broken"]}
FAILED_FILTER = 'refused: running "DynamicResources" filter plugin: '
PREEMPTION = "preemption: 0/{n} nodes are available: {n} Preemption is not helpful for scheduling."


def no_node(reason: str, *, of: int = 1, after: str = "still not schedulable") -> str:
    return f"refused: 0/{of} nodes are available: {of} {reason}. {after}, {PREEMPTION.format(n=of)}"


def before_filters(reason: str, *, of: int = 1, after: str = "no new claims to deallocate") -> str:
    return f"refused: 0/{of} nodes are available: {reason}. {after}, {PREEMPTION.format(n=of)}"


def templated(generated: str | None, **metadata: Any) -> Json:
    made = pod(resourceClaims=[{"name": "pc0", "resourceClaimTemplateName": "t"}])
    made["status"] = {"resourceClaimStatuses": [{"name": "pc0", "resourceClaimName": generated}]} if generated else {}
    return made


def owned(uid: str = "uid-target") -> Json:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "target", "uid": uid, "controller": True}
    return claim("c", request(), metadata={"ownerReferences": [owner]})


def reserved(*users: str, **more: Any) -> Json:
    return claim("c", request(), status=allocated(result("a"), users=users), **more)


def conditions(**values: str) -> Json:
    said = [{"type": name, "status": value, "reason": "R", "message": "m"} for name, value in values.items()]
    status = allocated(result("a", **WAITS), users=["target"])
    place = {"driver": DRIVER, "pool": "pool", "device": "a", "conditions": said}
    return claim("c", request(), status=status | {"devices": [place]})


def offering(amount: str) -> Json:
    made = node()
    made["status"]["allocatable"][GPU] = amount
    return made


def deletion(stored: Json) -> None:
    stored["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"


def deallocation(stored: Json) -> None:
    stored.pop("status", None)


def finalizer_gone(stored: Json) -> None:
    stored["metadata"].pop("finalizers", None)


def finalizer_there(stored: Json) -> None:
    stored["metadata"] |= PROTECTED


ROWS: list[Any] = [
    pytest.param([], {"target": pod()}, "bound on n: nothing", id="empty"),
    pytest.param([reserved("target"), ONE], {}, "bound on n: c [r=a; for target]", id="claim reference"),
    pytest.param(
        [owned(), ONE], {"target": templated("c")}, "bound on n: c [r=a; for target; protected]", id="claim template"
    ),
    pytest.param([], {"target": pod("c")}, 'held: could not find ResourceClaim "default/c"', id="missing claim"),
    pytest.param(
        [claim("c", request(), metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})],
        {},
        'held: resourceclaim "c" is being deleted',
        id="deleted claim",
    ),
    pytest.param(
        [owned("another")],
        {"target": templated("c")},
        "held: ResourceClaim default/c was not created for Pod default/target (Pod is not owner)",
        id="wrong claim",
    ),
    pytest.param(
        [], {"target": templated(None)}, 'held: pod "default/target": ResourceClaim not created yet', id="not made yet"
    ),
    pytest.param([FREE], {}, no_node("cannot allocate all claims"), id="no resources"),
    pytest.param([FREE, ONE], {}, "bound on n: c [r=a; for target; protected]", id="with resources"),
    pytest.param(
        [claim("c", request(), metadata=PROTECTED), ONE],
        {"refuse": "update"},
        "bound on n: c [r=a; for target; protected]",
        id="with resources, has finalizer",
    ),
    pytest.param(
        [claim("c", request(), metadata=PROTECTED), ONE],
        {"before_write": finalizer_gone},
        "bound on n: c [r=a; for target; protected]",
        id="with resources, finalizer gets removed",
    ),
    pytest.param(
        [FREE, ONE],
        {"before_write": finalizer_there},
        "bound on n: c [r=a; for target; protected]",
        id="with resources, finalizer gets added",
    ),
    pytest.param([FREE, ONE, held("a")], {"target": pod("c")}, no_node("cannot allocate all claims"), id="exhausted"),
    pytest.param(
        [FREE, TWO, held("a")],
        {"target": pod("c")},
        "bound on n: c [r=b; for target; protected], held-a [r=a; for other]",
        id="other resources taken",
    ),
    pytest.param([FREE, TAINTED], {}, no_node("cannot allocate all claims"), id="tainted device"),
    pytest.param(
        [claim("c", request(tolerations=[{"key": "k", "operator": "Exists"}])), TAINTED],
        {},
        "bound on n: c [r=a; for target; protected]",
        id="tainted device tolerated",
    ),
    pytest.param(
        [ADMIN, ONE, held("a")],
        {"target": pod("c")},
        "bound on n: c [r=a; for target; protected], held-a [r=a; for other]",
        id="admin access",
    ),
    pytest.param(
        [FREE, ONE, claim("admin", request(), status=allocated(result("a", adminAccess=True), users=["other"]))],
        {"target": pod("c")},
        "bound on n: admin [r=a; for other], c [r=a; for target; protected]",
        id="allocated with admin access is ignored",
    ),
    pytest.param(
        [claim("c", request("r", MISSING)), ONE],
        {},
        FAILED_FILTER + "claim default/c: selector #0: CEL runtime error: no such key: absent",
        id="claim CEL runtime error",
    ),
    pytest.param(
        [device_class("gpu", MISSING), FREE, ONE],
        {},
        FAILED_FILTER + "class gpu: selector #0: CEL runtime error: no such key: absent",
        id="class CEL runtime error",
    ),
    pytest.param(
        [
            claim("c", request("r", MISSING)),
            node("n"),
            node("m"),
            ONE,
            slice_of(device("a", attributes={"absent": 2}), pool="m", node="m"),
        ],
        {},
        FAILED_FILTER + "claim default/c: selector #0: CEL runtime error: no such key: absent",
        id="CEL runtime error for one of two nodes",
    ),
    pytest.param(
        [device_class("other"), FREE, ONE],
        {},
        before_filters("request r: device class gpu does not exist"),
        id="missing class",
    ),
    pytest.param(
        [claim("c", request(), status=allocated(result("a"), node="m")), ONE],
        {},
        no_node("resourceclaim not available on the node", after="deallocation of ResourceClaim completed"),
        id="wrong topology, deallocated",
    ),
    pytest.param(
        [claim("c", request(), status=allocated(result("a"), node="m", users=["target"])), ONE],
        {},
        no_node("resourceclaim not available on the node", after="deallocation of ResourceClaim completed"),
        id="wrong topology, reserved for the pod alone",
    ),
    pytest.param(
        [claim("c", request(), status=allocated(result("a"), node="m", users=["other"])), ONE],
        {},
        no_node("resourceclaim not available on the node"),
        id="wrong topology, in use",
    ),
    pytest.param(
        [claim("c", request(), status=allocated(result("a"))), ONE],
        {},
        "bound on n: c [r=a; for target]",
        id="good topology",
    ),
    pytest.param(
        [FREE, ONE],
        {"refuse": "update status"},
        "failed: add allocation and reservation to claim default/c: update status is refused (403 Forbidden); "
        "left: c [protected]",
        id="bind failure",
    ),
    pytest.param(
        [reserved(), ONE],
        {"refuse": "update status"},
        "failed: add reservation to claim default/c: update status is refused (403 Forbidden); left: c [r=a]",
        id="reservation failure",
    ),
    pytest.param(
        [FREE, ONE],
        {"before_write": deletion},
        "failed: claim default/c got deleted in the meantime; left: c []",
        id="deleted in the meantime",
    ),
    pytest.param(
        [reserved("other"), ONE],
        {"before_write": deallocation, "target": pod("c")},
        "failed: claim default/c got deallocated elsewhere in the meantime; left: c []",
        id="bind failure, concurrent deallocation",
    ),
    pytest.param([reserved("target"), ONE], {}, "bound on n: c [r=a; for target]", id="reserved okay"),
    pytest.param(
        [claim("c", first_of("r", alternative("x", of="none"))), ONE],
        {},
        before_filters("request r/x: device class none does not exist"),
        id="prioritized list, unknown class",
    ),
    pytest.param(
        [claim("c", first_of("r", alternative("two", count=2), alternative("one"))), ONE],
        {},
        "bound on n: c [r/one=a; for target; protected]",
        id="prioritized list",
    ),
    pytest.param(
        [GPU_CLASS, offering("2")], {"target": pod(requests={GPU: "1"})}, "bound on n: nothing", id="device plugin"
    ),
    pytest.param(
        [GPU_CLASS, offering("0"), ONE],
        {"target": pod(requests={GPU: "1"})},
        "bound on n: target-extended-resources-x [container-0-request-0=a; for target; protected]",
        id="extended resource with zero allocatable",
    ),
    pytest.param(
        [GPU_CLASS],
        {"target": pod(requests={GPU: "1"})},
        no_node("cannot allocate all claims"),
        id="extended resource without devices",
    ),
    pytest.param(
        [GPU_CLASS, TWO],
        {"target": pod(requests={GPU: "2"})},
        "bound on n: target-extended-resources-x "
        "[container-0-request-0=a container-0-request-0=b; for target; protected]",
        id="extended resource with devices",
    ),
    pytest.param(
        [device_class(), ONE],
        {"target": pod(requests={IMPLICIT: "1"})},
        "bound on n: target-extended-resources-x [container-0-request-0=a; for target; protected]",
        id="implicit extended resource",
    ),
    pytest.param(
        [GPU_CLASS, ONE],
        {"target": pod(requests={GPU: "1"}), "refuse": "patch pod"},
        "failed: update pod default/target ExtendedResourceClaimStatus: patch pod is refused (403 Forbidden); "
        "left: nothing",
        id="extended resource, failing patch",
    ),
    pytest.param(
        [GPU_CLASS, ONE],
        {"target": pod(requests={GPU: "1"}), "refuse": "create"},
        "failed: create claim for extended resources default/: create is refused (403 Forbidden); left: nothing",
        id="extended resource, failing creation",
    ),
    pytest.param(
        [GPU_CLASS, ONE],
        {"target": pod(requests={GPU: "1"}), "refuse": "update status"},
        "failed: add allocation and reservation to claim default/target-extended-resources-x: "
        "update status is refused (403 Forbidden); left: nothing",
        id="extended resource, failing reservation",
    ),
    pytest.param(
        [GPU_CLASS, ONE, claim("d", request())],
        {"target": pod("d", requests={GPU: "1"})},
        no_node("cannot allocate all claims"),
        id="extended resource and a claim for one device",
    ),
    pytest.param([conditions(ready="True"), ONE], {}, "bound on n: c [r=a; for target]", id="conditions met"),
    pytest.param(
        [conditions(broken="True"), ONE],
        {},
        no_node("resourceclaim not available on the node", after="deallocation of ResourceClaim completed"),
        id="conditions failed",
    ),
    pytest.param(
        [conditions(ready="True", broken="True"), ONE],
        {},
        no_node("resourceclaim not available on the node", after="deallocation of ResourceClaim completed"),
        id="conditions mixed",
    ),
    pytest.param(
        [conditions(ready="True"), claim("d", request()), TWO],
        {"target": pod("c", "d")},
        "bound on n: c [r=a; for target], d [r=b; for target; protected]",
        id="one claim met, one to allocate",
    ),
    pytest.param(
        [
            claim("c", request("x"), request("y")),
            claim("d", request()),
            slice_of(device("a"), device("b"), device("e")),
        ],
        {},
        "bound on n: c [x=a y=b; for target; protected], d [r=e; for target; protected]",
        id="several claims and requests",
    ),
    pytest.param(
        [claim("c", request(count=33)), ONE],
        {},
        FAILED_FILTER + "claim default/c: number of requested devices 33 exceeds the claim limit of 32",
        id="too many devices",
    ),
]


@pytest.mark.parametrize(("objects", "circumstances", "expected"), ROWS)
def test_what_becomes_of_a_pod(objects: list[Json], circumstances: dict[str, Any], expected: str) -> None:
    assert asyncio.run(outcome(*objects, **circumstances)) == expected
