"""Who had to leave for whom, and what became of it."""

from __future__ import annotations

import msgspec

from bayplan.explain.pages.preemptions import list_preemptions
from bayplan.loop.record import DecisionRecord, Preemption, Victim
from bayplan.loop.recorder import DecisionRecorder
from bayplan.observe.clock import SystemClock
from bayplan.observe.time_slices import at_once


def attempt(
    number: int, *, uid: str = "1", node: str = "", preempts: bool = False, got: str = "", is_refused: bool = False
) -> DecisionRecord:
    preemption = Preemption(
        node="node-1",
        victims=(Victim(pod="default/low"),),
        victim_count=1,
        candidates=3,
        attempt=number if preempts else 1,
        time=10.0 * number if preempts else 10.0,
    )
    return DecisionRecord(
        number=number,
        time=10.0 * number,
        pod=f"default/vip-{uid}",
        uid=uid,
        profile="default-scheduler",
        attempt=number,
        node=node,
        outcome="bound" if node and not is_refused else "unschedulable",
        preemption=preemption if preempts or got else None,
    )


def recorded(*attempts: DecisionRecord) -> DecisionRecorder:
    recorder = DecisionRecorder(SystemClock())
    recorder.restore(attempts)
    return recorder


def test_a_preemption_is_listed_once_with_its_outcome() -> None:
    recorder = recorded(attempt(1, preempts=True), attempt(2, node="node-1", got="node-1"))

    page = at_once(list_preemptions(recorder, offset=0, limit=10))

    assert (page.total, page.victims) == (1, 1)
    (only,) = page.preemptions
    assert (only.pod, only.node, only.outcome, only.got, only.waited) == (
        "default/vip-1",
        "node-1",
        "bound",
        "node-1",
        10.0,
    )
    assert [victim.pod for victim in only.victims] == ["default/low"]


def test_a_pod_that_went_elsewhere_or_still_waits_is_said_to() -> None:
    recorder = recorded(
        attempt(1, preempts=True), attempt(2, node="node-9"), attempt(1, uid="2", preempts=True), attempt(2, uid="2")
    )

    page = at_once(list_preemptions(recorder, offset=0, limit=10))

    assert [(one.pod, one.outcome) for one in page.preemptions] == [
        ("default/vip-2", ""),
        ("default/vip-1", "elsewhere"),
    ]


def test_a_pod_that_preempts_again_and_one_that_was_deleted_do_not_wait() -> None:
    again = msgspec.structs.replace(attempt(2), preemption=Preemption(node="node-2", attempt=2, time=20.0))
    recorder = recorded(attempt(1, preempts=True), again, attempt(3, node="node-2"), attempt(1, uid="2", preempts=True))

    page = at_once(list_preemptions(recorder, offset=0, limit=10, is_there=lambda pod, uid: uid == "1"))

    assert [(one.pod, one.node, one.outcome, one.waited) for one in page.preemptions] == [
        ("default/vip-2", "node-1", "gone", 0.0),
        ("default/vip-1", "node-2", "bound", 10.0),
        ("default/vip-1", "node-1", "elsewhere", 20.0),
    ]
    assert (page.waiting, page.median_waited) == (0, 15.0)


def test_pages_are_cut_from_the_newest() -> None:
    recorder = recorded(*(attempt(1, uid=str(uid), preempts=True) for uid in range(5)))

    page = at_once(list_preemptions(recorder, offset=1, limit=2))

    assert page.total == 5
    assert [one.pod for one in page.preemptions] == ["default/vip-3", "default/vip-2"]


def test_a_pod_that_is_refused_after_the_choice_still_waits_and_one_that_was_deleted_does_not() -> None:
    recorder = recorded(
        attempt(1, preempts=True), attempt(2, node="node-1", is_refused=True), attempt(1, uid="2", preempts=True)
    )

    page = at_once(list_preemptions(recorder, offset=0, limit=10, is_there=lambda _, uid: uid == "1"))

    assert [(one.pod, one.outcome) for one in page.preemptions] == [("default/vip-2", "gone"), ("default/vip-1", "")]
    assert (page.waiting, page.median_waited) == (1, None)


def test_each_preemption_of_a_pod_has_what_became_of_the_pod() -> None:
    recorder = recorded(attempt(1, preempts=True), attempt(2, preempts=True), attempt(3, node="node-1", got="node-1"))

    page = at_once(list_preemptions(recorder, offset=0, limit=10))

    assert [(one.attempt, one.outcome, one.waited) for one in page.preemptions] == [
        (2, "bound", 10.0),
        (1, "bound", 20.0),
    ]
    assert page.waiting == 0
