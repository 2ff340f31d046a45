"""Pools that several nodes share, and devices that any node reaches: which node gets which device."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.plugins.intree.dynamic_resources.device_cases import (
    alternative,
    claim,
    counters,
    device,
    devices_of,
    evaluate,
    every,
    first_of,
    held,
    node,
    refusal,
    request,
    slice_of,
    takes,
)

Json = dict[str, Any]
CANNOT, INVALID = "cannot allocate all claims", "invalid resource pools were encountered"
IN_ZONE = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z"]}]}]}
UPDATED = "asks for all devices, but resource pool gpu.example.com/pool is currently being updated"


def on(name: str, *devices: str, at: int = 1, count: int = 2, **more: Any) -> Json:
    """A slice of the pool that is for one node."""
    return slice_of(*map(device, devices), name=f"slice-{name}", node=name, generation=at, count=count, **more)


def partition(name: str, memory: str = "30Gi", **more: Any) -> Json:
    return device(name, consumesCounters=[takes("set", memory=memory)], **more)


ANYWHERE = slice_of(*map(device, "ab"), node=None, allNodes=True)
ZONAL = slice_of(*map(device, "ab"), node=None, nodeSelector=IN_ZONE)
ROWS: list[Any] = [
    pytest.param([on("n", "a"), on("m", "b"), claim("c", every())], {"n": ["r: pool/a"]}, id="all of one node"),
    pytest.param(
        [on("n", "a"), on("m", "b", at=2, count=1), claim("c", request())],
        {"n": CANNOT, "m": ["r: pool/b"]},
        id="a stale slice on this node",
    ),
    pytest.param(
        [on("n", "a", at=1), on("m", "b", at=1), on("m2", "c", at=2, count=1), node("m2"), claim("c", request())],
        {"n": CANNOT, "m": CANNOT, "m2": ["r: pool/c"]},
        id="a whole update that moved to another node",
    ),
    pytest.param(
        [on("n", "a", at=2, count=2), on("m", "b", at=1), claim("c", request())],
        {"n": CANNOT, "m": CANNOT},
        id="an update that is not whole yet",
    ),
    pytest.param([on("n", "a"), claim("c", request())], {"n": CANNOT, "m": CANNOT}, id="no slice of the other node"),
    pytest.param(
        [on("n", "a", count=1), claim("c", request())], {"n": ["r: pool/a"], "m": CANNOT}, id="devices of another node"
    ),
    pytest.param([ANYWHERE, claim("c", request(count=2))], {"n": ["r: pool/a", "r: pool/b"]}, id="of all nodes"),
    pytest.param([ANYWHERE, held("a"), held("b"), claim("c", request())], {"n": CANNOT, "m": CANNOT}, id="all taken"),
    pytest.param([ZONAL, claim("c", request())], {"n": ["r: pool/a"], "m": CANNOT}, id="by a label of the node"),
    pytest.param(
        [ZONAL, on("n", "x", count=1, pool="own"), claim("c", request(count=3))],
        {"n": ["r: own/x", "r: pool/a", "r: pool/b"], "m": CANNOT},
        id="attached to the network and local",
    ),
    pytest.param(
        [
            slice_of(name="sets", count=3, node=None, allNodes=True, sharedCounters=[counters("set", memory="40Gi")]),
            slice_of(partition("a"), name="s-n", node="n", count=3),
            slice_of(partition("b"), name="s-m", node="m", count=3),
            held("b"),
            claim("c", request()),
        ],
        {"n": CANNOT, "m": CANNOT},
        id="devices of two nodes take from one counter",
    ),
    pytest.param(
        [
            slice_of(name="sets", count=3, node=None, allNodes=True, sharedCounters=[counters("other", memory="40Gi")]),
            slice_of(device("a"), name="s-n", node="n", count=3),
            slice_of(partition("b"), name="s-m", node="m", count=3),
            claim("c", request()),
        ],
        {"n": INVALID, "m": INVALID},
        id="a mistake in the slice of another node",
    ),
    pytest.param(
        [
            slice_of(device("a", nodeName="n"), device("b", nodeName="m"), node=None, perDeviceNodeSelection=True),
            claim("c", request()),
        ],
        {"n": ["r: pool/a"], "m": ["r: pool/b"]},
        id="each device says its node",
    ),
    pytest.param(
        [
            slice_of(
                device("a", nodeSelector=IN_ZONE), device("b", allNodes=True), node=None, perDeviceNodeSelection=True
            ),
            claim("c", every()),
        ],
        {"n": ["r: pool/a", "r: pool/b"], "m": ["r: pool/b"]},
        id="each device says its nodes, all wanted",
    ),
    pytest.param(
        [
            on("n", "a", "b", count=1, pool="p"),
            on("m", "a", count=1, pool="q"),
            claim("c", first_of("r", alternative("two", count=2), alternative("one"))),
        ],
        {"n": ["r/two: p/a", "r/two: p/b"], "m": ["r/one: q/a"]},
        id="another alternative on another node",
    ),
    pytest.param(
        [
            slice_of(device("a"), device("a"), pool="bad"),
            on("n", "x", count=1, pool="good"),
            claim("c", request()),
        ],
        {"n": ["r: good/x"], "m": CANNOT},
        id="an invalid pool beside a sound one",
    ),
]


@pytest.mark.parametrize(("objects", "expected"), ROWS)
def test_each_node_gives_what_it_reaches(objects: list[Json], expected: dict[str, Any]) -> None:
    for name, wanted in expected.items():
        nodes = {"n": node("n", labels={"zone": "z"}), "m": node("m")}
        chosen = pinned(objects, nodes, name)
        found = devices_of(chosen) or refusal(chosen, name)
        assert found == wanted, name


def pinned(objects: list[Json], nodes: dict[str, Json], name: str) -> Json:
    """The outcome where all nodes but one are closed to the pod."""
    given = {each["metadata"]["name"] for each in objects if each["kind"] == "Node"}
    closed = [each for other, each in nodes.items() if other not in given]
    for each in (*closed, *(each for each in objects if each["kind"] == "Node")):
        each["spec"] = {"unschedulable": each["metadata"]["name"] != name}
    return evaluate(*objects, *closed)


def test_all_devices_of_a_pool_that_is_being_updated_are_an_error() -> None:
    chosen = evaluate(on("n", "a"), claim("c", every()))

    assert UPDATED in chosen["message"]
