"""NodeResourcesFit: every shortage is named, and three ways to score what is left."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from bayplan.api.devices import DeviceClass, DeviceClassSpec
from bayplan.api.meta import Metadata
from bayplan.api.node import Node
from bayplan.framework import Code, Hint
from bayplan.framework.cycle import CycleState
from bayplan.plugins.intree.node_resources_fit import NodeResourcesFit
from bayplan.testing import Harness, Outcome, container, expect, node, pod

NAME = "NodeResourcesFit"
HALF_FULL = pod("there", cpu=1, memory="1Gi", node="n1")
SMALL = {"cpu": "100m", "memory": "500Mi"}


def decided(made: Any, *running: Any, args: dict[str, Any] | None = None, on: Node | None = None) -> Outcome:
    harness = Harness(nodes=[on or node("n1")], pods=running, args={NAME: args} if args else None)
    return harness.explain(made)


def strategy(kind: str, **more: Any) -> dict[str, Any]:
    return {"scoringStrategy": {"type": kind, **more}}


# Filter


def test_a_pod_that_fits_exactly_fits() -> None:
    expect(decided(pod(cpu=3, memory="31Gi"), HALF_FULL)).scheduled_on("n1")
    expect(decided(pod(cpu="3001m", memory="31Gi"), HALF_FULL)).rejected_because("Insufficient cpu", on="n1")


def test_every_shortage_is_named_in_order() -> None:
    small = node("n1", cpu=1, memory="1Gi", pods=1, allocatable={"ephemeral-storage": "1Gi"})
    wanted = pod(cpu=2, memory="2Gi", requests={"ephemeral-storage": "2Gi", "example.com/gpu": 1})
    outcome = decided(wanted, pod("there", node="n1"), on=small)

    assert outcome.rejections["n1"].reasons == (
        "Too many pods",
        "Insufficient cpu",
        "Insufficient memory",
        "Insufficient ephemeral-storage",
        "Insufficient example.com/gpu",
    )


@pytest.mark.parametrize(("cpu", "code"), [("3500m", "Unschedulable"), ("4001m", "UnschedulableAndUnresolvable")])
def test_what_the_node_could_never_offer_is_unresolvable(cpu: str, code: str) -> None:
    assert decided(pod(cpu=cpu), HALF_FULL).rejections["n1"].code.label == code


def test_too_many_pods_can_be_helped() -> None:
    outcome = decided(pod(), pod("there", node="n1"), on=node("n1", pods=1))

    assert outcome.rejections["n1"].reasons == ("Too many pods",)
    assert outcome.rejections["n1"].code.label == "Unschedulable"


def test_a_node_that_does_not_say_how_many_pods_takes_none() -> None:
    silent = node("n1")
    silent.status.allocatable = {"cpu": 4, "memory": "1Gi"}

    expect(decided(pod(), on=silent)).rejected_because("Too many pods", on="n1")


def test_a_request_of_zero_is_never_short() -> None:
    full = pod("there", cpu=4, node="n1")

    expect(decided(pod(cpu=0, requests={"example.com/none": 0}), full)).scheduled_on("n1")


def test_an_overcommitted_node_still_takes_pods_that_ask_for_nothing() -> None:
    expect(decided(pod(), pod("there", cpu=9, node="n1"))).scheduled_on("n1")
    expect(decided(pod(memory="1Mi"), pod("there", cpu=9, node="n1"))).scheduled_on("n1")


def test_ignored_resources_and_groups_are_not_compared() -> None:
    args = {"ignoredResources": ["example.com/gpu"], "ignoredResourceGroups": ["other.com"]}
    wanted = pod(requests={"example.com/gpu": 9, "other.com/fpga": 9, "third.com/asic": 9})

    assert decided(wanted, args=args).rejections["n1"].reasons == ("Insufficient third.com/asic",)


def test_only_extended_resources_can_be_ignored() -> None:
    outcome = decided(pod(requests={"hugepages-2Mi": "4Mi"}), args={"ignoredResources": ["hugepages-2Mi"]})

    expect(outcome).rejected_because("Insufficient hugepages-2Mi", on="n1")


def test_more_resources_than_a_mask_has_bits_are_all_named() -> None:
    wanted = {f"example.com/r{i}": 1 for i in range(40)}
    harness = Harness(
        nodes=[node("n1", allocatable=wanted), "n2", node("n3", allocatable={**wanted, "example.com/r7": 0})]
    )
    outcome = harness.explain(pod(requests=wanted))

    expect(outcome).scheduled_on("n1")
    assert len(outcome.rejections["n2"].reasons) == 40
    assert outcome.rejections["n3"].reasons == ("Insufficient example.com/r7",)


def test_names_that_no_node_offers_are_all_named_and_rule_out_preemption() -> None:
    made_up = {f"evil.com/r{i:03}": 1 for i in range(300)}
    harness = Harness(nodes=[node("n1", cpu=1, allocatable={"example.com/gpu": 1}), "n2"])
    outcome = harness.explain(pod(cpu=2, requests={**made_up, "example.com/gpu": 2, "evil.com/none": 0}))
    lacking = tuple(f"Insufficient {name}" for name in made_up)

    assert outcome.rejections["n1"].reasons == ("Insufficient cpu", "Insufficient example.com/gpu", *lacking)
    assert outcome.rejections["n2"].reasons == ("Insufficient example.com/gpu", *lacking)
    assert {status.code for status in outcome.rejections.values()} == {Code.UNRESOLVABLE}


@pytest.mark.parametrize("name", ["cpu", "memory", "ephemeral-storage", "example.com/gpu"])
@pytest.mark.parametrize("overhead", [None, {"cpu": 2**63 - 1, "memory": 2**63 - 1}])
def test_sums_beyond_64_bits_are_too_much_for_every_node(name: str, overhead: dict[str, int] | None) -> None:
    containers = [container(f"c{i}", requests={name: 2**63 - 1}) for i in range(50)]
    harness = Harness(nodes=[node("n1", allocatable={"example.com/gpu": 1}), "n2"])
    outcome = harness.explain(pod(containers=containers, overhead=overhead))

    assert all(f"Insufficient {name}" in outcome.rejections[each].reasons for each in ("n1", "n2"))


@pytest.mark.parametrize("made_up", [0, 1, 300])
@pytest.mark.parametrize("offered", [1, 40])
def test_both_forms_say_the_same_of_many_resources(offered: int, made_up: int) -> None:
    wanted = {f"example.com/r{i}": 1 for i in range(offered)}
    harness = Harness(nodes=["n1", node("n2", allocatable=wanted)])
    wanted.update((f"evil.com/r{i}", 1) for i in range(made_up))
    plugin, info = harness.plugin(NAME), harness.info(pod(requests=wanted))
    verdicts = plugin.filter_nodes(CycleState(), info, harness.cluster.columns())
    one = [plugin.filter(CycleState(), info, each) for each in harness.cluster.columns()]

    assert [verdicts.status(int(n)) if n else None for n in verdicts.ids] == one


def test_pod_level_requests_are_what_is_compared() -> None:
    expect(decided(pod(cpu=1, pod_requests={"cpu": 5}))).rejected_because("Insufficient cpu", on="n1")


# Scores


@pytest.mark.parametrize(
    ("kind", "running", "expected"),
    [
        ("LeastAllocated", (), 97),
        ("MostAllocated", (), 1),
        ("LeastAllocated", (HALF_FULL,), 83),
        ("MostAllocated", (HALF_FULL,), 15),
    ],
    ids=["A1", "A2", "A4", "A5"],
)
def test_least_and_most_allocated(kind: str, running: tuple[Any, ...], expected: int) -> None:
    """Vectors A1, A2, A4 and A5."""
    assert expect(decided(pod(**SMALL), *running, args=strategy(kind))).score(NAME, "n1") == expected


def test_a_pod_that_asks_for_nothing_is_scored_by_defaults() -> None:
    """Vector A7."""
    outcome = decided(pod())

    assert expect(outcome).score(NAME, "n1") == 98
    expect(outcome).skipped("NodeResourcesBalancedAllocation")


RISING = {"requestedToCapacityRatio": {"shape": [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]}}


def test_the_requested_to_capacity_ratio_rounds() -> None:
    """Vector A8."""
    outcome = decided(pod(**SMALL), HALF_FULL, args=strategy("RequestedToCapacityRatio", **RISING))

    assert expect(outcome).score(NAME, "n1") == 16


def test_a_resource_that_scores_nothing_is_left_out_of_the_average() -> None:
    """Vector A9."""
    outcome = decided(pod(cpu="100m", memory="100Mi"), args=strategy("RequestedToCapacityRatio", **RISING))

    assert expect(outcome).score(NAME, "n1") == 2


@pytest.mark.parametrize(("cpu", "expected"), [(1, 100), (2, 75), (3, 50), (4, 50)])
def test_between_two_points_the_score_falls_in_whole_steps(cpu: int, expected: int) -> None:
    shape = [{"utilization": 25, "score": 10}, {"utilization": 75, "score": 5}]
    args = strategy(
        "RequestedToCapacityRatio",
        resources=[{"name": "cpu", "weight": 1}],
        requestedToCapacityRatio={"shape": shape},
    )

    assert expect(decided(pod(cpu=cpu), args=args)).score(NAME, "n1") == expected


def test_weights_and_other_resources_take_part() -> None:
    gpu = node("n1", allocatable={"example.com/gpu": 4})
    resources = [{"name": "cpu", "weight": 1}, {"name": "example.com/gpu", "weight": 3}]
    args = strategy("MostAllocated", resources=resources)
    wanted = pod(cpu=2, requests={"example.com/gpu": 4})

    assert expect(decided(wanted, args=args, on=gpu)).score(NAME, "n1") == (50 + 3 * 100) // 4
    assert expect(decided(pod(cpu=2), args=args, on=gpu)).score(NAME, "n1") == 50


def test_scoring_does_not_see_pod_level_requests_of_the_incoming_pod() -> None:
    """A quirk of kube-scheduler: an empty 4 cpu, 8Gi node scores 97 whatever the pod as a whole asks for."""
    outcome = decided(pod(pod_requests={"cpu": 2, "memory": "4Gi"}), on=node("n1", memory="8Gi"))

    assert expect(outcome).score(NAME, "n1") == 97


def test_scoring_sees_the_defaults_of_running_pods() -> None:
    idle = [pod(f"p{i}", node="n1", containers=[container(), container("b")]) for i in range(5)]

    assert (
        expect(decided(pod(cpu=0, memory=0), *idle)).score(NAME, "n1")
        == (75 + (32 * 1024 - 2000) * 100 // (32 * 1024)) // 2
    )


def test_a_node_without_the_resources_scores_nothing() -> None:
    bare = node("n1", allocatable={"cpu": 0, "memory": 0})

    assert expect(decided(pod(), on=bare)).score(NAME, "n1") == 0


def test_amounts_beyond_exact_floats_are_divided_exactly() -> None:
    whole = 2**53 + 2
    big = node("n1", cpu=0, memory=whole)
    expected = (whole - 2**52) * 100 // whole

    assert expect(decided(pod(memory=2**52), on=big)).score(NAME, "n1") == expected


# Arguments


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (strategy("Tidiest"), "scoringStrategy.type"),
        (strategy("LeastAllocated", resources=[{"name": "cpu", "weight": 101}]), "resources[0].weight"),
        (strategy("LeastAllocated", resources=[{"name": "cpu"}, {"name": "cpu"}]), "listed twice"),
        (strategy("LeastAllocated", **RISING), "goes with type RequestedToCapacityRatio only"),
        (strategy("RequestedToCapacityRatio"), "shape"),
        ({"ignoredResourceGroups": ["a/b"]}, "ignoredResourceGroups[0]"),
    ],
)
def test_arguments_that_make_no_sense_are_named(args: dict[str, Any], says: str) -> None:
    problems = msgspec.convert(args, NodeResourcesFit.Args).validate()

    assert any(says in problem for problem in problems)


# Requeueing


@pytest.fixture
def harness() -> Harness:
    return Harness(nodes=["n1"])


def hint(harness: Harness, number: int, waiting: Any, old: Any, new: Any) -> Hint:
    registered = harness.plugin(NAME).events_to_register()[number].hint
    assert registered is not None
    answer: Hint = registered(harness.info(waiting), old, new)
    return answer


def test_a_pod_that_leaves_a_node_makes_room(harness: Harness) -> None:
    wanted = pod(cpu=1)

    assert hint(harness, 0, wanted, harness.info(pod("x", node="n1")), None) is Hint.QUEUE
    assert hint(harness, 0, wanted, harness.info(pod("x", nominated="n1")), None) is Hint.QUEUE
    assert hint(harness, 0, wanted, harness.info(pod("x")), None) is Hint.SKIP


def test_a_pod_that_shrinks_makes_room_for_those_that_want_what_it_gives_up(harness: Harness) -> None:
    def resized(cpu: int, memory: str, at: str = "n1") -> Any:
        return harness.info(pod("x", cpu=cpu, memory=memory, node=at))

    assert hint(harness, 0, pod(cpu=1), resized(2, "1Gi"), resized(1, "1Gi")) is Hint.QUEUE
    assert hint(harness, 0, pod(cpu=1), resized(2, "2Gi"), resized(2, "1Gi")) is Hint.SKIP
    assert hint(harness, 0, pod(cpu=1), resized(2, "1Gi", ""), resized(1, "1Gi", "")) is Hint.SKIP
    mine = pod("mine", cpu=1)
    assert hint(harness, 0, mine, harness.info(mine), harness.info(mine)) is Hint.QUEUE


def test_a_node_matters_when_the_pod_would_fit_on_it_empty(harness: Harness) -> None:
    wanted = pod(cpu=2, requests={"example.com/gpu": 1})
    gpu = {"example.com/gpu": 1}

    assert hint(harness, 1, wanted, None, node("n2", allocatable=gpu)) is Hint.QUEUE
    assert hint(harness, 1, wanted, None, node("n2")) is Hint.SKIP
    assert hint(harness, 1, wanted, None, node("n2", cpu=1, allocatable=gpu)) is Hint.SKIP
    assert hint(harness, 1, wanted, None, node("n2", pods=0, allocatable=gpu)) is Hint.SKIP


def test_a_changed_node_matters_when_it_offers_more_of_what_is_wanted(harness: Harness) -> None:
    wanted = pod(cpu=2)

    assert hint(harness, 1, wanted, node("n2", cpu=3), node("n2", cpu=4)) is Hint.QUEUE
    assert hint(harness, 1, wanted, node("n2", pods=1), node("n2", pods=2)) is Hint.QUEUE
    assert hint(harness, 1, wanted, node("n2", memory="1Gi"), node("n2", memory="2Gi")) is Hint.SKIP
    assert hint(harness, 1, wanted, node("n2", cpu=1), node("n2", cpu="1500m")) is Hint.SKIP


def test_a_device_class_matters_when_it_newly_stands_for_a_wanted_resource(harness: Harness) -> None:
    def device_class(resource: str | None) -> DeviceClass:
        return DeviceClass(metadata=Metadata(name="gpu"), spec=DeviceClassSpec(extended_resource_name=resource))

    wanted = pod(requests={"example.com/gpu": 1})
    implicit = pod(requests={"deviceclass.resource.kubernetes.io/gpu": 1})

    assert hint(harness, 2, wanted, None, device_class("example.com/gpu")) is Hint.QUEUE
    assert hint(harness, 2, wanted, device_class(None), device_class("example.com/gpu")) is Hint.QUEUE
    assert hint(harness, 2, wanted, device_class("example.com/gpu"), device_class("example.com/gpu")) is Hint.SKIP
    assert hint(harness, 2, wanted, None, device_class("other.com/x")) is Hint.SKIP
    assert hint(harness, 2, implicit, None, device_class(None)) is Hint.QUEUE
    assert hint(harness, 2, implicit, device_class(None), device_class(None)) is Hint.SKIP


def test_both_forms_score_the_same_with_every_strategy() -> None:
    nodes = [node(f"n{i}", cpu=i, memory=f"{i}Gi", allocatable={"example.com/gpu": i}) for i in range(4)]
    resources = [{"name": name, "weight": 2} for name in ("cpu", "memory", "example.com/gpu")]
    for kind in ("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"):
        more = RISING if kind == "RequestedToCapacityRatio" else {}
        harness = Harness(nodes=nodes, args={NAME: strategy(kind, resources=resources, **more)})
        plugin, info = harness.plugin(NAME), harness.info(pod(cpu=1, requests={"example.com/gpu": 1}))
        columns = plugin.score_nodes(CycleState(), info, harness.cluster.columns())

        assert columns.dtype == np.int64
        assert columns.tolist() == [plugin.score(CycleState(), info, each) for each in harness.cluster.columns()]
