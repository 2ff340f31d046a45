"""Pods that differ in the node they are pinned to, or in the names of their claims, are of one kind."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from bayplan.api.pod import Affinity, Pod
from bayplan.cluster.resources import ResourceAxis
from bayplan.cluster.shapes import ShapeTable
from bayplan.testing import Harness, node, pod

NODES = [node(f"n{i}", cpu=4, labels={"disk": "fast" if i % 2 else "slow"}) for i in range(4)]


def pinned(name: str, to: str, **more: Any) -> Pod:
    field = {"key": "metadata.name", "operator": "In", "values": [to]}
    terms = {"nodeSelectorTerms": [{"matchFields": [field], **more}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    plain = pod(name, cpu=1)
    spec = msgspec.structs.replace(plain.spec, affinity=msgspec.convert(affinity, Affinity))
    return msgspec.structs.replace(plain, spec=spec)


@pytest.mark.parametrize("remember", [True, False])
def test_each_pod_goes_to_the_node_it_is_pinned_to(remember: bool) -> None:
    harness = Harness(nodes=NODES, remember=remember)

    placed = [harness.schedule(pinned(f"p{i}", f"n{i % 4}")).node_name for i in range(12)]

    assert placed == [f"n{i % 4}" for i in range(12)]


def test_pins_share_a_kind_unless_something_else_differs() -> None:
    harness = Harness(nodes=NODES)
    expression = {"key": "disk", "operator": "In", "values": ["fast"]}
    one, other = harness.info(pinned("a", "n0")).shape, harness.info(pinned("b", "n1")).shape
    fast = harness.info(pinned("c", "n1", matchExpressions=[expression])).shape
    free = harness.info(pod("d", cpu=1)).shape

    assert (one.pinned_to, other.pinned_to, free.pinned_to) == ("n0", "n1", "")
    assert one is not other
    assert one.kind == other.kind
    assert len({one.kind, fast.kind, free.kind}) == 3


def test_a_shape_with_another_pin_is_as_if_it_had_been_made_alone() -> None:
    expression = {"key": "disk", "operator": "In", "values": ["fast"]}
    pods = [pinned("a", "n0", matchExpressions=[expression]), pinned("b", "n1", matchExpressions=[expression])]
    table = ShapeTable(ResourceAxis())
    first, other = (table.shape_of(each) for each in pods)
    alone = ShapeTable(ResourceAxis()).shape_of(pods[1])

    assert other.number != first.number
    assert other.template_number == first.template_number
    assert other.spec == pods[1].spec
    assert other.spec.containers is first.spec.containers
    names = ("usage", "requests", "required_nodes", "pinned_to", "kind", "readable_terms", "labels", "priority")
    for name in (*names, "requires_pin_alone"):
        assert getattr(other, name) == getattr(alone, name)


def test_a_shape_knows_whether_its_pin_is_all_that_it_requires() -> None:
    table, expression = ShapeTable(ResourceAxis()), {"key": "disk", "operator": "In", "values": ["fast"]}
    first, other = (table.shape_of(pinned(name, f"n-{name}")) for name in ("a", "b"))
    selecting = pinned("c", "n0")
    selecting.spec.node_selector = {"disk": "fast"}
    unreadable = pinned("d", "n0", matchExpressions=[{"key": "disk", "operator": "Near", "values": ["fast"]}])
    more = [pinned("e", "n0", matchExpressions=[expression]), selecting, unreadable, pod("f")]

    assert first.requires_pin_alone
    assert other.requires_pin_alone
    assert other.required_nodes.matches({}, "n-b")
    assert not other.required_nodes.matches({}, "n-a")
    assert not any(table.shape_of(each).requires_pin_alone for each in more)


def test_pins_of_other_labels_are_another_template() -> None:
    table = ShapeTable(ResourceAxis())
    first = table.shape_of(pinned("a", "n0"))
    labelled = pinned("a", "n0")
    labelled.metadata.labels = {"app": "web"}
    other = table.shape_of(labelled)

    assert other.labels == {"app": "web"}
    assert other.template_number != first.template_number
    assert other.required_nodes == first.required_nodes


def test_a_plan_that_pins_share_keeps_their_evaluations_apart() -> None:
    harness = Harness(nodes=NODES)
    infos = [harness.info(pinned(f"p{i}", f"n{i % 4}")) for i in range(6)]

    decisions = [harness.scheduler.decide(info, always_score=True) for info in infos]

    assert [decision.node_name for decision in decisions] == [f"n{i % 4}" for i in range(6)]
    plans = [decision.plan for decision in decisions]
    assert len({id(plan.outline) for plan in plans[2:] if plan is not None}) == 1
    assert len({id(plan.evaluation) for plan in plans if plan is not None}) == 6


def test_a_pin_and_an_expression_must_both_hold() -> None:
    harness = Harness(nodes=NODES)
    expression = {"key": "disk", "operator": "In", "values": ["fast"]}
    pods = [pinned(f"p{i}", f"n{i % 4}", matchExpressions=[expression]) for i in range(8)]

    assert [harness.schedule(each).node_name for each in pods] == ["", "n1", "", "n3"] * 2


def test_a_pin_to_a_node_that_is_not_there_says_so() -> None:
    harness = Harness(nodes=NODES)
    harness.schedule(pinned("a", "n0"))
    outcome = harness.schedule(pinned("b", "ghost"))

    assert outcome.node_name == ""
    assert "4 node(s) didn't satisfy plugin(s) [NodeAffinity]" in outcome.message


def test_names_of_claims_make_shapes_and_no_kinds() -> None:
    harness = Harness(nodes=NODES)
    one, other = harness.info(pod("a", volumes=["x"])).shape, harness.info(pod("b", volumes=["y"])).shape
    none = harness.info(pod("c")).shape

    assert one is not other
    assert one.kind == other.kind != none.kind
