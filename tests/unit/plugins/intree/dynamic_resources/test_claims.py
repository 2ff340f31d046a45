"""`claims`: the claims of a pod, and what keeps them from being used."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.plugins.intree.dynamic_resources.device_cases import (
    allocated,
    claim,
    device,
    devices_of,
    evaluate,
    node,
    pod,
    refusal,
    request,
    result,
    slice_of,
)

DEVICES = slice_of(device("a"), device("b"))
TEMPLATED = {"resourceClaims": [{"name": "pc", "resourceClaimTemplateName": "t"}]}


def generated(name: str = "made", owner: str = "uid-target") -> dict[str, Any]:
    reference = {"apiVersion": "v1", "kind": "Pod", "name": "target", "uid": owner, "controller": True}
    return claim(name, request(), metadata={"ownerReferences": [reference]})


def with_status(target: dict[str, Any], *names: str | None) -> dict[str, Any]:
    statuses = [{"name": "pc", **({"resourceClaimName": name} if name else {})} for name in names]
    return target | {"status": {"resourceClaimStatuses": statuses}}


@pytest.mark.parametrize(
    ("objects", "target", "reason"),
    [
        ([], pod("gone"), 'could not find ResourceClaim "default/gone"'),
        ([], pod(**TEMPLATED), 'pod "default/target": ResourceClaim not created yet'),
        (
            [],
            pod(resourceClaims=[{"name": "pc"}]),
            'pod "default/target", spec.resourceClaim "pc": none of the supported fields are set',
        ),
        (
            [claim("c", request(), metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})],
            pod("c"),
            'resourceclaim "c" is being deleted',
        ),
        (
            [generated(owner="uid-other")],
            with_status(pod(**TEMPLATED), "made"),
            "ResourceClaim default/made was not created for Pod default/target (Pod is not owner)",
        ),
    ],
)
def test_a_pod_whose_claims_cannot_be_used_waits(
    objects: list[dict[str, Any]], target: dict[str, Any], reason: str
) -> None:
    outcome = evaluate(DEVICES, *objects, target=target)

    assert outcome["prefilter"] == {
        "code": "UnschedulableAndUnresolvable",
        "plugin": "DynamicResources",
        "reasons": [reason],
    }


def test_a_claim_made_from_a_template_is_found_by_the_status_of_the_pod() -> None:
    outcome = evaluate(DEVICES, generated(), target=with_status(pod(**TEMPLATED), "made"))

    assert devices_of(outcome, "made") == ["r: pool/a"]


def test_a_template_that_made_no_claim_asks_for_nothing() -> None:
    outcome = evaluate(DEVICES, target=with_status(pod(**TEMPLATED), None))

    assert outcome["best"] == ["n"]
    assert "allocations" not in outcome


def test_an_allocated_claim_is_used_where_its_devices_are() -> None:
    held = claim("held", request(), status=allocated(result("a"), users=["other"]))
    outcome = evaluate(DEVICES, node("n"), node("m"), held, target=pod("held"))

    assert outcome["best"] == ["n"]
    assert refusal(outcome, "m") == "resourceclaim not available on the node"
    assert outcome["allocations"]["default/held"]["fresh"] is False


def test_that_devices_are_lacking_is_said_before_that_a_claim_is_elsewhere() -> None:
    held = claim("held", request(), status=allocated(result("a"), users=["other"]))
    outcome = evaluate(DEVICES, node("n"), node("m"), held, claim("c", request()), target=pod("held", "c"))

    assert refusal(outcome, "m") == "cannot allocate all claims"


def test_a_claim_that_is_idle_elsewhere_is_deallocated() -> None:
    held = claim("held", request(), status=allocated(result("a", pool="gone"), node="gone"))
    outcome = evaluate(DEVICES, held, target=pod("held"))

    assert "deallocation of ResourceClaim completed" in outcome["fullMessage"]


def test_a_claim_that_others_use_elsewhere_is_not_deallocated() -> None:
    held = claim("held", request(), status=allocated(result("a", pool="gone"), node="gone", users=["other"]))
    outcome = evaluate(DEVICES, held, target=pod("held"))

    assert "still not schedulable" in outcome["fullMessage"]


def waiting(since: str, **device_status: Any) -> dict[str, Any]:
    conditional = result("a", bindingConditions=["ready"], bindingFailureConditions=["failed"])
    status = allocated(conditional, users=["target"])
    status["allocation"]["allocationTimestamp"] = since
    if device_status:
        conditions = [{"type": name, "status": value} for name, value in device_status.items()]
        status["devices"] = [{"driver": "gpu.example.com", "pool": "pool", "device": "a", "conditions": conditions}]
    return claim("held", request(), status=status)


LONG_AGO, LATER = "2020-01-01T00:00:00Z", "2999-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("held", "is_usable"),
    [
        (waiting(LATER), True),
        (waiting(LONG_AGO), False),
        (waiting(LONG_AGO, ready="True"), True),
        (waiting(LONG_AGO, ready="False"), False),
        (waiting(LATER, failed="True"), False),
    ],
)
def test_devices_that_do_not_become_ready_make_their_claim_unusable(held: dict[str, Any], is_usable: bool) -> None:
    outcome = evaluate(DEVICES, held, target=pod("held"))

    assert bool(outcome["best"]) is is_usable
    assert is_usable or refusal(outcome) == "resourceclaim not available on the node"
