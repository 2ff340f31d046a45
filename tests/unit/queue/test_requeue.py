from __future__ import annotations

import logging
from typing import Any

import pytest
from tests.unit.queue.kit import (
    EVERYTHING,
    NODE_ADD,
    NODE_LABEL,
    POD_ASSIGNED,
    PROFILE,
    ScriptedHint,
    make_pod,
    make_queued,
)

from bayplan.framework.events import ClusterEvent, EventHint, Hint
from bayplan.framework.queued import QueuedPod
from bayplan.queue.in_flight import RecordedEvent
from bayplan.queue.requeue import Registrations, Requeueing, Strategy


def make_requeueing(*entries: tuple[str, EventHint], observer: Any = None) -> Requeueing:
    ticks = iter(range(1000))
    return Requeueing(Registrations({PROFILE: entries}), monotonic=lambda: float(next(ticks)), observer=observer)


def rejected(*plugins: str, pending: tuple[str, ...] = (), profile: str = PROFILE) -> QueuedPod:
    queued = make_queued(profile=profile)
    queued.unschedulable_plugins, queued.pending_plugins = frozenset(plugins), frozenset(pending)
    return queued


def after(
    queued: QueuedPod, event: ClusterEvent, *entries: tuple[str, EventHint], old: Any = None, new: Any = None
) -> Strategy:
    return make_requeueing(*entries).appraise(event, old=old, new=new)(queued)


def test_a_pod_that_nobody_rejected_is_always_worth_a_try() -> None:
    assert after(rejected(), NODE_ADD) is Strategy.AFTER_BACKOFF
    assert after(rejected(), EVERYTHING, new=make_pod("another")) is Strategy.AFTER_BACKOFF


def test_a_pod_of_an_unknown_profile_is_always_worth_a_try() -> None:
    assert after(rejected("Fit", profile="gone"), NODE_ADD) is Strategy.AFTER_BACKOFF


def test_a_wildcard_event_concerns_everybody() -> None:
    assert after(rejected("Fit"), EVERYTHING) is Strategy.AFTER_BACKOFF
    assert after(rejected("Fit"), EVERYTHING, new="a node") is Strategy.AFTER_BACKOFF


def test_a_wildcard_event_about_a_pod_concerns_that_pod_alone() -> None:
    assert after(rejected("Fit"), EVERYTHING, new=make_pod()) is Strategy.AFTER_BACKOFF
    assert after(rejected("Fit"), EVERYTHING, new=make_pod("another")) is Strategy.SKIP


def test_a_hint_that_says_queue_queues_after_back_off() -> None:
    hint = ScriptedHint(Hint.QUEUE)

    assert after(rejected("Fit"), NODE_ADD, ("Fit", EventHint(NODE_ADD, hint)), new="node") is Strategy.AFTER_BACKOFF
    assert hint.changes == [(None, "node")]


def test_a_hint_that_says_skip_skips() -> None:
    assert after(rejected("Fit"), NODE_ADD, ("Fit", EventHint(NODE_ADD, ScriptedHint(Hint.SKIP)))) is Strategy.SKIP


def test_a_registration_without_a_hint_always_queues() -> None:
    assert after(rejected("Fit"), NODE_ADD, ("Fit", EventHint(NODE_ADD))) is Strategy.AFTER_BACKOFF


def test_a_hint_that_fails_counts_as_queue_and_names_its_plugin(caplog: pytest.LogCaptureFixture) -> None:
    entry = ("Fit", EventHint(NODE_ADD, ScriptedHint(RuntimeError("oops"))))

    with caplog.at_level(logging.ERROR):
        assert after(rejected("Fit"), NODE_ADD, entry) is Strategy.AFTER_BACKOFF

    assert "the hint of plugin `Fit` for `NodeAdd` failed; pod `ns/pod` is tried again" in caplog.text


def test_an_answer_that_is_no_hint_counts_as_queue() -> None:
    entry = ("Fit", EventHint(NODE_ADD, ScriptedHint(None)))

    assert after(rejected("Fit"), NODE_ADD, entry) is Strategy.AFTER_BACKOFF


