"""`columns`: the kept answer for a node is always that of a search made now."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.plugins.intree.dynamic_resources.device_cases import (
    allocated,
    claim,
    counters,
    device,
    device_class,
    every,
    node,
    request,
    result,
    slice_of,
    takes,
)

from bayplan.api.decode import decode_object
from bayplan.api.node import Node
from bayplan.framework.devices import DeviceClass, ResourceClaim
from bayplan.plugins.intree.dynamic_resources.attempt import Inventory
from bayplan.plugins.intree.dynamic_resources.columns import CAN, CANNOT, INVALID, UNDECIDED, signature_of
from bayplan.plugins.intree.dynamic_resources.counters import CounterBook
from bayplan.plugins.intree.dynamic_resources.requests import AllocationError, ClaimAsks, prepare
from bayplan.plugins.intree.dynamic_resources.search import InvalidPools, Search
from bayplan.testing import Harness

Json = dict[str, Any]
A100 = 'device.attributes["gpu.example.com"].model == "a100"'
NUMA = [{"matchAttribute": "gpu.example.com/numa"}]
NODES = ("n0", "n1", "n2")
ASKED = [
    claim("one", request()),
    claim("two", request(count=2)),
    claim("model", request("r", A100)),
    claim("near", request(count=2), constraints=NUMA),
    claim("all", every()),
    claim("part", request(capacity={"requests": {"memory": "1Gi"}})),
]


def nothing(node_name: str) -> None:
    """No deadline."""


class Cluster:
    def __init__(self) -> None:
        self.harness = Harness(nodes=list(NODES), objects=[decode_object(device_class())])
        self.inventory = Inventory(self.harness.cluster)
        self.kept: dict[str, Any] = {}

    def put(self, document: Json) -> None:
        item = decode_object(document)
        self.kept[f"{document['kind']}/{document['metadata']['name']}"] = item
        self.harness.scheduler.cache.put_object(item)

    def drop(self, key: str) -> None:
        if key in self.kept:
            self.harness.scheduler.cache.remove_object(self.kept.pop(key))

    def label(self, name: str, rack: str) -> None:
        self.harness.scheduler.cache.add_node(msgspec.convert(node(name, labels={"rack": rack}), Node))

    def asks(self, document: Json) -> list[ClaimAsks]:
        classes = {"gpu": decode_object(device_class())}
        made = msgspec.convert(document, ResourceClaim)

        def find(name: str) -> DeviceClass | None:
            found = classes.get(name)
            assert found is None or isinstance(found, DeviceClass)
            return found

        return [prepare(made, find)]

    def kept_codes(self, document: Json) -> list[int]:
        table = self.harness.cluster.nodes
        rows = np.array([table.row_of[name] for name in NODES], dtype=np.intp)
        return list(self.inventory.columns.codes(self.asks(document), rows, nothing).tolist())

    def fresh_codes(self, document: Json) -> list[int]:
        return [self._search(document, name) for name in NODES]

    def _search(self, document: Json, name: str) -> int:
        inventory = Inventory(self.harness.cluster)
        info, use = self.harness.cluster.node(name), inventory.devices.use
        assert info is not None
        there = inventory.pools.of(info)
        try:
            found = Search(info, there, self.asks(document), use, CounterBook(use), nothing).run()
        except InvalidPools:
            return INVALID
        except AllocationError:
            return UNDECIDED
        return CANNOT if found is None else CAN


def published(name: str, kind: str, generation: int) -> Json:
    """What the driver of a node may say at some time."""
    plain = [device(f"d{n}", attributes={"model": "a100" if n else "l4", "numa": n % 2}) for n in range(3)]
    own = {"pool": name, "node": name, "name": f"slice-{name}", "generation": generation}
    if kind == "incomplete":
        return slice_of(*plain, count=2, **own)
    if kind == "invalid":
        return slice_of(plain[0], plain[0], **own)
    if kind == "shared":
        return slice_of(device("s", allowMultipleAllocations=True, capacity={"memory": "2Gi"}), **own)
    if kind == "tainted":
        return slice_of(*(each | {"taints": [{"key": "x", "effect": "NoSchedule"}]} for each in plain), **own)
    if kind == "bare":
        return slice_of(device("d0"), **own)
    return slice_of(*plain, **own)


def network(rack: str, generation: int) -> Json:
    term = {"matchExpressions": [{"key": "rack", "operator": "In", "values": [rack]}]}
    selector = {"nodeSelectorTerms": [term]}
    return slice_of(device("d1"), device("d2"), pool="net", name="net", generation=generation, nodeSelector=selector)


def partitions(generation: int, *, is_sound: bool) -> list[Json]:
    whole = {"pool": "parts", "generation": generation, "count": 2}
    halves = [device(f"d{n}", consumesCounters=[takes("card", memory="6Gi")]) for n in range(2)]
    names = counters("card" if is_sound else "other", memory="8Gi")
    return [
        slice_of(*halves, name="parts-a", node="n1", **whole),
        slice_of(name="parts-b", node="n1", sharedCounters=[names], **whole),
    ]


def holding(number: int, pool: str, name: str) -> Json:
    return claim(f"held-{number}", request(), status=allocated(result(name, pool=pool), node=None, users=["x"]))


KINDS = ("plain", "incomplete", "invalid", "shared", "tainted", "bare")
STEPS = st.one_of(
    st.tuples(st.just("publish"), st.sampled_from(NODES), st.sampled_from(KINDS), st.integers(1, 3)),
    st.tuples(st.just("network"), st.sampled_from(["r0", "r1"]), st.integers(1, 2)),
    st.tuples(st.just("parts"), st.integers(1, 2), st.booleans()),
    st.tuples(st.just("hold"), st.integers(0, 3), st.sampled_from([*NODES, "net", "parts"]), st.integers(0, 2)),
    st.tuples(st.just("label"), st.sampled_from(NODES), st.sampled_from(["r0", "r1"])),
    st.tuples(
        st.just("drop"),
        st.sampled_from(
            [
                *(f"ResourceSlice/slice-{name}" for name in NODES),
                "ResourceSlice/net",
                "ResourceSlice/parts-a",
                "ResourceSlice/parts-b",
                *(f"ResourceClaim/held-{n}" for n in range(4)),
            ]
        ),
    ),
)


def take_step(cluster: Cluster, step: tuple[Any, ...]) -> None:
    what, *rest = step
    if what == "publish":
        cluster.put(published(*rest))
    elif what == "network":
        cluster.put(network(*rest))
    elif what == "parts":
        for document in partitions(rest[0], is_sound=rest[1]):
            cluster.put(document)
    elif what == "hold":
        cluster.put(holding(rest[0], rest[1], f"d{rest[2]}"))
    elif what == "label":
        cluster.label(*rest)
    else:
        cluster.drop(*rest)


@settings(max_examples=40, deadline=None)
@given(st.lists(STEPS, max_size=12))
def test_the_kept_answer_is_that_of_a_fresh_search(steps: list[tuple[Any, ...]]) -> None:
    cluster = Cluster()
    for step in [("publish", "n0", "plain", 1), ("publish", "n1", "plain", 1), *steps]:
        take_step(cluster, step)
        for document in ASKED:
            assert cluster.kept_codes(document) == cluster.fresh_codes(document), (step, document["metadata"]["name"])


@pytest.mark.parametrize(
    "other", [request(count=2), request("r", A100), request(adminAccess=True), every(), request("q")]
)
def test_claims_that_ask_for_something_else_have_columns_of_their_own(other: Json) -> None:
    cluster = Cluster()
    signatures = {signature_of(cluster.asks(claim(name, asked))) for name, asked in (("a", request()), ("b", other))}

    assert len(signatures) == 2
    assert len({signature_of(cluster.asks(claim(name, request()))) for name in ("a", "b")}) == 1


def test_of_many_columns_the_latest_are_kept() -> None:
    cluster = Cluster()
    for number in range(70):
        cluster.kept_codes(claim("c", request(f"r{number}")))

    assert len(cluster.inventory.columns._columns) == 64
