"""`capacity` and `counters`: shares of devices, and devices that take from what their pool shares."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.plugins.intree.dynamic_resources.device_cases import (
    allocated,
    claim,
    counters,
    device,
    devices_of,
    evaluate,
    refusal,
    request,
    result,
    slice_of,
    takes,
)

CANNOT = "cannot allocate all claims"


def shareable(policy: dict[str, Any] | None = None, memory: str = "10Gi") -> dict[str, Any]:
    capacity = {"value": memory} | ({"requestPolicy": policy} if policy else {})
    return slice_of(device("a", allowMultipleAllocations=True, capacity={"memory": capacity}))


def asking(amount: str | None, name: str = "c") -> dict[str, Any]:
    return claim(name, request(**({"capacity": {"requests": {"memory": amount}}} if amount else {})))


def consumed(outcome: dict[str, Any], name: str = "c") -> str:
    results = outcome["allocations"][f"default/{name}"]["allocation"]["devices"]["results"]
    return str(results[0]["consumedCapacity"]["memory"])


@pytest.mark.parametrize(
    ("policy", "asked", "expected"),
    [
        (None, "3Gi", "3Gi"),
        (None, None, "10Gi"),
        ({"default": "2Gi", "validRange": {"min": "1Gi"}}, None, "2Gi"),
        ({"default": "2Gi", "validRange": {"min": "1Gi"}}, "100Mi", "1Gi"),
        ({"default": "2Gi", "validRange": {"min": "1Gi", "step": "512Mi"}}, "1100Mi", "1536Mi"),
        ({"default": "1Gi", "validValues": ["1Gi", "4Gi"]}, "2Gi", "4Gi"),
    ],
)
def test_a_share_takes_what_the_policy_makes_of_the_request(
    policy: dict[str, Any] | None, asked: str | None, expected: str
) -> None:
    assert consumed(evaluate(shareable(policy), asking(asked))) == expected


@pytest.mark.parametrize(
    ("policy", "asked"),
    [
        (None, "11Gi"),
        ({"default": "2Gi", "validRange": {"min": "1Gi", "max": "4Gi"}}, "5Gi"),
        ({"default": "1Gi", "validValues": ["1Gi", "4Gi"]}, "5Gi"),
    ],
)
def test_a_request_beyond_the_policy_or_the_capacity_is_not_satisfied(
    policy: dict[str, Any] | None, asked: str
) -> None:
    assert refusal(evaluate(shareable(policy), asking(asked))) == CANNOT


def test_a_capacity_that_the_device_does_not_have_is_not_satisfied() -> None:
    wanted = claim("c", request(capacity={"requests": {"bandwidth": "1"}}))

    assert refusal(evaluate(shareable(), wanted)) == CANNOT


def test_shares_of_one_device_go_to_several_claims() -> None:
    outcome = evaluate(shareable(), asking("6Gi", "c"), asking("4Gi", "d"))

    assert (devices_of(outcome, "c"), devices_of(outcome, "d")) == (["r: pool/a"], ["r: pool/a"])
    assert refusal(evaluate(shareable(), asking("6Gi", "c"), asking("5Gi", "d"))) == CANNOT


def test_shares_of_other_pods_count() -> None:
    share = result("a", shareID="s1", consumedCapacity={"memory": "8Gi"})
    held = claim("held", request(), status=allocated(share, users=["other"]))

    assert consumed(evaluate(shareable(), held, asking("2Gi"))) == "2Gi"
    assert refusal(evaluate(shareable(), held, asking("3Gi"))) == CANNOT


def partitions(*devices: dict[str, Any], memory: str = "8Gi") -> list[dict[str, Any]]:
    return [
        slice_of(*devices, name="s1", count=2),
        slice_of(name="s2", count=2, sharedCounters=[counters("gpu", memory=memory)]),
    ]


def half(name: str) -> dict[str, Any]:
    return device(name, consumesCounters=[takes("gpu", memory="4Gi")])


def test_partitions_take_from_the_counters_of_their_pool() -> None:
    both = partitions(half("a"), half("b"), half("c"))

    assert devices_of(evaluate(*both, claim("c", request(count=2)))) == ["r: pool/a", "r: pool/b"]
    assert refusal(evaluate(*both, claim("c", request(count=3)))) == CANNOT


def test_partitions_of_other_pods_count() -> None:
    held = claim("held", request(), status=allocated(result("a"), users=["other"]))
    outcome = evaluate(*partitions(half("a"), half("b"), half("c")), held, claim("c", request()))

    assert devices_of(outcome) == ["r: pool/b"]


def test_a_partition_that_does_not_fit_any_more_is_passed_over() -> None:
    whole = device("whole", consumesCounters=[takes("gpu", memory="8Gi")])
    held = claim("held", request(), status=allocated(result("a"), users=["other"]))
    outcome = evaluate(*partitions(half("a"), whole, half("b")), held, claim("c", request()))

    assert devices_of(outcome) == ["r: pool/b"]