def test_only_rejectors_are_asked() -> None:
    hint = ScriptedHint()

    assert after(rejected("Fit"), NODE_ADD, ("Taint", EventHint(NODE_ADD, hint))) is Strategy.SKIP
    assert hint.asked == []


def test_only_hints_of_matching_events_are_asked() -> None:
    assert after(rejected("Fit"), POD_ASSIGNED, ("Fit", EventHint(NODE_ADD))) is Strategy.SKIP


def test_any_hint_of_a_plugin_is_enough() -> None:
    entries = [("Fit", EventHint(NODE_ADD, ScriptedHint(Hint.SKIP))), ("Fit", EventHint(NODE_ADD, ScriptedHint()))]

    assert after(rejected("Fit"), NODE_ADD, *entries) is Strategy.AFTER_BACKOFF


def test_without_pending_plugins_the_first_yes_ends_the_questions() -> None:
    second = ScriptedHint()
    entries = [("A", EventHint(NODE_ADD)), ("B", EventHint(NODE_ADD, second))]

    assert after(rejected("A", "B"), NODE_ADD, *entries) is Strategy.AFTER_BACKOFF
    assert second.asked == []


def test_a_pending_plugin_queues_at_once_even_when_another_answers_first() -> None:
    entries = [("A", EventHint(NODE_ADD)), ("B", EventHint(NODE_ADD))]

    assert after(rejected("A", pending=("B",)), NODE_ADD, *entries) is Strategy.IMMEDIATELY


def test_a_pending_plugin_that_skips_leaves_it_to_the_others() -> None:
    entries = [("A", EventHint(NODE_ADD)), ("B", EventHint(NODE_ADD, ScriptedHint(Hint.SKIP)))]

    assert after(rejected("A", pending=("B",)), NODE_ADD, *entries) is Strategy.AFTER_BACKOFF
    assert after(rejected(pending=("B",)), NODE_ADD, *entries) is Strategy.SKIP


def recorded(*events: ClusterEvent) -> list[RecordedEvent]:
    return [RecordedEvent(number, event, None, None) for number, event in enumerate(events)]


def test_of_several_events_immediately_wins() -> None:
    requeueing = make_requeueing(("A", EventHint(NODE_ADD)), ("B", EventHint(NODE_LABEL)))

    assert (
        requeueing.after_all(rejected("A", pending=("B",)), recorded(POD_ASSIGNED, NODE_ADD, NODE_LABEL))
        is Strategy.IMMEDIATELY
    )


def test_of_several_events_one_yes_is_enough() -> None:
    requeueing = make_requeueing(("A", EventHint(NODE_ADD)), ("B", EventHint(NODE_LABEL)))
    events = recorded(POD_ASSIGNED, NODE_ADD, POD_ASSIGNED)

    assert requeueing.after_all(rejected("A"), events) is Strategy.AFTER_BACKOFF
    assert requeueing.after_all(rejected("A", pending=("B",)), events) is Strategy.AFTER_BACKOFF


def test_no_event_means_skip_and_unknown_events_mean_a_try() -> None:
    assert make_requeueing().after_all(rejected("A"), []) is Strategy.SKIP
    assert make_requeueing().after_all(rejected("A"), None) is Strategy.AFTER_BACKOFF


@pytest.mark.parametrize(
    ("answer", "outcome"), [(Hint.QUEUE, "Queue"), (Hint.SKIP, "QueueSkip"), (RuntimeError("oops"), "Error")]
)
def test_an_observer_is_told_of_every_question(answer: Any, outcome: str) -> None:
    told: list[tuple[str, str, str, float]] = []
    requeueing = make_requeueing(
        ("Fit", EventHint(NODE_ADD, ScriptedHint(answer))), observer=lambda *call: told.append(call)
    )

    requeueing.appraise(NODE_ADD, old=None, new=None)(rejected("Fit"))

    assert told == [("Fit", "NodeAdd", outcome, 1.0)]
