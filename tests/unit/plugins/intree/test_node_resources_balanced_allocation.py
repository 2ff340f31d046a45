"""NodeResourcesBalancedAllocation: 75 is neutral, more evens out."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from bayplan.framework.cycle import CycleState
from bayplan.plugins.intree.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from bayplan.testing import Harness, Outcome, expect, node, pod

NAME = "NodeResourcesBalancedAllocation"
HALF_FULL = pod("there", cpu=1, memory="1Gi", node="n1")


def decided(made: Any, *running: Any, resources: list[str] | None = None, **offered: Any) -> Outcome:
    args = {NAME: {"resources": [{"name": name, "weight": 1} for name in resources]}} if resources else None
    return Harness(nodes=[node("n1", **offered)], pods=running, args=args).explain(made)


@pytest.mark.parametrize(("running", "expected"), [((), 74), ((HALF_FULL,), 74)], ids=["A3", "A6"])
def test_a_small_pod_tips_the_balance_a_little(running: tuple[Any, ...], expected: int) -> None:
    """Vectors A3 and A6."""
    outcome = decided(pod(cpu="100m", memory="500Mi"), *running)

    assert expect(outcome).score(NAME, "n1") == expected


def test_a_pod_that_uses_all_alike_changes_nothing() -> None:
    assert expect(decided(pod(cpu=2, memory="16Gi"))).score(NAME, "n1") == 75


def test_a_pod_that_evens_out_scores_more() -> None:
    lopsided = pod("there", cpu=4, node="n1", memory=0)
    assert expect(decided(pod(memory="32Gi"), lopsided)).score(NAME, "n1") == 100
    assert expect(decided(pod(cpu=4), memory="32Gi")).score(NAME, "n1") == 50


def test_a_pod_that_asks_for_none_of_the_resources_is_not_scored() -> None:
    expect(decided(pod())).skipped(NAME)
    storage = {"ephemeral-storage": "1Gi"}
    expect(decided(pod(requests={"ephemeral-storage": 1}), allocatable=storage)).scheduled().skipped(NAME)


def test_use_beyond_what_is_there_counts_as_all_of_it() -> None:
    crowded = pod("there", cpu=40, memory="320Gi", node="n1")
    harness = Harness(nodes=["n1"], pods=[crowded])
    plugin, info = harness.plugin(NAME), harness.info(pod(cpu=1))

    assert [plugin.score(CycleState(), info, each) for each in harness.cluster.columns()] == [75]


def test_more_than_two_resources_use_the_deviation_and_missing_ones_are_left_out() -> None:
    resources = ["cpu", "memory", "example.com/gpu"]
    nodes = [
        node("all", allocatable={"example.com/gpu": 4}),
        node("two"),
        node("one", allocatable={"memory": 0}),
        node("none", allocatable={"cpu": 0, "memory": 0}),
    ]
    args = {NAME: {"resources": [{"name": name, "weight": 1} for name in resources]}}
    harness = Harness(nodes=nodes, args=args)
    plugin, info = harness.plugin(NAME), harness.info(pod(cpu=2, memory="16Gi", requests={"example.com/gpu": 4}))
    one = {each.name: plugin.score(CycleState(), info, each) for each in harness.cluster.columns()}
    columns = plugin.score_nodes(CycleState(), info, harness.cluster.columns()).tolist()

    # fractions 0.5, 0.5 and 1: a deviation of 0.2357, so a balance of 76 against 100 before
    assert one == {"all": 50 + (50 + 76 - 100) // 2, "two": 75, "one": 75, "none": 75}
    assert columns == list(one.values())


def test_a_scalar_that_is_not_asked_for_takes_no_part() -> None:
    outcome = decided(pod(cpu=2, memory="16Gi"), resources=["cpu", "memory", "example.com/gpu"])

    assert expect(outcome).score(NAME, "n1") == 75


def test_pod_level_requests_count() -> None:
    outcome = decided(pod(pod_requests={"cpu": 2, "memory": "16Gi"}))

    assert expect(outcome).score(NAME, "n1") == 75


def test_a_node_that_brings_a_new_resource_is_scored_one_by_one_too() -> None:
    """The one-node form, used when few rows change, knows every resource that the node offers."""
    args = {NAME: {"resources": [{"name": "cpu"}, {"name": "example.com/new"}]}}
    harness = Harness(nodes=["n1", "n2"], args=args)
    wanted = pod(cpu=1, requests={"example.com/new": 1})
    expect(harness.explain(wanted)).pending()
    harness.add(node("n3", allocatable={"example.com/new": 4}), node("n4", allocatable={"example.com/new": 4}))

    expect(harness.explain(wanted)).best("n3", "n4")
    assert harness.complaints == []


@pytest.mark.parametrize(
    ("resources", "says"),
    [([{"name": "cpu", "weight": 2}], "must be 1"), ([{"name": "cpu"}, {"name": "cpu"}], "listed twice")],
)
def test_arguments_that_make_no_sense_are_named(resources: list[dict[str, Any]], says: str) -> None:
    problems = msgspec.convert({"resources": resources}, NodeResourcesBalancedAllocation.Args).validate()

    assert any(says in problem for problem in problems)
