"""Explanations on a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterable
from io import StringIO

import pytest
from rich.console import Console, RenderableType
from tests.unit.explain.stage import raw_pod, staged

from bayplan.explain.model import (
    Changes,
    Decided,
    NodeExplanation,
    Now,
    PendingBoard,
    PendingCause,
    PendingHere,
    Placement,
    PodExplanation,
    QueueState,
    Suggestion,
    Waiting,
    WhatIf,
    decided_of,
)
from bayplan.explain.offline.evaluating import Evaluator
from bayplan.explain.terminal.explanations import (
    draw_best_change,
    draw_changes,
    draw_evaluated,
    draw_node,
    draw_pending,
    draw_pod,
    draw_summary,
)
from bayplan.explain.terminal.whatif import draw_whatif
from bayplan.explain.whatif.scenario import Scenario
from bayplan.loop.record import (
    CandidateKey,
    DecisionRecord,
    Preemption,
    Refused,
    Step,
    Victim,
)
from bayplan.testing import Harness, node, pod


def text_of(pieces: Iterable[RenderableType], *, width: int = 140) -> str:
    console = Console(width=width, record=True, file=open("/dev/null", "w"))  # noqa: SIM115 - closed with the console
    for piece in pieces:
        console.print(piece)
    console.file.close()
    return console.export_text()


async def test_everything_about_a_running_cluster_can_be_drawn() -> None:
    async with staged() as stage:
        await stage.create(raw_pod("web"), raw_pod("big", cpu="900"))
        await stage.settled(bound=1, failed=1)
        service = stage.explaining.service
        placed, pending = service.explain_pod("default/web"), service.explain_pod("default/big")
        where = service.explain_node(placed.node)
        board = await service.pending(with_change=True)
        played = await service.whatif(Scenario(drain=[placed.node]))

    assert "default/web runs on" in text_of(draw_pod(placed))
    assert "NodeResourcesBalancedAllocation" in text_of(draw_pod(placed))
    assert "→ 0 after NodeResourcesFit" in text_of(draw_pod(pending))
    assert "refused by NodeResourcesFit" in text_of(draw_node(where))
    assert "1 of 1 pending pods would find a node if" in text_of(draw_best_change(board))
    assert "would stay pending" in text_of(draw_whatif(played))


async def test_what_took_time_now_stands_with_what_holds_now_and_under_no_pod_that_was_not_tried() -> None:
    async with staged() as stage:
        await stage.create(raw_pod("big", cpu="900"), raw_pod("held", schedulingGates=[{"name": "example.com/hold"}]))
        await stage.settled(failed=1)
        service = stage.explaining.service
        pending, held = text_of(draw_pod(service.explain_pod("default/big"))), service.explain_pod("default/held")

    assert pending.index("as it is now") < pending.index("worked out now in: PreFilter") < pending.index("attempt")
    assert "Filter" not in text_of(draw_pod(held))


def decided(**fields: object) -> Decided:
    head = {"number": 1, "time": 1.0, "pod": "a/b", "uid": "u", "profile": "p"}
    return decided_of(DecisionRecord(**{**head, **fields}))  # type: ignore[arg-type]


@pytest.mark.parametrize("state", ["placed", "pending", "held", "binding", "gone"])
def test_what_is_noted_beside_the_verdict_is_drawn(state: str) -> None:
    explanation = PodExplanation(pod="default/web", state=state, verdict="default/web.", note="Another was preempted.")

    assert "Another was preempted." in text_of(draw_pod(explanation))


def test_a_funnel_reads_from_many_to_one() -> None:
    steps = (Step(plugin="TaintToleration", rejected=790, left=4210), Step(plugin="Fit", rejected=4173, left=37))
    explanation = PodExplanation(pod="a/b", state="placed", verdict="v", node="n")
    explanation.decision = decided(node="n", nodes=5000, feasible=37, funnel=steps, chosen_by="points")
    text = text_of(draw_pod(explanation))

    assert "5,000 nodes → 4,210 after TaintToleration → 37 after Fit → 1 chosen" in text
    assert "decided 00:00:01 UTC" in text


def test_a_preemption_shows_victims_and_what_decided_between_nodes() -> None:
    preemption = Preemption(
        node="n",
        victims=(Victim(pod="a/low", priority=5),),
        victim_count=1,
        candidates=7,
        keys=(CandidateKey(key="number of victims", value=1, left=1),),
    )
    explanation = PodExplanation(pod="a/b", state="placed", verdict="v", node="n")
    explanation.decision = decided(node="n", preemption=preemption)
    text = text_of(draw_pod(explanation))

    assert "left n" in text and "a/low" in text
    assert "7 candidate nodes → 1 by number of victims" in text


def test_candidates_that_no_criterion_tells_apart_are_said_to_be_equal() -> None:
    keys = (
        CandidateKey(key="number of victims", value=1, left=3),
        CandidateKey(key="highest priority", value=0, left=2),
    )
    preemption = Preemption(node="n", victim_count=1, candidates=3, keys=keys)
    explanation = PodExplanation(pod="a/b", state="placed", verdict="v", node="n")
    explanation.decision = decided(node="n", preemption=preemption)

    assert "3 candidate nodes → 2 by highest priority, equal by every further criterion" in text_of(
        draw_pod(explanation)
    )


def test_the_way_through_the_queue_of_a_bound_pod_ends_with_its_binding() -> None:
    history = ((10.0, "active", "PodAdd"), (10.5, "in-flight", "Pop"))
    head = {"number": 1, "time": 10.5, "pod": "a/b", "uid": "u", "profile": "p", "history": history}
    bound = DecisionRecord(**head, outcome="bound", outcome_seconds=0.02)  # type: ignore[arg-type]
    under_way = DecisionRecord(**head)  # type: ignore[arg-type]
    explanations = [
        PodExplanation(pod="a/b", state="placed", verdict="v", attempts=[record]) for record in (bound, under_way)
    ]
    first, second = (" ".join(text_of(draw_pod(each)).split()) for each in explanations)

    assert "active 0.5 s (PodAdd) → in-flight 20 ms (Pop) → bound at 00:00:10" in first
    assert "in-flight since 00:00:10 (Pop)" in second


def test_the_zone_and_the_taints_of_a_node_are_named_as_such() -> None:
    found = NodeExplanation(node="n", verdict="v", zone="eu-1a", taints=["gpu:NoSchedule"])

    assert "zone eu-1a, taint gpu:NoSchedule" in text_of(draw_node(found))


def text_at(width: int, pieces: Iterable[RenderableType]) -> str:
    console = Console(width=width, file=StringIO(), force_terminal=False)
    for piece in pieces:
        console.print(piece)
    return console.file.getvalue()  # type: ignore[attr-defined]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_word_of_a_table_is_cut_off_or_broken(width: int) -> None:
    """Rich cuts off what a column of a minimal width has too much."""
    reason = "pre-filter pod allreduce-0 cannot find enough sibling pods, current pods number: 6, minMember of group: 8"
    here = PendingHere(pod="ml/allreduce-0", count=6, fits=False, plugin="NodeResourcesFit", reasons=[reason])
    record = DecisionRecord(
        number=1, time=1.0, pod="ml/allreduce-5", uid="u", profile="p", outcome="unschedulable", stopped_at="Permit"
    )
    node = NodeExplanation(node="n", verdict="v", pending=[here], attempts=[record])
    refused = Refused(
        plugin="VolumeRestrictions",
        code="Unschedulable",
        reasons=(reason,),
        count=6,
        sample=("node-1", "node-2", "node-3"),
    )
    pending = PodExplanation(pod="a/b", state="pending", verdict="v", attempts=[record])
    pending.now = Now(nodes=6, refused=[refused])
    about_node, about_pod = text_at(width, draw_node(node, width=width)), text_at(width, draw_pod(pending, width=width))

    for word in [*reason.split(), "NodeResourcesFit", "ml/allreduce-0", "ml/allreduce-5", "unschedulable", "Permit"]:
        assert word in about_node
    for word in [*reason.split(), "VolumeRestrictions", "node-1,", "node-2,", "node-3", "unschedulable"]:
        assert word in about_pod


def test_changes_are_lists() -> None:
    changes = Changes(
        pod="a/b",
        suggestions=[Suggestion(sentence="It would fit if so.", node="n")],
        nearest=[Suggestion(sentence="n17 lacks 500m cpu")],
        without=[Suggestion(sentence="without NodeAffinity: 3 nodes")],
    )
    text = text_of(draw_changes(changes))

    assert "what would let it run" in text and "It would fit if so." in text
    assert "n17 lacks 500m cpu" in text and "without NodeAffinity: 3 nodes" in text
    moved = Changes(pod="a/b", is_placed=True, suggestions=[Suggestion(sentence="elsewhere")])
    assert "what would move it" in text_of(draw_changes(moved))


def test_manifests_are_drawn_with_scores_reasons_and_victims() -> None:
    harness = Harness(
        nodes=[node("small", cpu=2), node("large", cpu=8)], pods=[pod("low", cpu=7, node="large", priority=0)]
    )
    work = Evaluator(harness.scheduler)
    placed, waiting, urgent = (
        work.evaluate(pod(name, cpu=cpu, priority=priority))
        for name, cpu, priority in (("web", 1, 0), ("big", 60, 0), ("urgent", 6, 9))
    )

    assert "goes to small with" in text_of(draw_evaluated(placed)) and "score by plugin" in text_of(
        draw_evaluated(placed)
    )
    assert "the largest node has 8 CPU" in text_of(draw_evaluated(waiting))
    assert "kube-scheduler would say: 0/2 nodes are available" in text_of(draw_evaluated(waiting))
    assert "would leave large" in text_of(draw_evaluated(urgent))
    assert "default/big" in text_of([draw_summary([placed, waiting, urgent])])


def test_hostile_names_cannot_steer_the_terminal() -> None:
    explanation = PodExplanation(pod="a/\x1b[2J", state="pending", verdict="a/\x1b[2J [bold]x[/bold]")

    assert "\x1b[2J" not in text_of(draw_pod(explanation))
    assert "[bold]x[/bold]" in text_of(draw_pod(explanation))


def test_a_what_if_shows_pods_of_one_template_in_one_row() -> None:
    moved = [Placement(pod=f"shop/web-{i}", node=f"node-{i % 2}", origin="node-9") for i in range(90)]
    stuck = [Placement(pod=f"shop/db-{i}", message="0/2 nodes are available") for i in range(3)]
    answer = WhatIf(verdict="some", node_count=2, placed=moved, pending=stuck, placed_count=90, pending_count=3)
    text, wide = text_of(draw_whatif(answer)), text_of(draw_whatif(answer, is_wide=True))

    assert "90 × shop/web" in text and "node-0 (45), node-1 (45)" in text
    assert "3 × shop/db" in text
    assert len(text.splitlines()) < 15
    assert "shop/web-7 " in wide and "and 50 more pods" in wide


def test_times_of_another_day_have_their_date_and_long_ones_are_in_hours_and_days() -> None:
    day = 86_400.0
    record = DecisionRecord(number=1, time=3 * day, pod="a/b", uid="u", profile="p", outcome="unschedulable")
    explanation = PodExplanation(pod="a/b", state="pending", verdict="v", attempts=[record])
    explanation.queue = QueueState(
        place="unschedulable",
        history=[(3 * day, "active", ""), (3 * day + 7_200, "backoff", ""), (6 * day, "unschedulable", "")],
    )
    explanation.now = Now(time=6 * day + 60)
    said = text_of(draw_pod(explanation))

    assert "1970-01-04 00:00:00" in said
    assert "active 2 h → backoff 3 d → unschedulable since 00:00:00" in said


@pytest.mark.parametrize("width", [60, 80])
def test_heads_and_names_stay_whole_at_sixty_columns(width: int) -> None:
    name = "default/checkout-7d4f8b6c95-x2x5k"
    node = NodeExplanation(node="n", verdict="v")
    node.attempts = [DecisionRecord(number=1, time=1.0, pod=name, uid="u", profile="p", node="n", outcome="bound")]
    cause = PendingCause(title="NodeResourcesFit: Insufficient cpu", plugin="", count=1, pods=[Waiting(pod=name)])
    board = PendingBoard(verdict="v", causes=[cause])
    said = text_of([*draw_node(node, width=width), *draw_pending(board, width=width)], width=width)

    for word in ("outcome", name, cause.title):
        assert word in said


def test_what_a_table_leaves_out_is_counted() -> None:
    node = NodeExplanation(node="n", verdict="v")
    node.pending = [PendingHere(pod=f"a/p{place}", count=2, fits=True, place=1) for place in range(15)]
    causes = [PendingCause(title=f"cause {place}", plugin="", count=3) for place in range(52)]

    assert re.search(r"^ +6 +3 more kinds *$", text_of(draw_node(node)), re.MULTILINE)
    assert re.search(
        r"^ +6 +2 other causes *$", text_of(draw_pending(PendingBoard(verdict="v", causes=causes))), re.MULTILINE
    )
