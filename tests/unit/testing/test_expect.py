"""Expectations: what fails shows the whole table."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bayplan.testing import Harness, Outcome, expect, node, pod, verdict_table
from bayplan.testing.expect import Expectation


@pytest.fixture
def scheduled() -> Outcome:
    nodes = [node("n1"), node("n2", cpu=1), node("n3", taints=["k=v:NoSchedule"])]
    return Harness(nodes=nodes).schedule(pod("web", cpu=2, memory="1Gi"))


@pytest.fixture
def pending() -> Outcome:
    return Harness(nodes=["n1"], pods=[pod("old", cpu=3, node="n1")]).schedule(pod("new", cpu=3, priority=5))


def test_what_holds_can_be_chained(scheduled: Outcome, pending: Outcome) -> None:
    expect(scheduled).scheduled().scheduled_on("n1", "n4").best("n1").accepted("n1").rejected("n2", "n3").message("")
    expect(scheduled).rejected_because("Insufficient cpu").rejected_because(
        "node(s) had untolerated taint(s)", on="n3", by="TaintToleration"
    )
    expect(scheduled).skipped("InterPodAffinity").scores("ImageLocality", {"n1": 0})
    expect(pending).pending().preempts(["old"], on="n1").message_says("Insufficient cpu")
    assert expect(scheduled).total("n1") == scheduled.totals["n1"]
    assert expect(scheduled).score("TaintToleration", "n1") == 100
    assert expect(scheduled).score("InterPodAffinity", "n1") == 0


@pytest.mark.parametrize(
    ("check", "says"),
    [
        (lambda e: e.scheduled_on("n2"), "expected the pod on `n2`"),
        (lambda e: e.pending(), "expected the pod to stay pending"),
        (lambda e: e.failed("boom"), "expected a failure that says `boom`"),
        (lambda e: e.best("n2"), "they are `n1`"),
        (lambda e: e.message("other"), "expected the message"),
        (lambda e: e.message_says("other"), "expected `other` in the message"),
        (lambda e: e.rejected("n2"), "expected exactly `n2` to be rejected"),
        (lambda e: e.accepted("n3"), "expected `n3` to be accepted"),
        (lambda e: e.rejected_because("Insufficient cpu", on="n3"), "on `n3` because `Insufficient cpu`"),
        (lambda e: e.rejected_because("Insufficient cpu", by="NodeName"), "by NodeName"),
        (lambda e: e.scores("ImageLocality", {"n1": 3}), "it scored {'n1': 0}"),
        (lambda e: e.score("ImageLocality", "n2"), "was not scored"),
        (lambda e: e.score("Nobody", "n1"), "no plugin `Nobody` scores"),
        (lambda e: e.total("n2"), "was not scored"),
        (lambda e: e.skipped("TaintToleration"), "to skip scoring"),
        (lambda e: e.preempts(["x"]), "expected the victims `default/x`"),
        (lambda e: e.held_by("Gang"), "held by `Gang`"),
    ],
)
def test_what_does_not_hold_shows_the_table(
    scheduled: Outcome, check: Callable[[Expectation], object], says: str
) -> None:
    with pytest.raises(AssertionError) as caught:
        check(expect(scheduled))

    text = str(caught.value)
    assert says in text
    assert verdict_table(scheduled) in text


def test_a_pod_that_should_have_been_scheduled_shows_why_not(pending: Outcome) -> None:
    with pytest.raises(AssertionError, match="Insufficient cpu"):
        expect(pending).scheduled()


def test_the_table_has_a_line_for_every_node(scheduled: Outcome, pending: Outcome) -> None:
    lines = verdict_table(scheduled).splitlines()

    assert lines[0] == "pod `default/web` goes to `n1`"
    assert lines[1].split()[:4] == ["node", "total", "TaintToleration", "×3"]
    assert lines[2].split()[:3] == ["→", "n1", str(scheduled.totals["n1"])]
    assert lines[3].endswith("NodeResourcesFit: Insufficient cpu (UnschedulableAndUnresolvable)")
    assert lines[4].endswith("TaintToleration: node(s) had untolerated taint(s) (UnschedulableAndUnresolvable)")
    assert "preemption makes room on `n1`" in verdict_table(pending)


def test_a_long_table_is_cut() -> None:
    outcome = Harness(nodes=[f"n{number}" for number in range(50)]).explain(pod())
    lines = verdict_table(outcome).splitlines()

    assert lines[-1] == "  and 20 more"
    assert "that tie" in lines[0]


def test_a_failure_is_told_apart_from_pending() -> None:
    outcome = Harness().schedule(pod())

    assert "was not decided on" in verdict_table(outcome)
    with pytest.raises(AssertionError):
        expect(outcome).pending()
