"""`requests`: selectors, taints, admin access, and what is wrong with a request on any node."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.plugins.intree.dynamic_resources.device_cases import (
    allocated,
    claim,
    device,
    device_class,
    devices_of,
    evaluate,
    every,
    refusal,
    request,
    result,
    slice_of,
)

CANNOT = "cannot allocate all claims"
A100 = 'device.attributes["gpu.example.com"].model == "a100"'
TAINT = {"key": "broken", "value": "yes", "effect": "NoSchedule"}


def test_selectors_of_class_and_request_must_all_be_true() -> None:
    devices = [
        device("a", attributes={"model": "l4", "index": 0}),
        device("b", attributes={"model": "a100", "index": 1}),
        device("c", attributes={"model": "a100", "index": 2}),
    ]
    late = 'device.attributes["gpu.example.com"].index > 1'
    outcome = evaluate(slice_of(*devices), device_class("gpu", A100), claim("c", request("r", late)))

    assert devices_of(outcome) == ["r: pool/c"]


def test_an_expression_that_fails_for_a_device_is_an_error_of_the_cycle() -> None:
    outcome = evaluate(slice_of(device("a")), claim("c", request("r", A100)))

    assert "claim default/c: selector #0: CEL runtime error: no such key: model" in outcome["message"]


def test_a_device_that_is_found_before_the_expression_fails_is_taken() -> None:
    outcome = evaluate(slice_of(device("a", attributes={"model": "a100"}), device("b")), claim("c", request("r", A100)))

    assert devices_of(outcome) == ["r: pool/a"]


@pytest.mark.parametrize(
    ("toleration", "is_tolerated"),
    [
        ({"key": "broken", "value": "yes"}, True),
        ({"key": "broken", "operator": "Exists"}, True),
        ({"operator": "Exists"}, True),
        ({"key": "broken", "operator": "Exists", "effect": "NoSchedule"}, True),
        ({"key": "broken", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "broken", "value": "no"}, False),
        ({"key": "other", "operator": "Exists"}, False),
    ],
)
def test_a_tainted_device_needs_a_toleration(toleration: dict[str, Any], is_tolerated: bool) -> None:
    outcome = evaluate(slice_of(device("a", taints=[TAINT])), claim("c", request(tolerations=[toleration])))

    assert devices_of(outcome) == (["r: pool/a"] if is_tolerated else [])


def test_a_taint_without_effect_on_scheduling_needs_none() -> None:
    outcome = evaluate(slice_of(device("a", taints=[{**TAINT, "effect": "None"}])), claim("c", request()))

    assert devices_of(outcome) == ["r: pool/a"]


def test_admin_access_is_given_to_devices_that_others_use() -> None:
    held = claim("held", request(), status=allocated(result("a"), users=["other"]))

    assert refusal(evaluate(slice_of(device("a")), held, claim("c", every()))) == CANNOT
    outcome = evaluate(slice_of(device("a")), held, claim("c", every(adminAccess=True)))
    assert devices_of(outcome) == ["r: pool/a"]


def test_admin_access_of_others_takes_nothing() -> None:
    watched = claim("held", request(), status=allocated(result("a", adminAccess=True), users=["other"]))

    assert devices_of(evaluate(slice_of(device("a")), watched, claim("c", request()))) == ["r: pool/a"]


def test_admin_access_takes_a_device_once_in_a_claim() -> None:
    outcome = evaluate(slice_of(device("a")), claim("c", request(count=2, adminAccess=True)))

    assert refusal(outcome) == CANNOT


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        (request(of="none"), "request r: device class none does not exist"),
        ({"name": "r"}, "resource claim default/c, request r: unknown request type"),
    ],
)
def test_a_request_that_no_node_can_satisfy_is_refused_before_any_is_looked_at(
    asked: dict[str, Any], problem: str
) -> None:
    outcome = evaluate(slice_of(device("a")), claim("c", asked))

    assert outcome["prefilter"]["reasons"] == [problem]


def test_an_unknown_mode_is_an_error() -> None:
    outcome = evaluate(slice_of(device("a")), claim("c", request(allocationMode="Most")))

    assert "claim default/c, request r: unsupported count mode Most" in outcome["message"]


def test_the_configuration_of_classes_and_claims_goes_along() -> None:
    opaque = {"driver": "gpu.example.com", "parameters": {"x": 1}}
    classes = device_class("gpu", config=[{"opaque": opaque}])
    config = [{"opaque": opaque}, {"requests": ["b"], "opaque": opaque}, {"requests": ["z"], "opaque": opaque}]
    asked = claim("c", request("a"), request("b"), config=config)
    outcome = evaluate(slice_of(device("a"), device("b")), classes, asked)

    assert outcome["allocations"]["default/c"]["allocation"]["devices"]["config"] == [
        {"source": "FromClass", "requests": ["a", "b"], "opaque": opaque},
        {"source": "FromClaim", "opaque": opaque},
        {"source": "FromClaim", "requests": ["b"], "opaque": opaque},
    ]
