"""Requests with a list of alternatives: which of them is taken, and with what."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.plugins.intree.dynamic_resources.device_cases import (
    alternative,
    claim,
    device,
    device_class,
    evaluate,
    first_of,
    held,
    node,
    request,
    slice_of,
    summary,
)

CANNOT = "cannot allocate all claims"
ALL = {"allocationMode": "All", "count": 0}
NUMA = "gpu.example.com/numa"


def at_least(memory: str) -> str:
    return f'device.capacity["gpu.example.com"].memory.compareTo(quantity("{memory}")) >= 0'


def is_version(version: str) -> str:
    return f'device.attributes["gpu.example.com"].version == "{version}"'


BIG, SMALL = device("big", capacity={"memory": "8Gi"}), device("small", capacity={"memory": "4Gi"})
SIZES = [slice_of(BIG, pool="p1"), slice_of(SMALL, pool="p2")]
BIG_OR_SMALL = first_of("x", alternative("big", at_least("8Gi")), alternative("small", at_least("4Gi")))
NEWEST = first_of("x", alternative("v6", is_version("v6"), **ALL), alternative("v5", is_version("v5"), **ALL))
MANY = slice_of(*(device(f"d{number:02}") for number in range(40)))


def versions(**devices: str) -> list[dict[str, Any]]:
    return [device(name, attributes={"version": version}) for name, version in devices.items()]


def near(**devices: int) -> dict[str, Any]:
    return slice_of(*(device(name, attributes={"numa": numa}) for name, numa in devices.items()))


CASES = [
    pytest.param(
        [slice_of(device("a")), claim("c", first_of("x", alternative("two", count=2), alternative("one")))],
        "x/one: pool/a",
        id="the first needs more than there is",
    ),
    pytest.param(
        [slice_of(device("a")), claim("c", first_of("x", alternative("three", count=3), alternative("two", count=2)))],
        CANNOT,
        id="none can be had",
    ),
    pytest.param(
        [*SIZES, claim("c", request("y", at_least("8Gi")), BIG_OR_SMALL)],
        "y: p1/big, x/small: p2/small",
        id="an earlier request has taken what the first wants",
    ),
    pytest.param(
        [*SIZES, claim("c", BIG_OR_SMALL, request("y", at_least("8Gi")))],
        "x/small: p2/small, y: p1/big",
        id="a later request needs what the first would take",
    ),
    pytest.param(
        [*SIZES, claim("c", BIG_OR_SMALL), claim("d", request("y", at_least("8Gi")))],
        "x/small: p2/small, y: p1/big",
        id="a later claim needs what the first would take",
    ),
    pytest.param(
        [*SIZES, claim("c", BIG_OR_SMALL, BIG_OR_SMALL | {"name": "y"})],
        "x/big: p1/big, y/small: p2/small",
        id="two lists",
    ),
    pytest.param(
        [slice_of(device("a")), claim("c", first_of("x", alternative("most", count=500), alternative("one")))],
        "x/one: pool/a",
        id="the first asks for more than a claim can hold",
    ),
    pytest.param(
        [MANY, claim("c", request("y", count=31), first_of("x", alternative("two", count=2), alternative("one")))],
        ", ".join([*(f"y: pool/d{n:02}" for n in range(31)), "x/one: pool/d31"]),
        id="with the first the claim would hold too many",
    ),
    pytest.param(
        [
            slice_of(device("a"), device("b")),
            held("b"),
            claim("c", first_of("x", alternative("all", **ALL), alternative("one"))),
        ],
        "x/one: pool/a",
        id="all devices, one of which is taken",
    ),
    pytest.param(
        [claim("c", first_of("x", alternative("all", **ALL), alternative("one")))],
        CANNOT,
        id="all devices, and there are none",
    ),
    pytest.param(
        [slice_of(*versions(a="v5")), claim("c", NEWEST)], "x/v5: pool/a", id="all of a version that nobody has"
    ),
    pytest.param(
        [slice_of(*versions(a="v5"), pool="p1"), slice_of(*versions(a="v5"), pool="p2"), claim("c", NEWEST)],
        "x/v5: p1/a, x/v5: p2/a",
        id="all of a version in two pools",
    ),
    pytest.param(
        [
            slice_of(*versions(a="v5"), pool="p1"),
            slice_of(*versions(a="v5", b="v6"), pool="p2", node="elsewhere"),
            claim("c", NEWEST),
        ],
        "x/v5: p1/a",
        id="all of a version on this node",
    ),
    pytest.param(
        [slice_of(*versions(a="v5", b="v6", c="v6")), claim("c", NEWEST)],
        "x/v6: pool/b, x/v6: pool/c",
        id="all of the newest version",
    ),
    pytest.param(
        [slice_of(*versions(a="v5", b="v6", c="v6")), held("c"), claim("c", NEWEST)],
        "x/v5: pool/a",
        id="all of the newest version, one of which is taken",
    ),
    pytest.param(
        [
            near(a=0, b=1, c=1),
            claim(
                "c",
                first_of("x", alternative("two", count=2), alternative("one")),
                request("y"),
                constraints=[{"matchAttribute": NUMA, "requests": ["x", "y"]}],
            ),
        ],
        "x/one: pool/b, y: pool/c",
        id="a constraint on the request holds for every alternative",
    ),
    pytest.param(
        [
            near(a=0, b=1, c=2),
            claim(
                "c",
                first_of("x", alternative("two", count=2), alternative("one")),
                request("y"),
                constraints=[{"matchAttribute": NUMA, "requests": ["x/two", "y"]}],
            ),
        ],
        "x/one: pool/a, y: pool/b",
        id="a constraint on one alternative does not hold for the other",
    ),
    pytest.param(
        [
            slice_of(device("a", taints=[{"key": "k", "effect": "NoSchedule"}])),
            claim("c", first_of("x", alternative("strict"), alternative("lax", tolerations=[{"operator": "Exists"}]))),
        ],
        "x/lax: pool/a",
        id="the second tolerates a taint",
    ),
    pytest.param(
        [slice_of(device("a"), device("b"), pool="p1"), claim("c", first_of("x", alternative("two", count=2)))],
        "x/two: p1/a, x/two: p1/b",
        id="a list of one",
    ),
]


@pytest.mark.parametrize(("objects", "expected"), CASES)
def test_the_first_alternative_that_fits_with_everything_else_is_taken(
    objects: list[dict[str, Any]], expected: str
) -> None:
    assert summary(*objects) == expected


def test_only_devices_of_the_class_count() -> None:
    chosen = device_class("gpu", 'device.attributes["gpu.example.com"].chosen')
    devices = [
        device(name, attributes={"version": version, "chosen": is_chosen})
        for name, version, is_chosen in [("a", "v6", False), ("b", "v5", False), ("c", "v5", True)]
    ]

    assert summary(slice_of(*devices), chosen, claim("c", NEWEST)) == "x/v5: pool/c"


@pytest.mark.parametrize(
    ("named", "expected"),
    [(["x"], True), (["x/one"], True), (["x/two"], False), ([], True), (["y"], False)],
)
def test_configuration_goes_along_for_the_alternative_that_is_taken(named: list[str], expected: bool) -> None:
    opaque = {"driver": "gpu.example.com", "parameters": {"x": 1}}
    config = [{**({"requests": named} if named else {}), "opaque": opaque}]
    listed = first_of("x", alternative("two", count=2), alternative("one"))
    outcome = evaluate(slice_of(device("a")), claim("c", listed, config=config))
    devices = outcome["allocations"]["default/c"]["allocation"]["devices"]

    assert [each["source"] for each in devices.get("config", ())] == ["FromClaim"] * expected


@pytest.mark.parametrize(("have", "points"), [(3, 200), (2, 174), (1, 150)])
def test_earlier_alternatives_score_higher(have: int, points: int) -> None:
    listed = first_of("x", *(alternative(f"a{count}", count=count) for count in (3, 2, 1)))
    best = slice_of(*(device(f"d{number}") for number in range(3)), pool="best", node="best")
    other = slice_of(*(device(f"d{number}") for number in range(have)), pool="n")
    outcome = evaluate(best, other, node("best"), node("n"), claim("c", listed))

    assert outcome["scores"]["n"]["DynamicResources"] == points
