"""The decision: phases in order, what each may do, and what is said when nothing fits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.unit.loop.toys import preparing

from bayplan.cluster.axes import Int64N, Rows
from bayplan.framework import (
    CycleState,
    Error,
    NodeColumns,
    NodeInfo,
    Pending,
    Plugin,
    PodInfo,
    PostFilterResult,
    PreFilterResult,
    Skip,
    StateKey,
    Status,
    Unresolvable,
    Unschedulable,
)
from bayplan.framework.runtime.call import PluginFailure
from bayplan.loop.decide import Decision
from bayplan.testing import HOSTNAME, Harness, Outcome, expect, near, node, node_term, pod, require_nodes


def alone(*plugins: type[Plugin], nodes: int = 3) -> Harness:
    """Only these plugins, on a few equal nodes."""
    return Harness(nodes=[f"n{i}" for i in range(1, nodes + 1)], plugins=plugins, default_plugins=False)


def filtering(name: str, status: Status, *names: str) -> type[Plugin]:
    """A plugin that answers with the status for some nodes."""

    def answer(self: Plugin, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        return status if node.name in names else None

    return type(name, (Plugin,), {"filter": answer})


# PreFilter


def test_skip_leaves_the_filter_of_that_plugin_out() -> None:
    expect(alone(preparing("A", Skip(), rejects=True)).schedule(pod())).scheduled()
    expect(alone(preparing("A", None, rejects=True)).schedule(pod())).pending()


def test_unresolvable_ends_prefilter_at_once() -> None:
    outcome = alone(preparing("A", Unresolvable("never")), preparing("B", Unresolvable("unheard"))).schedule(pod())

    expect(outcome).pending().message("0/3 nodes are available: never.")
    assert outcome.unschedulable_plugins == {"A"}


def test_unschedulable_lets_the_other_prefilters_speak_and_the_last_is_heard() -> None:
    outcome = alone(preparing("A", Unschedulable("one")), preparing("B", Unschedulable("two"))).schedule(pod())

    expect(outcome).pending().message("0/3 nodes are available: two.")


def test_any_other_answer_of_prefilter_is_an_error() -> None:
    expect(alone(preparing("A", Pending("hm"))).schedule(pod())).failed('running PreFilter plugin "A": hm')
    expect(alone(preparing("A", Error("boom"))).schedule(pod())).failed('running PreFilter plugin "A": boom')


def test_named_nodes_are_the_only_ones_looked_at() -> None:
    named = preparing("A", PreFilterResult(frozenset({"n1", "n2", "ghost"})))
    outcome = alone(named, filtering("B", Unschedulable("full"), "n1")).schedule(pod())

    expect(outcome).scheduled_on("n2")
    expect(outcome).rejected_because("full", on="n1", by="B")
    expect(outcome).rejected_because("node(s) didn't satisfy plugin(s) [A]", on="n3", by="")


def test_restrictions_add_up() -> None:
    one = preparing("A", PreFilterResult(frozenset({"n1", "n2"})))
    other = preparing("B", PreFilterResult(frozenset({"n2", "n3"})))

    expect(alone(one, other).schedule(pod())).scheduled_on("n2")


def test_restrictions_that_leave_nothing_are_a_rejection() -> None:
    one = preparing("B", PreFilterResult(frozenset({"n1"})))
    other = preparing("A", PreFilterResult(frozenset({"n2"})))

    message = "0/3 nodes are available: node(s) didn't satisfy plugin(s) [A B] simultaneously."
    outcome = alone(one, other).schedule(pod())
    expect(outcome).pending().message(message)
    assert outcome.unschedulable_plugins == {"A", "B"}
    expect(alone(preparing("A", PreFilterResult(frozenset()))).schedule(pod())).message(
        "0/3 nodes are available: node(s) didn't satisfy plugin A."
    )


def test_names_of_nodes_that_are_not_there_leave_every_node_absent() -> None:
    harness = Harness(nodes=[f"n{i}" for i in range(8)])
    outcome = harness.schedule(pod(affinity=require_nodes(node_term(name="ghost"))))

    expect(outcome).message(
        "0/8 nodes are available: 8 node(s) didn't satisfy plugin(s) [NodeAffinity]. no new claims to deallocate, "
        "preemption: 0/8 nodes are available: 8 Preemption is not helpful for scheduling."
    )
    assert outcome.unschedulable_plugins == {"NodeAffinity"}


# Filter


def test_the_first_plugin_that_rejects_a_node_is_the_one_that_is_named() -> None:
    outcome = alone(
        filtering("A", Unschedulable("first"), "n1"), filtering("B", Unresolvable("second"), "n1", "n2")
    ).schedule(pod())

    expect(outcome).rejected_because("first", on="n1", by="A").rejected_because("second", on="n2", by="B")
    expect(outcome).scheduled_on("n3")


def test_an_error_on_any_node_ends_the_cycle() -> None:
    outcome = alone(filtering("A", Error("boom"), "n2")).schedule(pod())

    expect(outcome).failed('running "A" filter plugin: boom')


def test_pending_is_a_rejection_that_is_remembered_apart() -> None:
    harness = alone(filtering("A", Pending("soon"), "n1", "n2", "n3"))
    decision = harness.scheduler.decide(harness.info(pod()))
    assert decision.diagnosis is not None

    assert decision.diagnosis.pending_plugins == {"A"}
    assert decision.diagnosis.unschedulable_plugins == {"A"}


# Score


class Raises(Plugin):
    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        raise RuntimeError("no idea")


class TooHigh(Plugin):
    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return 101


class RefusesPreScore(Raises):
    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Status:
        return Unschedulable("no")


class SkipsScore(Raises):
    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Status:
        return Skip()


def test_scores_that_fail_end_the_cycle() -> None:
    expect(alone(Raises).schedule(pod())).failed('running Score plugins: plugin "Raises" failed with: RuntimeError')
    expect(alone(TooHigh).schedule(pod())).failed(
        'running Score plugins: plugin "TooHigh" returns an invalid score 101, '
        "it should in the range of [0, 100] after normalizing"
    )
    expect(alone(RefusesPreScore).schedule(pod())).failed('running PreScore plugin "RefusesPreScore": no')


def test_a_score_that_is_skipped_is_not_asked() -> None:
    expect(alone(SkipsScore).schedule(pod())).scheduled().skipped("SkipsScore")


def test_one_feasible_node_is_taken_without_scoring() -> None:
    harness = Harness(nodes=["n1"], plugins=[Raises], default_plugins=False, always_score=False)

    expect(harness.schedule(pod())).scheduled_on("n1")


def test_without_scores_every_feasible_node_ties() -> None:
    expect(alone().schedule(pod())).best("n1", "n2", "n3")


# Nominations


def test_a_nominated_node_is_tried_first_and_alone() -> None:
    harness = Harness(nodes=[node("n1", cpu=1), node("n2", cpu=64)])
    decision = harness.scheduler.decide(harness.info(pod(cpu=1, nominated="n1")))

    assert decision.node_name == "n1"
    assert decision.evaluated_nodes == 1


@pytest.mark.parametrize("nominated", ["n1", "ghost"])
def test_a_nomination_that_no_longer_fits_is_passed_over(nominated: str) -> None:
    harness = Harness(nodes=[node("n1", cpu=1), node("n2", cpu=64)])

    expect(harness.schedule(pod(cpu=2, nominated=nominated))).scheduled_on("n2")


@pytest.mark.parametrize(("priority", "fits"), [(6, True), (5, False), (4, False)])
def test_room_is_left_for_nominated_pods_of_no_lower_priority(priority: int, fits: bool) -> None:
    waiting = pod("waiting", cpu=3, priority=5, nominated="n1")
    outcome = Harness(nodes=["n1"], pods=[waiting]).schedule(pod(cpu=2, priority=priority))

    assert outcome.is_scheduled is fits


def test_a_pod_does_not_stand_in_its_own_way() -> None:
    waiting = pod("waiting", cpu=3, priority=5, nominated="n1")

    expect(Harness(nodes=["n1"], pods=[waiting]).schedule(waiting)).scheduled_on("n1")


def test_a_node_must_fit_without_its_nominated_pods_too() -> None:
    """A partner that is only nominated does not make affinity true."""
    partner = pod("partner", labels={"app": "db"}, priority=5, nominated="n1")
    outcome = Harness(nodes=["n1"], pods=[partner]).schedule(pod(affinity=near(HOSTNAME, {"app": "db"})))

    expect(outcome).pending().rejected_because("node(s) didn't match pod affinity rules", on="n1")


# PostFilter


def posting(name: str, answer: Any) -> type[Plugin]:
    def post_filter(self: Plugin, state: CycleState, pod: PodInfo, diagnosis: object) -> Any:
        return answer

    return type(name, (Plugin,), {"post_filter": post_filter})


def refused_with(*plugins: type[Plugin]) -> Outcome:
    return alone(filtering("F", Unschedulable("full"), "n1", "n2", "n3"), *plugins).schedule(pod())


def test_what_postfilters_say_ends_the_message() -> None:
    outcome = refused_with(posting("A", Unschedulable("tried this")), posting("B", Unschedulable("and that")))

    expect(outcome).message("0/3 nodes are available: 3 full. tried this, and that")


def test_the_first_nomination_ends_it_and_says_nothing() -> None:
    outcome = refused_with(
        posting("A", Unschedulable("no")), posting("B", PostFilterResult("n2")), posting("C", Error())
    )

    expect(outcome).message("0/3 nodes are available: 3 full.")
    assert outcome.nominated_node == "n2"


def test_an_unresolvable_or_failing_postfilter_ends_it() -> None:
    never = refused_with(posting("A", Unresolvable("never")), posting("B", PostFilterResult("n2")))
    failing = refused_with(posting("A", Error("boom")), posting("B", PostFilterResult("n2")))

    expect(never).message("0/3 nodes are available: 3 full. never")
    expect(failing).message("0/3 nodes are available: 3 full. boom")
    assert never.nominated_node == failing.nominated_node == ""


def test_without_postfilters_a_nomination_is_cleared() -> None:
    harness = alone(filtering("F", Unschedulable("full"), "n1", "n2", "n3"))
    decision = harness.scheduler.decide(harness.info(pod()))
    assert decision.nomination is not None

    assert decision.nomination.nominated_node_name == ""


def test_an_empty_cluster_asks_nobody() -> None:
    decision = Harness().scheduler.decide(Harness().info(pod()))
    assert decision.failure is not None

    assert decision.message == "no nodes available to schedule pods"
    assert decision.diagnosis is None
    assert decision.failure.is_rejected


# Samples and extenders


def test_a_sample_looks_at_as_many_nodes_as_asked_and_moves_on() -> None:
    harness = Harness(nodes=[f"n{i:03}" for i in range(400)])
    decider = harness.scheduler.deciders["default-scheduler"]
    seen = []
    for number in range(4):
        decision = harness.scheduler.decide(harness.info(pod(f"p{number}")), percentage_of_nodes_to_score=25)
        seen.append((decision.feasible_nodes, decider.search.next_start))

    assert seen == [(100, 100), (100, 200), (100, 300), (100, 0)]


class Half:
    """An extender that lets every other node pass and likes one of them."""

    def __init__(self, likes: int | None = None) -> None:
        self.likes = likes

    def filter(self, pod: PodInfo, rows: Rows) -> tuple[Rows, list[tuple[Status, Rows]]]:
        return rows[rows % 2 == 0], [(Unschedulable("odd"), rows[rows % 2 == 1])]

    def prioritize(self, pod: PodInfo, rows: Rows) -> Int64N | None:
        return None if self.likes is None else np.where(rows == self.likes, 1000, 0)


class Nothing(Half):
    def filter(self, pod: PodInfo, rows: Rows) -> tuple[Rows, list[tuple[Status, Rows]]]:
        return rows[:0], [(Unschedulable("none"), rows)]


class Broken(Half):
    def filter(self, pod: PodInfo, rows: Rows) -> tuple[Rows, list[tuple[Status, Rows]]]:
        raise PluginFailure(Error("unreachable"))


def with_extender(extender: Half, **spec: Any) -> Decision:
    harness = Harness(nodes=[f"n{i}" for i in range(6)])
    return harness.scheduler.decide(harness.info(pod(**spec)), extenders=(extender,))


def test_extenders_filter_and_add_to_totals() -> None:
    decision = with_extender(Half(likes=4))

    assert decision.node_name == "n4"
    assert decision.feasible_nodes == 3
    assert [status.message for status, _ in decision.refused] == ["odd"]


def test_an_extender_that_refuses_every_node_is_to_blame() -> None:
    decision = with_extender(Nothing())
    assert decision.diagnosis is not None

    assert decision.message.startswith("0/6 nodes are available: 6 none.")
    assert decision.diagnosis.unschedulable_plugins == {"Extender"}


def test_an_extender_is_asked_about_the_nominated_node_too() -> None:
    assert with_extender(Half(), nominated="n2").node_name == "n2"
    assert with_extender(Half(likes=4), nominated="n1").node_name == "n4"


def test_an_extender_that_fails_ends_the_cycle() -> None:
    decision = with_extender(Broken())
    assert decision.failure is not None

    assert decision.failure.message == "unreachable"


def test_a_decider_is_a_value() -> None:
    decider = Harness(nodes=["n1"]).scheduler.deciders["default-scheduler"]

    assert replace(decider, explains=True).framework is decider.framework


class FailsOnFirst(Plugin):
    """Cannot tell about one node."""

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        if node.name == "n1" and not state.get(_TRIED):
            state.put(_TRIED, True)
            raise RuntimeError("no answer")
        return None


_TRIED = StateKey[bool]("test/tried")


def test_an_error_on_the_nominated_node_leads_to_the_full_search() -> None:
    harness = Harness(nodes=[node("n1"), node("n2")], plugins=[FailsOnFirst])

    assert harness.scheduler.decide(harness.info(pod(nominated="n1"))).is_scheduled
