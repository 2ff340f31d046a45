"""Partitions of devices that take from counters, devices with their own nodes, and pools over several nodes."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.plugins.intree.dynamic_resources.device_cases import (
    claim,
    counters,
    device,
    every,
    held,
    request,
    slice_of,
    summary,
    takes,
)

Json = dict[str, Any]
CANNOT, INVALID = "cannot allocate all claims", "invalid resource pools were encountered"
TAINT = {"key": "k", "effect": "NoSchedule"}


def part(name: str, amount: str, counter_set: str = "card", **fields: Any) -> Json:
    return device(name, consumesCounters=[takes(counter_set, memory=amount)], **fields)


def pool_of(*devices: Json, card: str = "8Gi", pool: str = "pool", node: str = "n", generation: int = 1) -> list[Json]:
    """A slice of devices and one of counters."""
    whole: Json = {"pool": pool, "count": 2, "node": node, "generation": generation}
    names = counters("card", memory=card)
    return [slice_of(*devices, name=f"{pool}-a", **whole), slice_of(name=f"{pool}-b", sharedCounters=[names], **whole)]


def of_kind(kind: str) -> str:
    return f'device.attributes["gpu.example.com"].kind == "{kind}"'


COLOURS = {"a": "red", "b": "blue", "c": "blue"}
SAME_COLOUR = [{"matchAttribute": "gpu.example.com/colour"}]

COUNTERS = [
    pytest.param([*pool_of(part("a", "4Gi")), claim("c", request())], "r: pool/a", id="one"),
    pytest.param(
        [*pool_of(part("a", "4Gi"), part("b", "6Gi"), part("c", "4Gi")), claim("c", request(count=2))],
        "r: pool/a, r: pool/c",
        id="one that does not fit beside the first is passed over",
    ),
    pytest.param(
        [*pool_of(part("a", "6Gi"), part("b", "4Gi"), part("c", "4Gi")), claim("c", request(count=2))],
        "r: pool/b, r: pool/c",
        id="the first is given up for two that fit",
    ),
    pytest.param([*pool_of(part("a", "9Gi")), claim("c", request())], CANNOT, id="more than there is"),
    pytest.param(
        [*pool_of(part("a", "4Gi"), part("b", "6Gi")), held("a"), claim("c", request())],
        CANNOT,
        id="others have too much of it",
    ),
    pytest.param(
        [*pool_of(part("a", "6Gi"), part("b", "6Gi"), part("c", "1Gi")), held("a", "b"), claim("c", request())],
        CANNOT,
        id="others have more than there is",
    ),
    pytest.param(
        [*pool_of(part("a", "4Gi", taints=[TAINT]), part("b", "8Gi")), claim("c", request())],
        "r: pool/b",
        id="a tainted one takes nothing",
    ),
    pytest.param(
        [
            *pool_of(
                *(part(n, "4Gi", attributes={"colour": x}) for n, x in (("a", "red"), ("b", "blue"), ("c", "blue")))
            ),
            claim("c", request(count=2), constraints=SAME_COLOUR),
        ],
        "r: pool/b, r: pool/c",
        id="one that breaks a constraint takes nothing",
    ),
    pytest.param(
        [
            *pool_of(
                part("a", "8Gi", attributes={"kind": "shared"}, allowMultipleAllocations=True),
                device("b", attributes={"kind": "shared"}),
                part("c", "8Gi", attributes={"kind": "counting"}),
            ),
            claim("c", request("x", of_kind("shared")), request("y", of_kind("counting"))),
        ],
        "x: pool/b, y: pool/c",
        id="a shared one that is given up gives back what it took",
    ),
    pytest.param(
        [*pool_of(part("a", "6Gi")), *pool_of(part("a", "6Gi"), pool="q"), claim("c", request(count=2))],
        "r: pool/a, r: q/a",
        id="each pool has its own",
    ),
    pytest.param(
        [*pool_of(device("plain"), part("a", "8Gi"), part("b", "8Gi")), claim("c", request(count=2))],
        "r: pool/plain, r: pool/a",
        id="beside a device that takes nothing",
    ),
    pytest.param(
        [*pool_of(part("a", "4Gi"), part("b", "4Gi")), claim("c", every())],
        "r: pool/a, r: pool/b",
        id="all of them",
    ),
    pytest.param(
        [*pool_of(part("a", "4Gi"), part("b", "6Gi")), claim("c", every())], CANNOT, id="all, but they do not fit"
    ),
    pytest.param(
        [*pool_of(part("a", "4Gi")), claim("c", request()), claim("d", request())], CANNOT, id="two claims, one device"
    ),
    pytest.param(
        [*pool_of(part("a", "5Gi"), part("b", "3Gi")), claim("c", request("x")), claim("d", request("y"))],
        "x: pool/a, y: pool/b",
        id="two claims fill it",
    ),
    pytest.param([*pool_of(part("a", "4Gi", "other")), claim("c", request())], INVALID, id="a set that is not there"),
    pytest.param(
        [*pool_of(part("a", "4Gi", "other")), slice_of(device("b"), pool="q"), claim("c", request())],
        "r: q/b",
        id="a set that is not there, and another pool",
    ),
    pytest.param(
        [
            slice_of(part("a", "4Gi"), name="a", pool="p"),
            *pool_of(part("b", "4Gi"), pool="q"),
            held("b", pool="q"),
            claim("c", request()),
        ],
        INVALID,
        id="a set of another pool",
    ),
    pytest.param(
        [
            slice_of(part("a", "6Gi"), name="a", count=3, node="n"),
            slice_of(part("b", "6Gi"), name="b", count=3, node="m"),
            slice_of(name="c", count=3, node="n", sharedCounters=[counters("card", memory="8Gi")]),
            held("b"),
            claim("c", request()),
        ],
        CANNOT,
        id="another node's device has taken from it",
    ),
    pytest.param(
        [
            slice_of(part("a", "6Gi"), name="a", count=3, node="n"),
            slice_of(part("b", "6Gi", "other"), name="b", count=3, node="m"),
            slice_of(name="c", count=3, node="n", sharedCounters=[counters("card", memory="8Gi")]),
            claim("c", request()),
        ],
        INVALID,
        id="another node's device is wrong",
    ),
]


@pytest.mark.parametrize(("objects", "expected"), COUNTERS)
def test_partitions_fit_into_the_counters_of_their_pool(objects: list[Json], expected: str) -> None:
    assert summary(*objects) == expected


def by_device(*devices: Json, **more: Any) -> Json:
    return slice_of(*devices, node=None, perDeviceNodeSelection=True, **more)


OTHER_RACK = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "rack", "operator": "Exists"}]}]}
NO_RACK = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "rack", "operator": "DoesNotExist"}]}]}

NODES = [
    pytest.param([by_device(device("a", nodeName="m"), device("b", nodeName="n"))], "r: pool/b", id="by name"),
    pytest.param([by_device(device("a", allNodes=True))], "r: pool/a", id="all nodes"),
    pytest.param(
        [by_device(device("a", nodeSelector=OTHER_RACK), device("b", nodeSelector=NO_RACK))], "r: pool/b", id="by label"
    ),
    pytest.param([by_device(device("a", nodeName="m"))], CANNOT, id="none here"),
    pytest.param([slice_of(device("a"), node="m")], CANNOT, id="a slice of another node"),
    pytest.param([slice_of(device("a"), nodeSelector=OTHER_RACK)], CANNOT, id="a slice for other labels"),
    pytest.param([slice_of(device("a"), nodeSelector=NO_RACK)], "r: pool/a", id="a slice for these labels"),
    pytest.param(
        [slice_of(device("local"), pool="q"), slice_of(device("net"), pool="p", allNodes=True)],
        "r: p/net",
        id="local and on the network, by the name of the pool",
    ),
]


@pytest.mark.parametrize(("objects", "expected"), NODES)
def test_a_device_is_given_on_nodes_that_reach_it(objects: list[Json], expected: str) -> None:
    assert summary(*objects, claim("c", request())) == expected


def over(name: str, device_name: str, node: str, generation: int, count: int) -> Json:
    return slice_of(device(device_name), name=name, node=node, generation=generation, count=count)


SPREAD = [
    pytest.param([over("a", "x", "n", 1, 2), over("b", "y", "m", 1, 2)], "r: pool/x", id="complete"),
    pytest.param([over("a", "x", "n", 1, 2)], CANNOT, id="a slice is missing"),
    pytest.param([over("a", "x", "n", 1, 1), over("b", "y", "m", 2, 1)], "r: pool/x", id="complete, though old"),
    pytest.param([over("a", "x", "n", 1, 2), over("b", "y", "m", 2, 2)], CANNOT, id="a newer generation elsewhere"),
    pytest.param([over("a", "x", "n", 2, 2), over("b", "y", "m", 1, 2)], CANNOT, id="an older slice elsewhere"),
    pytest.param([over("a", "x", "n", 1, 1), over("b", "y", "n", 2, 1)], "r: pool/y", id="two generations here"),
    pytest.param([over("a", "x", "n", 1, 1), over("b", "y", "n", 2, 2)], CANNOT, id="the newer one is incomplete"),
]


@pytest.mark.parametrize(("slices", "expected"), SPREAD)
def test_a_pool_over_several_nodes_is_used_when_it_is_complete(slices: list[Json], expected: str) -> None:
    assert summary(*slices, claim("c", request())) == expected
