"""Pods that are pinned to one node by name, as those of a DaemonSet are: the short way decides as the long one does.

Where no extender is asked and nobody wants scores, one node is looked at and little besides. Everybody who has a say
is still heard, and what is said is the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from random import Random
from typing import Any

import numpy as np
import pytest
from tests.unit.loop.toys import preparing

from bayplan.api.node import Node
from bayplan.api.pod import Pod
from bayplan.cluster.axes import Int64N, Rows
from bayplan.framework import (
    CycleState,
    Depends,
    Error,
    NodeColumns,
    NodeInfo,
    Plugin,
    PodInfo,
    PreFilterResult,
    Skip,
    Status,
    Unresolvable,
    Unschedulable,
    Verdicts,
)
from bayplan.framework.times import Sampling
from bayplan.loop.decide import Decision
from bayplan.plugins.intree.node_affinity import NodeAffinity
from bayplan.testing import Harness, node, node_term, pod, require_nodes

NODES = [node(f"n{i}", cpu=2, labels={"disk": "fast" if i % 2 else "slow"}) for i in range(4)]
TAINT = "dedicated=db:NoSchedule"


def pinned(name: str, to: str, **more: Any) -> Pod:
    return pod(name, **{"cpu": 1, "affinity": require_nodes(node_term(name=to)), **more})


def cluster(*plugins: type[Plugin], remember: bool = True, **more: Any) -> Harness:
    return Harness(**{"nodes": NODES, "plugins": plugins, "remember": remember, "always_score": False, **more})


def place(harness: Harness, item: Pod, **changes: Any) -> Decision:
    """Decide and, if a node is found, count the pod there."""
    info = harness.info(item)
    decision = harness.scheduler.decide(info, **changes)
    if decision.node_name:
        harness.scheduler.assume(info, decision.node_name)
    return decision


def told(decision: Decision, harness: Harness) -> dict[str, Any]:
    """All that anybody may learn from a decision, by names instead of rows."""
    names = harness.cluster.nodes.infos
    result = decision.nomination
    refused = [(status, sorted(str(names[row]) for row in rows.tolist())) for status, rows in decision.refused]
    return {
        "node": decision.node_name,
        "message": decision.message,
        "failure": decision.failure,
        "evaluated": decision.evaluated_nodes,
        "feasible": decision.feasible_nodes,
        "ties": decision.ties,
        "refused": refused,
        "absent": decision.absent,
        "plugins": decision.diagnosis.unschedulable_plugins if decision.diagnosis is not None else None,
        "nominated": None if result is None else (result.nominated_node_name, [pod.key for pod in result.victims]),
        "skipped": (decision.state.skip_filter, decision.state.reached),
    }


class Asked(Plugin):
    """Notes which nodes it was asked about; takes no other than `allowed`."""

    allowed: tuple[str, ...] = ("n0", "n1", "n2", "n3")

    def setup(self) -> None:
        self.asked: list[str] = []

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        self.asked.append(node.name)
        return None if node.name in self.allowed else Unschedulable("not here")


class AskedOfNodes(Asked):
    """The same, said to depend on node objects alone."""

    depends = Depends.NODE


class InColumns(Plugin):
    """Knows no single nodes."""

    def filter_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Verdicts:
        return Verdicts.reject(np.array([name == "n1" for name in nodes.names]), Unresolvable("not in a column"))


# Where the pods go


@pytest.mark.parametrize("remember", [True, False])
def test_each_pod_is_looked_at_on_its_own_node_alone(remember: bool) -> None:
    harness = cluster(Asked, remember=remember)
    decisions = [place(harness, pinned(f"p{i}", to)) for i, to in enumerate(["n2", "n0", "ghost", "n2", "n3"])]

    assert [decision.node_name for decision in decisions] == ["n2", "n0", "", "n2", "n3"]
    assert harness.plugin("Asked").asked == ["n2", "n0", "n2", "n3"]
    assert [decision.evaluated_nodes for decision in decisions] == [1, 1, 0, 1, 1]
    assert decisions[2].message.startswith(
        "0/4 nodes are available: 4 node(s) didn't satisfy plugin(s) [NodeAffinity]."
    )


def test_a_node_that_comes_and_one_that_goes_are_noticed() -> None:
    harness = cluster()
    before = place(harness, pinned("a", "late")).node_name
    harness.add(node("late"))
    there = place(harness, pinned("b", "late")).node_name
    harness.remove(node("late"))

    assert (before, there, place(harness, pinned("c", "late")).node_name) == ("", "late", "")


def test_a_taint_between_two_pods_keeps_the_second_away() -> None:
    harness = cluster()
    first = place(harness, pinned("a", "n1"))
    harness.add(node("n1", cpu=2, taints=[TAINT]))
    second, tolerant = place(harness, pinned("b", "n1")), place(harness, pinned("c", "n1", tolerations=[TAINT]))
    harness.add(NODES[1])

    assert (first.node_name, second.node_name, tolerant.node_name) == ("n1", "", "n1")
    assert [(status.plugin, rows.tolist()) for status, rows in second.refused] == [("TaintToleration", [1])]
    assert "1 node(s) had untolerated taint(s), 3 node(s) didn't satisfy plugin(s) [NodeAffinity]" in second.message
    assert second.diagnosis is not None
    assert second.diagnosis.unschedulable_plugins == {"NodeAffinity", "TaintToleration"}


def test_a_cordon_between_two_pods_keeps_the_second_away() -> None:
    harness = cluster()
    first = place(harness, pinned("a", "n1")).node_name
    harness.add(node("n1", cpu=2, unschedulable=True))
    second = place(harness, pinned("b", "n1"))
    harness.add(NODES[1])

    assert (first, second.node_name, place(harness, pinned("c", "n1")).node_name) == ("n1", "", "n1")
    assert "1 node(s) were unschedulable" in second.message


def test_a_node_fills_up() -> None:
    harness = cluster()
    decisions = [place(harness, pinned(f"p{i}", "n0")) for i in range(3)]

    assert [decision.node_name for decision in decisions] == ["n0", "n0", ""]
    assert "1 Insufficient cpu" in decisions[2].message


def test_what_else_the_pod_requires_must_hold_too() -> None:
    harness = cluster()
    fast = require_nodes(node_term({"disk": "fast"}, name="n0")), require_nodes(node_term({"disk": "fast"}, name="n1"))

    assert [place(harness, pinned(f"e{i}", "", affinity=rule)).node_name for i, rule in enumerate(fast)] == ["", "n1"]
    assert place(harness, pinned("s", "n0", node_selector={"disk": "fast"})).node_name == ""
    assert place(harness, pinned("t", "n0", node_selector={"disk": "slow"})).node_name == "n0"


# Who is heard


@pytest.mark.parametrize("plugin", [Asked, AskedOfNodes])
def test_a_plugin_that_changed_its_mind_and_was_told_to_forget_is_asked_again(plugin: type[Asked]) -> None:
    harness = cluster(plugin)
    first = place(harness, pinned("a", "n1")).node_name
    harness.plugin(plugin.name).allowed = ("n0",)
    harness.framework().forget(plugin.name)
    second = place(harness, pinned("b", "n1"))

    assert (first, second.node_name) == ("n1", "")
    assert "1 not here" in second.message


def test_a_filter_that_was_replaced_is_the_one_that_is_asked() -> None:
    harness = cluster(Asked)
    place(harness, pinned("a", "n1"))
    harness.plugin("Asked").filter = lambda state, pod, node: Unschedulable("another")

    assert "1 another" in place(harness, pinned("b", "n1")).message


def test_a_filter_that_answers_in_columns_is_heard() -> None:
    harness = cluster(InColumns)

    assert place(harness, pinned("a", "n0")).node_name == "n0"
    assert "1 not in a column" in place(harness, pinned("b", "n1")).message


def test_a_plugin_that_names_nodes_as_well_narrows_the_choice() -> None:
    harness = cluster(preparing("Mine", PreFilterResult(frozenset(("n0", "n1")))))
    kept, lost = place(harness, pinned("a", "n1")), place(harness, pinned("b", "n2"))

    assert kept.node_name == "n1"
    assert "node(s) didn't satisfy plugin(s) [Mine NodeAffinity] simultaneously" in lost.message


@pytest.mark.parametrize("remember", [True, False])
def test_a_plugin_that_skips_is_left_out_of_this_decision(remember: bool) -> None:
    harness = cluster(preparing("Mine", Skip(), rejects=True), remember=remember)
    decision = place(harness, pinned("a", "n1"))

    assert decision.node_name == "n1"
    assert "Mine" in decision.state.skip_filter


def test_a_filter_that_raises_ends_the_cycle_and_is_complained_about_once() -> None:
    class Raises(Plugin):
        def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
            raise RuntimeError("no")

    harness = cluster(Raises)
    decision = place(harness, pinned("a", "n1"))

    assert decision.node_name == ""
    assert decision.failure is not None
    assert decision.failure.message == 'running "Raises" filter plugin: RuntimeError: no'
    assert [(plugin, point) for plugin, point, _ in harness.complaints] == [("Raises", "filter")]


def test_a_filter_that_answers_with_an_error_ends_the_cycle() -> None:
    class Fails(Plugin):
        def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
            return Error("broken")

    failure = place(cluster(Fails), pinned("a", "n1")).failure

    assert failure is not None
    assert failure.message == 'running "Fails" filter plugin: broken'


def test_preemption_is_asked_where_room_is_short() -> None:
    harness = cluster(pods=[pod("small", cpu=2, node="n1", priority=0)])
    decision = place(harness, pinned("a", "n1", priority=100))

    assert decision.nomination is not None
    assert decision.nomination.nominated_node_name == "n1"
    assert [victim.name for victim in decision.nomination.victims] == ["small"]


# Nominated pods


@pytest.mark.parametrize("remember", [True, False])
def test_room_is_left_for_pods_that_are_nominated_to_the_node(remember: bool) -> None:
    waiting = [pod("waits", cpu=2, priority=10, nominated="n1")]
    harness = cluster(pods=waiting, remember=remember)
    less = harness.scheduler.decide(harness.info(pinned("a", "n1", priority=1)))
    more = harness.scheduler.decide(harness.info(pinned("b", "n1", priority=11)))
    elsewhere = harness.scheduler.decide(harness.info(pinned("c", "n2", priority=1)))

    assert (less.node_name, more.node_name, elsewhere.node_name) == ("", "n1", "n2")
    assert "1 Insufficient cpu" in less.message


def test_a_nomination_that_comes_or_goes_is_noticed() -> None:
    harness = cluster()
    item, waiting = pinned("a", "n1"), harness.info(pod("waits", cpu=2, priority=10, nominated="n1"))
    found = [harness.scheduler.decide(harness.info(item)).node_name]
    harness.scheduler.nominator.put(waiting)
    found.append(harness.scheduler.decide(harness.info(item)).node_name)
    harness.scheduler.nominator.drop(waiting.uid)
    found.append(harness.scheduler.decide(harness.info(item)).node_name)

    assert found == ["n1", "", "n1"]


def test_a_pod_that_is_nominated_elsewhere_goes_to_its_pin() -> None:
    assert place(cluster(), pinned("a", "n1", nominated="n2")).node_name == "n1"
    assert place(cluster(), pinned("a", "n1", nominated="n1")).node_name == "n1"


# Extenders, scores and times


class Refuses:
    def filter(self, pod: PodInfo, rows: Rows) -> tuple[Rows, list[tuple[Status, Rows]]]:
        return rows[:0], [(Unschedulable("no card"), rows)]

    def prioritize(self, pod: PodInfo, rows: Rows) -> Int64N | None:
        return None


def test_extenders_are_asked_about_the_node() -> None:
    decision = place(cluster(), pinned("a", "n1"), extenders=(Refuses(),))

    assert "1 no card" in decision.message
    assert decision.diagnosis is not None
    assert decision.diagnosis.unschedulable_plugins == {"NodeAffinity", "Extender"}


def test_a_plan_of_its_own_is_made_for_who_asks() -> None:
    harness = cluster()
    decisions = [place(harness, pinned(f"p{i}", f"n{i % 4}")) for i in range(5)]
    plans = [decision.plan for decision in decisions]

    assert len({id(decision.outline) for decision in decisions[2:]}) == 1
    assert [plan is decision.plan for plan, decision in zip(plans, decisions, strict=True)] == [True] * 5
    assert len({id(plan.evaluation) for plan in plans if plan is not None}) == 5


def test_scores_of_a_pinned_pod_are_those_of_its_node() -> None:
    harness = cluster()
    place(harness, pinned("a", "n0"))
    decision = place(harness, pinned("b", "n1"), always_score=True, explains=True)

    assert decision.node_name == "n1"
    assert decision.scores is not None
    assert decision.total > 0


def test_where_nobody_names_the_pin_all_nodes_are_looked_at() -> None:
    disabled = {"preFilter": {"disabled": [{"name": "NodeAffinity"}]}}
    kind = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    harness = cluster(config=kind | {"profiles": [{"schedulerName": "default-scheduler", "plugins": disabled}]})
    decisions = [place(harness, pinned(f"p{i}", f"n{i}")) for i in range(3)]

    assert [decision.node_name for decision in decisions] == ["n0", "n1", "n2"]
    assert [decision.evaluated_nodes for decision in decisions] == [4, 4, 4]


def test_a_measured_cycle_asks_and_times_the_plugin_that_names_the_pin() -> None:
    harness, ticks = cluster(), count()
    sampling = Sampling(draw=lambda: 0.5, monotonic=lambda: float(next(ticks)), share=1.0)
    place(harness, pinned("a", "n0"))
    decision = place(harness, pinned("b", "n1"), sampling=sampling)
    points = [(time.plugin, time.point) for time in decision.plugin_times]

    assert decision.node_name == "n1"
    assert points[:2] == [("NodeAffinity", "PreFilter"), ("NodeUnschedulable", "Filter")]
    assert ("NodeResourcesFit", "Filter") in points


# What a plugin promises


@pytest.mark.parametrize("remember", [True, False])
def test_a_plugin_that_names_pins_is_asked_for_them_only_where_nothing_is_remembered(remember: bool) -> None:
    class Names(NodeAffinity):
        name, names_pin, settles_by_kind = "NodeAffinity", True, True

        def setup(self) -> None:
            super().setup()
            self.asked = 0

        def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Status | PreFilterResult | None:
            self.asked += 1
            return super().pre_filter(state, pod, nodes)

    harness = cluster(Names, remember=remember)
    before = [place(harness, pinned(f"p{i}", f"n{i}")).node_name for i in range(3)]
    asked = harness.plugin("NodeAffinity").asked
    after = [place(harness, pinned(f"q{i}", f"n{i}")).node_name for i in range(3)]

    assert before == after == ["n0", "n1", "n2"]
    assert (harness.plugin("NodeAffinity").asked == asked) == remember


def test_the_promise_does_not_hold_for_a_method_that_replaces_the_one_it_was_made_of() -> None:
    class Elsewhere(NodeAffinity):
        name = "NodeAffinity"

        def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> PreFilterResult:
            return PreFilterResult(frozenset(("n3",)))

    assert NodeAffinity.names_pin
    assert not Elsewhere.names_pin
    assert "[NodeAffinity]" in place(cluster(Elsewhere), pinned("a", "n1")).message


# The same as ever


def changes(seed: int) -> Iterator[Node | Pod]:
    """What may happen: pods with pins, other pods, and nodes that get taints, cordons, other labels, or go and come."""
    random = Random(seed)
    for number in range(60):
        name = f"n{random.randrange(5)}"
        if random.random() < 0.25:
            taints, cordoned = [TAINT] * (random.random() < 0.4), random.random() < 0.3
            yield node(name, cpu=3, taints=taints, unschedulable=cordoned, labels={"disk": random.choice(["a", "b"])})
        elif random.random() < 0.3:
            yield pod(f"f{number}", cpu=1, priority=random.choice([0, 5]))
        else:
            tolerations = [TAINT] * (random.random() < 0.5)
            term = node_term({"disk": "a"} if random.random() < 0.3 else None, name=name)
            rule, priority = require_nodes(term), random.choice([0, 0, 5])
            yield pinned(f"p{number}", name, tolerations=tolerations, affinity=rule, priority=priority)


@pytest.mark.parametrize("seed", range(8))
def test_the_short_way_the_long_way_and_no_memory_decide_alike(seed: int) -> None:
    short, forgetful, long = cluster(), cluster(remember=False), cluster()
    for item in changes(seed):
        if isinstance(item, Node):
            for harness in (short, forgetful, long):
                harness.add(item)
            continue
        told_by = [told(place(harness, item), harness) for harness in (short, forgetful)]
        scored = told(place(long, item, always_score=item.name.startswith("p")), long)

        assert told_by[0] == told_by[1]
        if item.name.startswith("p"):
            assert told_by[0] == scored
