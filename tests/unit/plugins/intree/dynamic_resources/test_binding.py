"""`binding`: devices that become ready, fail, or take too long."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.unit.plugins.intree.dynamic_resources.device_cases import allocated, claim, request, result

from bayplan.framework.devices import ResourceClaim
from bayplan.plugins.intree.dynamic_resources.binding import (
    BindingProblem,
    has_timed_out,
    is_ready,
    waits_for_conditions,
)

WAITS = {"bindingConditions": ["attached", "warm"], "bindingFailureConditions": ["broken"]}
SINCE = 1_700_000_000.0
STAMP = "2023-11-14T22:13:20Z"


def waiting(conditions: dict[str, str] | None, **allocation: Any) -> ResourceClaim:
    """A claim with device `a`, which has conditions to meet, and what its driver reported."""
    status = allocated(result("a", **WAITS), result("b"))
    status["allocation"] |= allocation
    if conditions is not None:
        reported = [
            {"type": name, "status": value, "reason": "R", "message": "m"} for name, value in conditions.items()
        ]
        place = {"driver": "gpu.example.com", "pool": "pool", "device": "a"}
        status["devices"] = [{**place, "conditions": reported}]
    return msgspec.convert(claim("c", request(), status=status), ResourceClaim)


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        (None, False),
        ({}, False),
        ({"attached": "True"}, False),
        ({"attached": "True", "warm": "False"}, False),
        ({"attached": "True", "warm": "Unknown"}, False),
        ({"attached": "True", "warm": "True"}, True),
        ({"attached": "True", "warm": "True", "broken": "False"}, True),
        ({"attached": "True", "warm": "True", "other": "False"}, True),
    ],
)
def test_a_device_is_ready_when_all_its_conditions_are_true(conditions: dict[str, str] | None, expected: bool) -> None:
    assert is_ready(waiting(conditions)) is expected


def test_a_failure_counts_more_than_conditions_that_are_met() -> None:
    with pytest.raises(BindingProblem) as caught:
        is_ready(waiting({"attached": "True", "warm": "True", "broken": "True"}))

    assert str(caught.value) == 'device binding failed: claim=c, reason=R, message="m"'


@pytest.mark.parametrize(
    "status", [None, allocated(result("a")), allocated()], ids=["not allocated", "no conditions", "no devices"]
)
def test_claims_without_conditions_wait_for_nothing(status: dict[str, Any] | None) -> None:
    plain = msgspec.convert(claim("c", request(), status=status), ResourceClaim)

    assert is_ready(plain)
    assert not waits_for_conditions(plain)
    assert not has_timed_out(plain, SINCE * 2, 1.0)


@pytest.mark.parametrize(
    ("stamp", "after", "expected"),
    [
        (STAMP, 599.0, False),
        (STAMP, 600.0, False),
        (STAMP, 601.0, True),
        (None, 9999.0, False),
        ("noon", 9999.0, False),
    ],
)
def test_the_wait_is_counted_from_the_allocation(stamp: str | None, after: float, expected: bool) -> None:
    held = waiting({}, **({"allocationTimestamp": stamp} if stamp else {}))

    assert waits_for_conditions(held)
    assert has_timed_out(held, SINCE + after, 600.0) is expected
