"""`constraints`: devices that agree, or differ, in an attribute."""

from __future__ import annotations

from typing import Any

from tests.unit.plugins.intree.dynamic_resources.device_cases import (
    claim,
    device,
    devices_of,
    evaluate,
    refusal,
    request,
    slice_of,
)

NUMA = "gpu.example.com/numa"


def on_numa(**devices: Any) -> dict[str, Any]:
    return slice_of(*(device(name, attributes={"numa": value}) for name, value in devices.items()))


def test_devices_must_agree() -> None:
    same = [{"matchAttribute": NUMA}]
    outcome = evaluate(on_numa(a=0, b=1, c=1), claim("c", request(count=2), constraints=same))

    assert devices_of(outcome) == ["r: pool/b", "r: pool/c"]


def test_a_constraint_may_concern_some_requests_only() -> None:
    same = [{"matchAttribute": NUMA, "requests": ["x", "y"]}]
    asked = claim("c", request("x"), request("free"), request("y"), constraints=same)

    assert devices_of(evaluate(on_numa(a=0, b=1, c=0), asked)) == ["x: pool/a", "free: pool/b", "y: pool/c"]


def test_a_device_without_the_attribute_satisfies_no_constraint() -> None:
    same = [{"matchAttribute": NUMA}]
    outcome = evaluate(slice_of(device("a")), claim("c", request(), constraints=same))

    assert refusal(outcome) == "cannot allocate all claims"


def test_values_of_different_types_differ() -> None:
    same = [{"matchAttribute": NUMA}]
    outcome = evaluate(on_numa(a=1, b="1", c=True), claim("c", request(count=2), constraints=same))

    assert refusal(outcome) == "cannot allocate all claims"


def test_devices_must_differ() -> None:
    distinct = [{"distinctAttribute": NUMA}]
    outcome = evaluate(on_numa(a=0, b=0, c=1), claim("c", request("x"), request("y"), constraints=distinct))

    assert devices_of(outcome) == ["x: pool/a", "y: pool/c"]


def test_of_one_request_only_the_latest_device_is_compared_with() -> None:
    """kube-scheduler remembers one device a request."""
    distinct = [{"distinctAttribute": NUMA}]
    outcome = evaluate(on_numa(a=0, b=1, c=0), claim("c", request(count=3), constraints=distinct))

    assert devices_of(outcome) == ["r: pool/a", "r: pool/b", "r: pool/c"]


def test_an_attribute_of_another_domain_is_found_by_its_whole_name() -> None:
    root = {"resource.kubernetes.io/pcieRoot": "p0"}
    same = [{"matchAttribute": "resource.kubernetes.io/pcieRoot"}]
    outcome = evaluate(slice_of(device("a", attributes=root)), claim("c", request(), constraints=same))

    assert devices_of(outcome) == ["r: pool/a"]


def test_an_unknown_constraint_is_an_error() -> None:
    outcome = evaluate(on_numa(a=0), claim("c", request(), constraints=[{}]))

    assert "claim default/c, constraint #0: empty constraint (unsupported constraint type?)" in outcome["message"]
