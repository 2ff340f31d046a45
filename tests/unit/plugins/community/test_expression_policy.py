"""ExpressionPolicy: what expressions see, how they reject and score, and what is checked when they are loaded."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from bayplan.config.errors import ConfigError
from bayplan.framework import UNSIGNED, CycleState, Depends, NodeColumns
from bayplan.plugins.community.expression_policy import ExpressionPolicy, ExpressionPolicyArgs, Filter, Score
from bayplan.testing import Harness, expect, node, pod
from bayplan.testing.contract import PluginContract

NAME = "ExpressionPolicy"


def harness(nodes: list[Any], **args: object) -> Harness:
    return Harness(nodes=nodes, plugins=[ExpressionPolicy], args={NAME: args})


def plugin(*filters: str, scores: tuple[str, ...] = ()) -> ExpressionPolicy:
    rules = [Filter(expression=each) for each in filters]
    return ExpressionPolicy(ExpressionPolicyArgs(filters=rules, scores=[Score(expression=each) for each in scores]))


def test_a_node_that_does_not_satisfy_the_expression_is_rejected_with_the_reason_given() -> None:
    rule = {"expression": 'node.labels[?"tier"].orValue("") == pod.labels[?"tier"].orValue("")', "reason": "wrong tier"}
    tested = harness([node("a", labels={"tier": "gold"}), node("b")], filters=[rule])

    expect(tested.explain(pod("p", labels={"tier": "gold"}))).accepted("a")
    expect(tested.explain(pod("p", labels={"tier": "gold"}))).rejected_because("wrong tier", on="b")


def test_an_expression_without_a_value_rejects_and_says_why() -> None:
    tested = harness([node("a")], filters=[{"expression": 'node.labels.zone == "x"', "reason": "zone"}])

    expect(tested.explain(pod("p"))).rejected_because("zone: no such key: zone", on="a")


def test_scores_are_weighted_means_within_bounds() -> None:
    shares = [
        {"expression": 'int(node.labels[?"rank"].orValue("0"))', "weight": 3},
        {"expression": "node.labels.missing == '' ? 1.0 : 2.0"},
    ]
    tested = harness([node("a", labels={"rank": "40"}), node("b", labels={"rank": "4000"})], scores=shares)

    expect(tested.explain(pod("p"))).scores(NAME, {"a": 30, "b": 75})


def test_amounts_are_quantities() -> None:
    rule = 'node.allocatable["cpu"].sub(node.requested["cpu"]).sub(pod.requests["cpu"]).compareTo(quantity("1")) >= 0'
    tested = harness([node("a", cpu="2"), node("b", cpu="4")], filters=[{"expression": rule, "reason": "full"}])

    expect(tested.explain(pod("p", cpu="2"))).accepted("b")
    expect(tested.explain(pod("p", cpu="2"))).rejected_because("full", on="a")


def test_taints_tolerations_and_owners_are_seen() -> None:
    rule = "node.taints.all(t, pod.tolerations.exists(o, o.key == t.key)) && pod.ownerKind == '' && !node.unschedulable"
    tested = harness([node("a", taints=["dedicated=x:NoSchedule"]), node("b")], filters=[{"expression": rule}])

    expect(tested.explain(pod("p"))).accepted("b")


def test_answers_are_kept_as_long_as_what_the_expressions_read_stays_the_same() -> None:
    assert plugin("node.labels.a == 'x'").filter_depends is Depends.NODE
    assert plugin("node.pods < 3").filter_depends is Depends.USE
    assert plugin("node.labels.a == 'x'", scores=("node.pods",)).score_depends is Depends.USE
    assert plugin("cel.bind(n, node, n.pods < 3)").filter_depends is Depends.USE


def test_pods_share_answers_that_do_not_depend_on_them() -> None:
    tested = Harness(nodes=["a"], plugins=[])
    first = tested.info(pod("p", labels={"x": "1"}))

    assert plugin("node.name == 'a'").sign(first) == ()
    assert plugin("pod.labels.x == '1'").sign(first) == first.shape.number
    assert plugin("pod.name == 'p'").sign(first) is UNSIGNED


def test_nodes_that_an_expression_cannot_tell_apart_are_evaluated_once() -> None:
    tested = Harness(nodes=[node(f"n{i}", labels={"tier": "gold" if i % 2 else "tin"}) for i in range(50)], plugins=[])
    policy = plugin('node.labels.tier == "gold" && !("spot" in node.labels) && node.taints.size() == 0')
    evaluated: list[str] = []
    policy.filter = lambda state, pod, node: evaluated.append(node.name)  # type: ignore[method-assign]  # counts calls

    policy.filter_nodes(CycleState(), tested.info(pod("p")), NodeColumns(tested.cluster.nodes))

    assert len(evaluated) == 2


def test_rows_without_a_node_are_left_out() -> None:
    for expression in ('node.labels.tier == "gold"', 'node.name != "c"'):
        nodes = [node(name, labels={"tier": "gold"}) for name in "abc"]
        tested = harness(nodes, filters=[{"expression": expression}], scores=[{"expression": "7"}])
        tested.remove(nodes[1])

        expect(tested.explain(pod("p"))).accepted("a").scores(
            NAME, {"a": 7} | ({"c": 7} if "tier" in expression else {})
        )


class TestNodeObjects(PluginContract):
    """Expressions that read node objects and shapes of pods."""

    plugin = ExpressionPolicy
    args: ClassVar = {
        "filters": [{"expression": 'node.labels[?"tier"].orValue("x") == pod.labels[?"tier"].orValue("x")'}],
        "scores": [{"expression": "size(node.name) * 10"}],
    }


class TestUse(PluginContract):
    """Expressions that read what runs on nodes and who the pod is."""

    plugin = ExpressionPolicy
    args: ClassVar = {
        "filters": [{"expression": 'node.pods < 2 || pod.name.startsWith("a") || "keep" in pod.annotations'}],
        "scores": [{"expression": 'node.requested["cpu"].asApproximateFloat() * 10.0'}],
    }


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ({"filters": [{"expression": "node.nope"}]}, "filters[0].expression: compilation failed: ERROR: <input>:1:5"),
        ({"filters": [{"expression": "1"}]}, "filters[0].expression: must be bool, not int"),
        ({"scores": [{"expression": "'a'"}]}, "scores[0].expression: must be int or uint or double, not string"),
        ({"scores": [{"expression": "1", "weight": 0}]}, "scores[0].weight: must be 1 to 1000, not 0"),
        ({"filters": [{"expression": "true", "reason": ""}]}, "filters[0].reason: must not be empty"),
    ],
)
def test_expressions_are_checked_when_they_are_loaded(args: dict[str, object], expected: str) -> None:
    with pytest.raises(ConfigError) as raised:
        harness(["a"], **args)
    assert expected in str(raised.value)
