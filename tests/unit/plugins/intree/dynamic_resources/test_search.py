"""`search`: the first way to satisfy all requests, in the order in which they are listed."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.plugins.intree.dynamic_resources.device_cases import (
    alternative,
    claim,
    device,
    device_class,
    devices_of,
    evaluate,
    every,
    first_of,
    refusal,
    request,
    slice_of,
)

CANNOT = "cannot allocate all claims"


def plain(*names: str) -> list[dict[str, object]]:
    return [device(name) for name in names]


def test_devices_are_taken_in_the_order_of_the_slice() -> None:
    outcome = evaluate(slice_of(*plain("b", "a", "c")), claim("c", request(count=2)))

    assert devices_of(outcome) == ["r: pool/b", "r: pool/a"]


def test_pools_are_searched_in_the_order_of_their_names() -> None:
    slices = [slice_of(device("d"), pool=f"pool-{number}") for number in (3, 2, 1)]

    assert devices_of(evaluate(*slices, claim("c", request(count=2)))) == ["r: pool-1/d", "r: pool-2/d"]


def test_slices_of_a_pool_are_searched_in_the_order_of_their_names() -> None:
    slices = [slice_of(device(f"d{n}"), name=f"slice-{n}", count=3) for n in (3, 2, 1)]

    assert devices_of(evaluate(*slices, claim("c", request(count=2)))) == ["r: pool/d1", "r: pool/d2"]


def test_a_pool_with_devices_that_need_conditions_comes_after_all_others() -> None:
    waiting = slice_of(device("d", bindingConditions=["ready"]), pool="a")
    outcome = evaluate(waiting, slice_of(device("d"), pool="b"), claim("c", request(count=2)))

    assert devices_of(outcome) == ["r: b/d", "r: a/d"]


def test_an_earlier_request_gives_a_device_up_for_a_later_one() -> None:
    large = 'device.attributes["gpu.example.com"].size == "large"'
    devices = [device("large", attributes={"size": "large"}), device("small", attributes={"size": "small"})]
    outcome = evaluate(slice_of(*devices), claim("c", request("any"), request("large", large)))

    assert devices_of(outcome) == ["any: pool/small", "large: pool/large"]


def test_a_device_is_given_once_to_several_claims() -> None:
    outcome = evaluate(slice_of(*plain("a", "b")), claim("c", request()), claim("d", request()))

    assert (devices_of(outcome, "c"), devices_of(outcome, "d")) == (["r: pool/a"], ["r: pool/b"])


def test_more_devices_than_there_are_cannot_be_had() -> None:
    outcome = evaluate(slice_of(*plain("a")), claim("c", request(count=2)))

    assert refusal(outcome) == CANNOT


def test_a_claim_for_more_devices_than_an_allocation_holds_is_an_error() -> None:
    many = slice_of(*plain(*(f"d{n}" for n in range(40))))
    outcome = evaluate(many, claim("c", request("a", count=16), request("b", count=17)))

    assert "claim default/c: number of requested devices 33 exceeds the claim limit of 32" in outcome["message"]


def test_an_alternative_that_would_be_too_many_is_passed_over() -> None:
    many = slice_of(*plain(*(f"d{n}" for n in range(40))))
    listed = first_of("x", alternative("most", count=30), alternative("few", count=1))
    outcome = evaluate(many, claim("c", request("a", count=8), listed))

    assert devices_of(outcome)[-1] == "x/few: pool/d8"
    assert len(devices_of(outcome)) == 9


@pytest.mark.parametrize(("have", "expected"), [(3, "x/three"), (2, "x/two"), (1, "x/one")])
def test_the_first_alternative_that_fits_is_taken(have: int, expected: str) -> None:
    listed = first_of("x", alternative("three", count=3), alternative("two", count=2), alternative("one", count=1))
    outcome = evaluate(slice_of(*plain(*(f"d{n}" for n in range(have)))), claim("c", listed))

    assert {line.split(":")[0] for line in devices_of(outcome)} == {expected}


def test_all_devices_of_a_class_are_taken_or_none() -> None:
    nics = device_class("nic", 'device.driver == "nic.example.com"')
    both = [slice_of(*plain("g0", "g1")), slice_of(device("n0"), driver="nic.example.com", pool="nics"), nics]
    outcome = evaluate(*both, device_class(), claim("c", every(of="nic")))

    assert devices_of(outcome) == ["r: nics/n0"]


def test_all_devices_need_at_least_one() -> None:
    outcome = evaluate(slice_of(*plain("a")), claim("c", every("r", "false")))

    assert refusal(outcome) == CANNOT


def test_all_devices_of_an_incomplete_pool_are_an_error() -> None:
    outcome = evaluate(slice_of(*plain("a"), count=2), claim("c", every()))

    expected = "claim default/c, request r: asks for all devices, but resource pool gpu.example.com/pool is currently"
    assert f"{expected} being updated" in outcome["message"]


def test_a_constraint_that_all_devices_break_is_an_error() -> None:
    devices = [device("a", attributes={"numa": 0}), device("b", attributes={"numa": 1})]
    same = [{"matchAttribute": "gpu.example.com/numa"}]
    outcome = evaluate(slice_of(*devices), claim("c", every(), constraints=same))

    assert (
        "cannot add device gpu.example.com/pool/b because a claim constraint would not be satisfied"
        in (outcome["message"])
    )


def test_forty_claims_of_thirty_two_devices_do_not_exhaust_the_stack() -> None:
    slices = [slice_of(*plain(*(f"d{n}" for n in range(32))), pool=f"p{pool:02}") for pool in range(40)]
    claims = [claim(f"c{number}", request(count=32)) for number in range(40)]
    outcome = evaluate(*slices, *claims)

    assert devices_of(outcome, "c39")[-1] == "r: p39/d31"


def test_a_search_ends_soon_where_no_device_has_the_attribute_of_a_constraint() -> None:
    slices = slice_of(*plain(*(f"d{n}" for n in range(32))))
    bound = claim("d", request("b"), constraints=[{"matchAttribute": "gpu.example.com/absent"}])

    assert refusal(evaluate(slices, claim("c", request("a", count=15)), bound)) == CANNOT


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        (request("b", 'device.attributes["gpu.example.com"].size == "large"', count=3), CANNOT),
        (request("b", count=2, capacity={"requests": {"memory": "2Gi"}}), CANNOT),
        (first_of("b", alternative("x", "false"), alternative("y", "false", count=2)), CANNOT),
    ],
)
def test_a_search_ends_soon_where_a_later_request_cannot_be_satisfied(last: dict[str, Any], expected: str) -> None:
    """There are 10^9 ways to satisfy the first request, and none of them helps the last."""
    sizes = ["large", "large", *(["small"] * 30)]
    devices = [device(f"d{n}", attributes={"size": size}, capacity={"memory": "1Gi"}) for n, size in enumerate(sizes)]
    outcome = evaluate(slice_of(*devices), claim("c", request("a", count=15), last))

    assert refusal(outcome) == expected


def test_a_failing_expression_is_an_error_also_in_a_long_search() -> None:
    devices = [device(f"d{n}", attributes={"size": "small"} if n else {}) for n in range(12)]
    fails = request("z", 'device.attributes["gpu.example.com"].size == "small"', count=1)
    outcome = evaluate(slice_of(*devices), claim("c", request("a", count=6), request("b", "false"), fails))

    assert refusal(outcome) == CANNOT
