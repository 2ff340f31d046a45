"""`extended`: resources that a device class stands for."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from tests.unit.plugins.intree.dynamic_resources.device_cases import (
    claim,
    device,
    device_class,
    devices_of,
    evaluate,
    node,
    pod,
    refusal,
    request,
    slice_of,
)

from bayplan.api.decode import decode_object
from bayplan.api.devices import DeviceClass
from bayplan.api.pod import Pod
from bayplan.cluster.state import ClusterState
from bayplan.plugins.intree.dynamic_resources.extended import DelegationColumns, device_requests
from bayplan.testing import Harness

GPU, IMPLICIT = "example.com/gpu", "deviceclass.resource.kubernetes.io/gpu"
BACKED = device_class("gpu", extendedResourceName=GPU)
MADE = "target-extended-resources-"


def test_a_node_without_the_resource_gives_devices_of_the_class() -> None:
    outcome = evaluate(slice_of(device("a"), device("b")), BACKED, target=pod(requests={GPU: "2"}))

    assert devices_of(outcome, MADE) == ["container-0-request-0: pool/a", "container-0-request-0: pool/b"]


def test_every_class_has_a_resource_of_its_name() -> None:
    outcome = evaluate(slice_of(device("a")), device_class(), target=pod(requests={IMPLICIT: "1"}))

    assert devices_of(outcome, MADE) == ["container-0-request-0: pool/a"]


def test_a_node_that_offers_the_resource_itself_gives_that() -> None:
    offering = node()
    offering["status"]["allocatable"][GPU] = "1"
    outcome = evaluate(BACKED, offering, target=pod(requests={GPU: "1"}))

    assert outcome["best"] == ["n"]
    assert "allocations" not in outcome


def test_too_few_devices_refuse_the_node() -> None:
    outcome = evaluate(slice_of(device("a")), BACKED, target=pod(requests={GPU: "2"}))

    assert refusal(outcome) == "cannot allocate all claims"


def test_without_a_class_the_resource_is_insufficient() -> None:
    outcome = evaluate(slice_of(device("a")), target=pod(requests={GPU: "1"}))

    assert refusal(outcome) == f"Insufficient {GPU}"


def test_claims_and_extended_resources_go_together() -> None:
    target = pod("c", requests={GPU: "1"})
    outcome = evaluate(slice_of(device("a"), device("b")), BACKED, claim("c", request()), target=target)

    assert (devices_of(outcome, "c"), devices_of(outcome, MADE)) == (
        ["r: pool/a"],
        ["container-0-request-0: pool/b"],
    )


@pytest.mark.parametrize(
    ("created", "expected"),
    [(("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"), "b"), (("2026-01-01T00:00:00Z",) * 2, "a")],
)
def test_of_two_classes_the_newer_stands_for_the_resource_and_else_the_first_by_name(
    created: tuple[str, str], expected: str
) -> None:
    state = ClusterState()
    for name, when in zip("ab", created, strict=True):
        made = device_class(name, extendedResourceName=GPU)
        made["metadata"]["creationTimestamp"] = when
        state.objects.put(msgspec.convert(made, DeviceClass))
    found = state.device_classes.class_for(GPU)

    assert found is not None and found.name == expected


class Delegations:
    """The columns of two nodes, n0 and n1, asked again after each change."""

    def __init__(self) -> None:
        self.harness = Harness(nodes=["n0", "n1"])
        cluster = self.harness.cluster
        self.columns = DelegationColumns(cluster.nodes, cluster.device_classes)

    def put(self, document: dict[str, Any]) -> None:
        self.harness.add(decode_object(document))

    def offer(self, name: str, amount: str) -> None:
        offering = node(name)
        offering["status"]["allocatable"][GPU] = amount
        self.put(offering)

    def read(self) -> dict[str, str]:
        table = self.harness.cluster.nodes
        rows = np.array([table.row_of[name] for name in ("n0", "n1")], dtype=np.intp)
        groups, missing = self.columns.of((GPU,), rows)
        told = dict.fromkeys(missing.tolist(), "missing")
        for delegated, positions in groups.items():
            told |= dict.fromkeys(positions.tolist(), "devices" if delegated else "offered")
        return {name: told[position] for position, name in enumerate(("n0", "n1"))}


def test_what_devices_stand_for_follows_nodes_and_classes() -> None:
    cluster = Delegations()
    assert cluster.read() == {"n0": "missing", "n1": "missing"}

    cluster.put(BACKED)
    assert cluster.read() == {"n0": "devices", "n1": "devices"}

    cluster.offer("n0", "2")
    assert cluster.read() == {"n0": "offered", "n1": "devices"}

    cluster.offer("n0", "0")
    cluster.offer("n1", "1")
    assert cluster.read() == {"n0": "devices", "n1": "offered"}


def _requests(init: list[dict[str, Any]], containers: list[dict[str, Any]]) -> tuple[list[str], list[str]]:
    state = ClusterState()
    state.objects.put(msgspec.convert(BACKED, DeviceClass))
    made = msgspec.convert(pod(containers=containers, initContainers=init), Pod)
    requests, mappings = device_requests(made, [GPU], state.device_classes)
    counts = [f"{each.name}={each.exactly.count if each.exactly else 0}" for each in requests]
    return counts, [f"{each.container_name}:{each.request_name}" for each in mappings]


def container(name: str, count: int, **fields: Any) -> dict[str, Any]:
    return {"name": name, "resources": {"requests": {"cpu": "1", GPU: str(count)}}, **fields}


def test_each_container_has_a_request_of_its_own() -> None:
    counts, mappings = _requests([], [container("a", 1), container("b", 2)])

    assert counts == ["container-0-request-1=1", "container-1-request-1=2"]
    assert mappings == ["a:container-0-request-1", "b:container-1-request-1"]


def test_an_init_container_uses_the_devices_of_those_that_start_later() -> None:
    counts, mappings = _requests([container("first", 1)], [container("main", 2)])

    assert counts == ["container-1-request-1=2"]
    assert mappings == ["main:container-1-request-1", "first:container-1-request-1"]


def test_only_the_largest_number_beyond_that_is_asked_for() -> None:
    counts, mappings = _requests([container("x", 3), container("y", 5)], [container("main", 2)])

    assert counts == ["container-1-request-1=3", "container-2-request-1=2"]
    assert mappings[0] == "main:container-2-request-1"
    assert {line for line in mappings if line.startswith("x:")} == {
        "x:container-2-request-1",
        "x:container-1-request-1",
    }


def test_a_sidecar_lasts_as_long_as_the_pod() -> None:
    counts, _ = _requests([container("side", 1, restartPolicy="Always")], [container("main", 1)])

    assert counts == ["container-0-request-1=1", "container-1-request-1=1"]
