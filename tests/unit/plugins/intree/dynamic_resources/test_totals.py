"""`totals`: extended resources that devices stand for, scored by the devices of each node."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.plugins.intree.dynamic_resources.device_cases import (
    DRIVER,
    allocated,
    claim,
    device,
    device_class,
    node,
    pod,
    request,
    result,
    slice_of,
)

from bayplan.explain.offline.cases import evaluate_case

Json = dict[str, Any]
GPU = "example.com/gpu"
CLASS = device_class("gpu", f'device.driver == "{DRIVER}"', extendedResourceName=GPU)


def scores(plugin: str, args: Json, *objects: Json, asked: str = "1") -> dict[str, int]:
    profile = {
        "schedulerName": "default-scheduler",
        "pluginConfig": [
            {"name": plugin, "args": args | {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": f"{plugin}Args"}}
        ],
    }
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [profile],
    }
    found = evaluate_case({"config": config, "objects": list(objects), "pod": pod(requests={GPU: asked})})
    assert isinstance(found, dict)
    return {name: entry.get(plugin, 0) for name, entry in found["scores"].items()}


def fit(kind: str, *objects: Json, asked: str = "1") -> dict[str, int]:
    strategy = {"type": kind, "resources": [{"name": GPU, "weight": 1}]}
    return scores("NodeResourcesFit", {"scoringStrategy": strategy}, *objects, asked=asked)


def of(name: str, count: int, **more: Any) -> Json:
    return slice_of(*(device(f"d{n}") for n in range(count)), pool=name, node=name, **more)


TWO = [node("a"), node("b"), of("a", 4), of("b", 2), CLASS]


@pytest.mark.parametrize(
    ("kind", "expected"), [("LeastAllocated", {"a": 75, "b": 50}), ("MostAllocated", {"a": 25, "b": 50})]
)
def test_devices_count_as_the_amount_of_a_node_that_offers_none_itself(kind: str, expected: dict[str, int]) -> None:
    assert fit(kind, *TWO) == expected


def test_devices_that_are_taken_count_as_used_whole_or_shared() -> None:
    whole = claim("w", request(), status=allocated(result("d0", pool="a"), users=["x"]))
    share = claim("s", request(), status=allocated(result("d1", pool="a", shareID="1"), users=["y"]))
    admin = claim("t", request(), status=allocated(result("d2", pool="a", adminAccess=True), users=["z"]))

    assert fit("MostAllocated", *TWO, whole, share, admin) == {"a": 75, "b": 50}


def test_a_node_that_offers_the_resource_itself_is_scored_by_that() -> None:
    offering = node("a")
    offering["status"]["allocatable"][GPU] = "10"

    assert fit("MostAllocated", offering, node("b"), of("a", 4), of("b", 2), CLASS) == {"a": 10, "b": 50}


def test_slices_of_incomplete_pools_and_older_generations_count() -> None:
    more = slice_of(device("e0"), device("e1"), pool="b", node="b", name="old", generation=0)

    assert fit("MostAllocated", *TWO, more) == {"a": 25, "b": 25}


def test_devices_of_other_classes_do_not_count() -> None:
    assert fit("MostAllocated", *TWO, of("b", 6, driver="nic.example.com")) == {"a": 25, "b": 50}


def test_a_selector_that_fails_for_a_device_of_a_node_leaves_the_resource_out_there() -> None:
    picky = device_class("gpu", f'device.attributes["{DRIVER}"].model == "x"', extendedResourceName=GPU)
    offering = node("b")
    offering["status"]["allocatable"][GPU] = "4"
    modelled = slice_of(device("d0", attributes={"model": "x"}), pool="a", node="a")

    assert fit("MostAllocated", node("a"), offering, modelled, picky) == {"a": 100, "b": 25}


def test_devices_take_part_in_the_balance() -> None:
    resources = {"resources": [{"name": "cpu", "weight": 1}, {"name": GPU, "weight": 1}]}
    # The pod requests no cpu: 0 and 1 of 4 devices, so a deviation of 0.125; and 1 of 2, so one of 0.25.
    assert scores("NodeResourcesBalancedAllocation", resources, *TWO) == {"a": 68, "b": 62}


def test_shared_slices_count_where_they_reach() -> None:
    labelled = node("b", labels={"zone": "z"})
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z"]}]}
    near = slice_of(device("x0"), device("x1"), pool="net", nodeSelector={"nodeSelectorTerms": [term]}, node=None)
    chosen = slice_of(
        device("y0", nodeName="a"), device("y1", allNodes=True), pool="each", node=None, perDeviceNodeSelection=True
    )

    assert fit("MostAllocated", node("a"), labelled, of("a", 2), of("b", 5), near, chosen, CLASS) == {"a": 25, "b": 12}
