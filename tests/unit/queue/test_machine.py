"""The transitions, in the order of the table in the module."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from tests.unit.queue.kit import (
    EVERYTHING,
    GATES_GONE,
    NODE_ADD,
    NODE_DELETE,
    NODE_LABEL,
    NODE_TAINT,
    POD_ASSIGNED,
    POD_DELETED,
    START,
    Bench,
    ScriptedGate,
    ScriptedHint,
    make_pod,
    queue_itself,
)

from bayplan.cluster.pod_info import PodInfo
from bayplan.framework.events import WILDCARD, ActionType, ClusterEvent, EventHint, Hint, Resource
from bayplan.framework.queued import QueuedPod
from bayplan.framework.status import Unresolvable
from bayplan.observe.clock import VirtualClock
from bayplan.queue import BackoffTimes, Nominations, Place, QueuePolicy, SchedulingQueue, sort_key_of
from bayplan.queue.places import FORCE_ACTIVATE

FIT = ("Fit", EventHint(NODE_ADD))


def held() -> Any:
    return Unresolvable("held")


# (new) to ACTIVE or GATED


def test_a_new_pod_becomes_active() -> None:
    bench = Bench()

    assert bench.queue.add(make_pod()) is Place.ACTIVE

    queued = bench.queue.get("ns/pod")
    assert queued is not None
    assert (queued.timestamp, queued.initial_attempt_timestamp, queued.attempts) == (START, START, 0)
    assert queued.story == [(START, "active", "UnschedulablePodAdd")]
    assert bench.rings == 1


def test_pods_are_popped_by_priority_then_by_arrival() -> None:
    bench = Bench()
    bench.add("first", priority=1)
    bench.clock.advance(0.001)
    bench.add("second", priority=1)
    bench.add("high", priority=9)

    assert bench.popped_names() == ["high", "first", "second"]


def test_the_queue_sort_plugin_decides_the_order() -> None:
    class LowestFirst:
        def less(self, first: QueuedPod, second: QueuedPod) -> bool:
            return first.priority < second.priority

    bench = Bench(sort_key=sort_key_of(LowestFirst()))
    bench.add("high", priority=9)
    bench.add("low", priority=1)

    assert bench.popped_names() == ["low", "high"]


def test_a_new_pod_with_gates_is_parked_and_never_popped() -> None:
    bench = Bench()

    assert bench.queue.add(make_pod(gates=["a"])) is Place.GATED

    queued = bench.queue.get("ns/pod")
    assert queued is not None
    assert queued.gating_plugin == "SchedulingGates"
    assert queued.unschedulable_plugins == {"SchedulingGates"}
    assert queued.initial_attempt_timestamp is None
    assert bench.queue.pop() is None
    assert bench.rings == 0
    assert bench.queue.sizes == (0, 0, 0, 1, 0)


def test_a_new_pod_with_a_nomination_is_nominated_once_it_is_active() -> None:
    bench = Bench()

    bench.add("active", nominated="n1")
    bench.add("gated", nominated="n1", gates=["a"])

    assert [info.name for info in bench.queue.nominations.nominated_pods("n1")] == ["active"]


def test_a_pod_of_an_unknown_profile_lives_through_everything() -> None:
    bench = Bench(FIT)
    bench.add("stray", profile="nobody", gates=["a"])

    queued = bench.pop()
    bench.queue.add_unschedulable_if_not_present(queued, unschedulable_plugins={"Fit"})
    assert bench.queue.place_of("ns/stray") is Place.UNSCHEDULABLE
    assert bench.queue.move_all(NODE_LABEL) == 0, "no plugin of any profile registered it"
    assert bench.queue.move_all(NODE_ADD) == 1


# add of known pods


def test_adding_a_waiting_pod_again_updates_it_where_it_is() -> None:
    bench = Bench(FIT)
    bench.add("waiting")
    bench.reject("rejected", "Fit", priority=1)

    assert bench.queue.add(make_pod("waiting", labels={"a": "b"})) is Place.ACTIVE
    assert bench.queue.add(make_pod("rejected", priority=1)) is Place.UNSCHEDULABLE
    assert bench.queue.sizes == (1, 0, 1, 0, 0)
    queued = bench.queue.get("ns/waiting")
    assert queued is not None
    assert queued.info.labels == {"a": "b"}


def test_adding_a_pod_in_flight_again_does_not_double_it() -> None:
    bench = Bench()
    info = bench.add()
    bench.pop()

    assert bench.queue.add(info) is Place.IN_FLIGHT
    assert bench.queue.sizes == (0, 0, 0, 0, 1)
    assert bench.queue.in_flight_events() == {"UnschedulablePodUpdate": 1, "PodPopped": 1}


def test_a_recreated_pod_replaces_the_old_one() -> None:
    bench = Bench(FIT)
    old = bench.reject("pod", "Fit", nominated="n1")

    assert bench.queue.add(make_pod(uid="second")) is Place.ACTIVE
    assert bench.queue.sizes == (1, 0, 0, 0, 0)
    assert bench.pop().attempts == 1
    assert bench.queue.nominations.node_of(old.uid) == ""


# ACTIVE to IN_FLIGHT


def test_popping_counts_the_attempt_and_puts_the_pod_in_flight() -> None:
    bench = Bench()
    info = bench.add()

    queued = bench.pop()

    assert queued.attempts == 1
    assert bench.queue.scheduling_cycle == 1
    assert bench.queue.is_in_flight(info.uid)
    assert bench.queue.get("ns/pod") is None
    assert bench.queue.place_of("ns/pod") is None
    assert queued.story[-1] == (START, "in-flight", "Pop")


def test_an_empty_queue_pops_nothing() -> None:
    assert Bench().queue.pop() is None


def test_a_pod_whose_uid_is_in_flight_is_dropped_and_the_next_one_popped(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()
    bench.add("first", uid="same", priority=9)
    bench.add("twin", uid="same", priority=8)
    bench.add("other")
    bench.pop()

    with caplog.at_level(logging.ERROR):
        assert bench.popped_names() == ["other"]

    assert "two pods must not share a uid" in caplog.text


# IN_FLIGHT to gone


def test_done_settles_the_pod_and_may_be_said_twice() -> None:
    bench = Bench(FIT)
    info = bench.add()
    bench.pop()
    bench.queue.move_all(NODE_ADD)

    bench.queue.done(info.uid)
    bench.queue.done(info.uid)

    assert bench.queue.sizes == (0, 0, 0, 0, 0)
    assert bench.queue.in_flight_events() == {"PodPopped": 0}


# IN_FLIGHT back


def test_a_rejected_pod_waits_for_an_event() -> None:
    bench = Bench(FIT)
    bench.clock.advance(0.5)

    queued = bench.reject("pod", "Fit")

    assert bench.queue.place_of("ns/pod") is Place.UNSCHEDULABLE
    assert not bench.queue.is_in_flight(queued.uid)
    assert (queued.unschedulable_count, queued.consecutive_errors) == (1, 0)
    assert queued.unschedulable_plugins == {"Fit"}
    assert queued.story[-1] == (START + 0.5, "unschedulable", "ScheduleAttemptFailure")


def test_coming_back_refreshes_the_timestamp_and_clears_what_belonged_to_the_last_wait() -> None:
    bench = Bench(FIT)
    bench.add()
    queued = bench.pop()
    queued.backoff_expiration = queued.flushed_at = 1.0
    queued.unschedulable_plugins = {"Old"}
    bench.clock.advance(3)

    bench.queue.add_unschedulable_if_not_present(queued, pending_plugins={"Devices"})

    assert queued.timestamp == START + 3
    assert [queued.backoff_expiration, queued.flushed_at] == [None, None]
    assert queued.rejectors == {"Devices"}


def test_a_pod_that_failed_with_an_error_backs_off() -> None:
    bench = Bench()
    bench.add()
    queued = bench.pop()

    assert bench.queue.add_unschedulable_if_not_present(queued) is Place.BACKOFF
    assert (queued.unschedulable_count, queued.consecutive_errors) == (0, 1)
    assert bench.queue.pop() is None, "errors are never popped early"


def test_errors_in_a_row_are_counted_until_a_rejection() -> None:
    bench = Bench(FIT)
    bench.add()
    counts = []
    for plugins in ((), (), ("Fit",), ()):
        queued = bench.pop()
        bench.queue.add_unschedulable_if_not_present(queued, unschedulable_plugins=plugins)
        counts.append((queued.consecutive_errors, queued.unschedulable_count))
        bench.queue.activate([queued.info])

    assert counts == [(1, 0), (2, 0), (0, 1), (1, 1)]


def test_the_latest_version_of_the_pod_comes_back() -> None:
    bench = Bench(FIT)
    bench.add()
    latest = make_pod(labels={"new": "yes"})

    bench.queue.add_unschedulable_if_not_present(bench.pop(), unschedulable_plugins={"Fit"}, info=latest)

    queued = bench.queue.get("ns/pod")
    assert queued is not None
    assert queued.info is latest


def test_an_event_during_the_attempt_brings_the_pod_back_after_back_off() -> None:
    bench = Bench(FIT)
    bench.add()
    queued = bench.pop()
    bench.queue.move_all(NODE_ADD)

    place = bench.queue.add_unschedulable_if_not_present(queued, unschedulable_plugins={"Fit"})

    assert place is Place.BACKOFF
    assert queued.story[-1][1:] == ("backoff", "ScheduleAttemptFailure")


def test_an_event_before_the_attempt_does_not() -> None:
    bench = Bench(FIT)
    bench.add("older", priority=1)
    bench.pop()
    bench.queue.move_all(NODE_ADD)
    bench.add()

    place = bench.queue.add_unschedulable_if_not_present(bench.pop(), unschedulable_plugins={"Fit"})

    assert place is Place.UNSCHEDULABLE


def test_an_event_that_its_rejector_does_not_care_for_does_not() -> None:
    bench = Bench(FIT, ("Taint", EventHint(NODE_LABEL)))
    bench.add()
    queued = bench.pop()
    bench.queue.move_all(NODE_LABEL)
    bench.queue.move_all(NODE_DELETE)

    assert bench.queue.in_flight_events() == {"NodeLabelChange": 1, "PodPopped": 1}, "nobody wants NodeDelete"
    place = bench.queue.add_unschedulable_if_not_present(queued, unschedulable_plugins={"Fit"})
    assert place is Place.UNSCHEDULABLE


def test_an_event_that_a_pending_plugin_waited_for_skips_the_back_off() -> None:
    bench = Bench(("Devices", EventHint(NODE_LABEL)), FIT)
    bench.add()
    queued = bench.pop()
    bench.queue.move_all(NODE_ADD)
    bench.queue.move_all(NODE_LABEL)

    place = bench.queue.add_unschedulable_if_not_present(
        queued, unschedulable_plugins={"Fit"}, pending_plugins={"Devices"}
    )

    assert place is Place.ACTIVE


def test_a_rejected_pod_that_was_not_in_flight_any_more_backs_off() -> None:
    """Its events are unknown; a binding that is rejected late comes this way."""
    bench = Bench(FIT)
    info = bench.add()
    queued = bench.pop()
    bench.queue.done(info.uid)

    place = bench.queue.add_unschedulable_if_not_present(queued, unschedulable_plugins={"Fit"})

    assert place is Place.BACKOFF


def test_a_pod_that_a_plugin_holds_by_now_comes_back_gated() -> None:
    gate = ScriptedGate()
    bench = Bench(pre_enqueue={"Preemption": gate})
    bench.add()
    queued = bench.pop()
    gate.answer = held()

    assert bench.queue.add_unschedulable_if_not_present(queued) is Place.GATED
    assert queued.story[-1][1:] == ("gated", "ScheduleAttemptFailure")


def test_with_back_off_turned_off_a_failed_pod_is_active_at_once() -> None:
    bench = Bench(times=BackoffTimes(max_seconds=0))
    bench.add()

    assert bench.queue.add_unschedulable_if_not_present(bench.pop()) is Place.ACTIVE


@pytest.mark.parametrize("place", [Place.ACTIVE, Place.BACKOFF, Place.UNSCHEDULABLE])
def test_a_pod_that_is_queued_already_is_not_queued_twice(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    """Recreated under its name while it was in flight: the new one stays, the old one is settled."""
    bench = Bench(FIT)
    info = bench.add()
    old = bench.pop()
    bench.add(uid="second")
    if place is not Place.ACTIVE:
        plugins = {"Fit"} if place is Place.UNSCHEDULABLE else set()
        bench.queue.add_unschedulable_if_not_present(bench.pop(), unschedulable_plugins=plugins)

    with caplog.at_level(logging.ERROR):
        assert bench.queue.add_unschedulable_if_not_present(old, unschedulable_plugins={"Fit"}) is place

    assert f"`ns/pod` came back from scheduling but is in the {place.value} queue already" in caplog.text
    assert not bench.queue.is_in_flight(info.uid)
    queued = bench.queue.get("ns/pod")
    assert queued is not None
    assert queued.uid == "second"


# BACKOFF to ACTIVE and IN_FLIGHT


def fail(bench: Bench, name: str = "pod", *, rejected: bool = False, **keywords: Any) -> QueuedPod:
    """A pod in back-off, by an error or by a rejection that an event overtook."""
    bench.add(name, **keywords)
    queued = bench.pop()
    assert queued.info.name == name
    bench.queue.move_all(NODE_ADD)
    bench.queue.add_unschedulable_if_not_present(queued, unschedulable_plugins={"Fit"} if rejected else ())
    assert bench.queue.place_of(queued.key) is Place.BACKOFF
    return queued


def test_a_pod_becomes_active_when_its_back_off_is_over() -> None:
    bench = Bench(FIT)
    queued = fail(bench)

    bench.clock.advance(1.999)
    assert bench.queue.flush_backoff() == 0
    bench.clock.advance(0.001)
    assert bench.queue.flush_backoff() == 1

    assert bench.queue.place_of("ns/pod") is Place.ACTIVE
    assert queued.story[-1] == (START + 2, "active", "BackoffComplete")


def test_plugins_are_not_asked_again_on_the_way_from_back_off_to_active() -> None:
    gate = ScriptedGate()
    bench = Bench(FIT, pre_enqueue={"Preemption": gate})
    fail(bench)
    gate.answer, calls = held(), gate.calls
    bench.clock.advance(60)

    bench.queue.flush_backoff()

    assert bench.queue.place_of("ns/pod") is Place.ACTIVE
    assert gate.calls == calls


def test_an_idle_queue_pops_a_rejected_pod_out_of_its_back_off() -> None:
    bench = Bench(FIT)
    fail(bench, rejected=True)

    queued = bench.pop()

    assert queued.attempts == 2
    assert queued.story[-1] == (START, "in-flight", "PopFromBackoffQ")
    assert bench.queue.incoming["active", "PopFromBackoffQ"] == 1


def test_an_active_pod_goes_before_any_in_back_off() -> None:
    bench = Bench(FIT)
    fail(bench, "important", rejected=True, priority=100)
    bench.add("plain")

    assert bench.popped_names() == ["plain", "important"]


def test_a_pod_that_keeps_failing_does_not_block_younger_ones() -> None:
    """Of equal priority, the one that was just tried goes behind those that were not."""
    bench = Bench(("Fit", EventHint(NODE_ADD)), times=BackoffTimes(max_seconds=0))
    bench.add("tired")
    bench.clock.advance(1)
    bench.add("fresh")
    queued = bench.pop()
    bench.clock.advance(1)

    bench.queue.add_unschedulable_if_not_present(queued)

    assert (queued.info.name, bench.popped_names()) == ("tired", ["fresh", "tired"])


def test_back_off_grows_with_each_failure() -> None:
    bench = Bench()
    bench.add()
    waits = []
    for _ in range(6):
        queued = bench.pop()
        bench.queue.add_unschedulable_if_not_present(queued)
        waits.append(bench.queue._times.expiration(queued) - queued.timestamp)
        bench.clock.advance(11)
        bench.queue.flush_backoff()

    assert waits == [1, 2, 4, 8, 10, 10]


# UNSCHEDULABLE to ACTIVE, BACKOFF and GATED


def test_an_event_moves_a_pod_to_back_off_while_it_lasts_and_to_active_after() -> None:
    bench = Bench(FIT)
    early, late = bench.reject("early", "Fit"), bench.reject("late", "Fit")
    late.timestamp -= 60

    assert bench.queue.move_all(NODE_ADD) == 2

    assert bench.queue.place_of("ns/early") is Place.BACKOFF
    assert bench.queue.place_of("ns/late") is Place.ACTIVE
    assert early.last_event == "NodeAdd"
    assert early.story[-1] == (START, "backoff", "NodeAdd")


def test_an_event_asks_only_about_pods_whose_rejector_registered_it() -> None:
    hint = ScriptedHint(Hint.SKIP)
    bench = Bench(("Fit", EventHint(NODE_ADD, hint)), ("Taint", EventHint(NODE_LABEL, hint)))
    for number in range(5):
        bench.reject(f"taint-{number}", "Taint")
    bench.reject("fit", "Fit")

    assert bench.queue.move_all(NODE_ADD, new="node") == 0

    assert hint.asked == ["fit"]
    assert hint.changes == [(None, "node")]


def test_a_hint_that_skips_leaves_the_pod_asleep_until_it_queues() -> None:
    hint = ScriptedHint(Hint.SKIP)
    bench = Bench(("Fit", EventHint(POD_DELETED, hint)))
    bench.reject("pod", "Fit")

    assert bench.queue.move_all(POD_DELETED, old=make_pod("victim")) == 0
    assert bench.queue.place_of("ns/pod") is Place.UNSCHEDULABLE
    hint.answer = Hint.QUEUE
    assert bench.queue.move_all(POD_DELETED, old=make_pod("victim")) == 1


def test_a_failing_hint_wakes_the_pod() -> None:
    bench = Bench(("Fit", EventHint(NODE_ADD, ScriptedHint(RuntimeError("oops")))))
    bench.reject("pod", "Fit")

    assert bench.queue.move_all(NODE_ADD) == 1


def test_a_pending_plugin_wakes_its_pod_without_back_off() -> None:
    bench = Bench(("Devices", EventHint(NODE_LABEL)))
    bench.add()
    bench.queue.add_unschedulable_if_not_present(bench.pop(), pending_plugins={"Devices"})

    bench.queue.move_all(NODE_LABEL)

    assert bench.queue.place_of("ns/pod") is Place.ACTIVE


def test_a_changed_taint_wakes_whoever_waits_for_new_nodes() -> None:
    hint = ScriptedHint(Hint.SKIP)
    bench = Bench(("Fit", EventHint(NODE_ADD, hint)))
    bench.reject("pod", "Fit")

    assert bench.queue.move_all(NODE_TAINT) == 1
    assert hint.asked == []


def test_a_wildcard_event_wakes_everybody() -> None:
    bench = Bench(FIT)
    bench.reject("one", "Fit")
    bench.reject("two", "Taint")

    assert bench.queue.move_all(EVERYTHING) == 2


def test_a_plugin_without_events_is_woken_by_any() -> None:
    bench = Bench(("Custom", EventHint(WILDCARD)))
    bench.reject("pod", "Custom")

    assert bench.queue.move_all(ClusterEvent("things.v1.example.com", ActionType.UPDATE)) == 1


def test_a_predicate_narrows_who_is_woken_but_not_who_hears() -> None:
    bench = Bench(("Fit", EventHint(POD_DELETED)))
    bench.add("flying", priority=9)
    flying = bench.pop()
    bench.reject("low", "Fit", priority=1)
    bench.reject("high", "Fit", priority=5)

    assert bench.queue.move_all(POD_DELETED, old=make_pod("nominated"), predicate=lambda info: info.priority <= 1) == 1

    assert bench.queue.place_of("ns/low") is Place.BACKOFF
    assert bench.queue.place_of("ns/high") is Place.UNSCHEDULABLE
    assert bench.queue.add_unschedulable_if_not_present(flying, unschedulable_plugins={"Fit"}) is Place.BACKOFF


def test_a_plugin_may_hold_a_woken_pod_on_its_way() -> None:
    gate = ScriptedGate()
    bench = Bench(FIT, pre_enqueue={"Preemption": gate})
    backing_off, ready = bench.reject("backing-off", "Fit"), bench.reject("ready", "Fit")
    ready.timestamp -= 60
    gate.answer = held()

    assert bench.queue.move_all(NODE_ADD) == 0

    assert bench.queue.sizes == (0, 0, 0, 2, 0)
    assert backing_off.rejectors == ready.rejectors == {"Fit", "Preemption"}


def test_a_hint_that_takes_pods_out_of_the_queue_loses_and_doubles_none() -> None:
    class Meddling(ScriptedHint):
        def __call__(self, pod: PodInfo, old: Any, new: Any) -> Hint:
            bench.queue.activate([make_pod("one"), make_pod("two")])
            return Hint.QUEUE

    bench = Bench(("Fit", EventHint(NODE_ADD, Meddling())))
    bench.reject("one", "Fit")
    bench.reject("two", "Fit")

    assert bench.queue.move_all(NODE_ADD) == 0
    assert sorted(bench.popped_names()) == ["one", "two"]


# GATED


def preemptor(bench: Bench) -> QueuedPod:
    return bench.reject("preemptor", "Fit")


def gated_bench() -> tuple[Bench, ScriptedGate]:
    """A preemptor that Fit rejected, held by a plugin that registered deleted pods with a hint that never queues."""
    gate = ScriptedGate()
    bench = Bench(
        ("Fit", EventHint(POD_DELETED)),
        FIT,
        ("Preemption", EventHint(POD_DELETED, ScriptedHint(Hint.SKIP))),
        pre_enqueue={"Preemption": gate},
    )
    preemptor(bench)
    gate.answer = held()
    bench.queue.move_all(NODE_ADD)
    assert bench.queue.place_of("ns/preemptor") is Place.GATED
    return bench, gate


def test_a_gated_pod_is_left_alone_by_events_that_its_holder_did_not_register() -> None:
    bench, gate = gated_bench()
    gate.answer, calls = None, gate.calls

    assert bench.queue.move_all(NODE_ADD) == 0
    assert gate.calls == calls


def test_an_event_of_its_holder_lets_the_other_rejectors_wake_a_gated_pod() -> None:
    bench, gate = gated_bench()

    assert bench.queue.move_all(POD_DELETED) == 0
    assert bench.queue.place_of("ns/preemptor") is Place.GATED
    gate.answer = None
    assert bench.queue.move_all(POD_DELETED) == 1
    assert bench.queue.place_of("ns/preemptor") is Place.BACKOFF


def test_a_wildcard_event_asks_the_holder_again() -> None:
    bench, gate = gated_bench()
    gate.answer = None

    assert bench.queue.move_all(EVERYTHING) == 1


def test_staying_gated_is_told_once() -> None:
    bench, _ = gated_bench()
    for _ in range(5):
        bench.queue.move_all(POD_DELETED)

    queued = bench.queue.get("ns/preemptor")
    assert queued is not None
    assert [place for _, place, _ in queued.story].count("gated") == 1


# update


GATES = ("SchedulingGates", EventHint(GATES_GONE, queue_itself))


def test_a_pod_whose_last_gate_goes_becomes_active() -> None:
    bench = Bench(GATES)
    old = bench.add(gates=["a", "b"])
    one, none = make_pod(gates=["a"]), make_pod()

    assert bench.queue.update(old, one) is Place.GATED
    assert bench.queue.update(one, none) is Place.ACTIVE

    queued = bench.pop()
    assert queued.info is none
    assert queued.last_event == "UnschedulablePodSchedulingGatesEliminated"
    assert queued.initial_attempt_timestamp == START


def test_another_pods_gates_do_not_matter() -> None:
    bench = Bench(GATES)
    bench.add("waiting", gates=["a"])
    old = bench.add("other", gates=["a"])

    bench.queue.update(old, make_pod("other"))

    assert bench.queue.place_of("ns/waiting") is Place.GATED


def test_an_update_replaces_an_active_pod_and_finds_its_place_anew() -> None:
    bench = Bench()
    old = bench.add("changed", priority=1)
    bench.add("other", priority=2)
    new = make_pod("changed", priority=3)

    assert bench.queue.update(old, new) is Place.ACTIVE

    assert bench.queue.sizes.active == 2
    assert bench.pop().info is new


def test_a_less_plugin_sees_the_order_change_with_an_update() -> None:
    class ByPriority:
        def less(self, first: QueuedPod, second: QueuedPod) -> bool:
            return first.priority > second.priority

    bench = Bench(sort_key=sort_key_of(ByPriority()))
    old = bench.add("changed", priority=9)
    for priority in range(2, 8):
        bench.add(f"p{priority}", priority=priority)

    bench.queue.update(old, make_pod("changed", priority=1))

    assert bench.popped_names() == ["p7", "p6", "p5", "p4", "p3", "p2", "changed"]


def test_an_update_replaces_a_pod_in_back_off_and_keeps_its_expiration() -> None:
    bench = Bench(FIT)
    queued = fail(bench, rejected=True)
    expiration = queued.backoff_expiration
    new = make_pod(labels={"a": "b"})

    assert bench.queue.update(queued.info, new) is Place.BACKOFF

    replaced = bench.pop()
    assert (replaced.info, replaced.backoff_expiration, replaced.attempts) == (new, expiration, 2)


def test_an_update_may_be_what_a_rejected_pod_waited_for() -> None:
    toleration = ClusterEvent(Resource.POD, ActionType.UPDATE_POD_TOLERATION)
    bench = Bench(("Taint", EventHint(toleration, queue_itself)))
    queued = bench.reject("pod", "Taint")
    labelled = make_pod(labels={"a": "b"})

    assert bench.queue.update(queued.info, labelled) is Place.UNSCHEDULABLE
    assert queued.info is labelled
    assert bench.queue.update(labelled, make_pod(labels={"a": "c"}, tolerations=1)) is Place.BACKOFF
    assert queued.last_event == "UnschedulablePodTolerationChange"


def test_an_update_stops_at_the_first_event_that_wakes_the_pod() -> None:
    label, toleration = ScriptedHint(), ScriptedHint()
    bench = Bench(
        ("Taint", EventHint(ClusterEvent(Resource.POD, ActionType.UPDATE_POD_LABEL), label)),
        ("Taint", EventHint(ClusterEvent(Resource.POD, ActionType.UPDATE_POD_TOLERATION), toleration)),
    )
    queued = bench.reject("pod", "Taint")
    queued.timestamp -= 60

    assert bench.queue.update(queued.info, make_pod(labels={"a": "b"}, tolerations=1)) is Place.ACTIVE
    assert (label.asked, toleration.asked) == (["pod"], [])


def test_an_update_of_a_waiting_pod_is_not_an_event_for_others() -> None:
    bench = Bench(("Fit", EventHint(WILDCARD)))
    bench.add("flying", priority=9)
    bench.pop()
    queued = bench.reject("pod", "Fit")

    bench.queue.update(queued.info, make_pod(labels={"a": "b"}))

    assert bench.queue.in_flight_events() == {"PodPopped": 1}


def test_an_update_in_flight_counts_when_the_pod_comes_back() -> None:
    label = ClusterEvent(Resource.POD, ActionType.UPDATE_POD_LABEL)
    bench = Bench(("Affinity", EventHint(label, queue_itself)))
    old = bench.add()
    queued = bench.pop()

    assert bench.queue.update(old, make_pod(labels={"a": "b"}, tolerations=1)) is Place.IN_FLIGHT
    assert bench.queue.in_flight_events() == {
        "UnschedulablePodLabelChange": 1,
        "UnschedulablePodTolerationChange": 1,
        "PodPopped": 1,
    }
    assert bench.queue.add_unschedulable_if_not_present(queued, unschedulable_plugins={"Affinity"}) is Place.BACKOFF


def test_an_update_of_an_unknown_pod_adds_it() -> None:
    bench = Bench()
    new = make_pod(nominated="n1")
    bench.server[new.key] = new.pod

    assert bench.queue.update(make_pod(), new) is Place.ACTIVE
    assert bench.queue.incoming["active", "UnschedulablePodUpdate"] == 1
    assert list(bench.queue.nominations.nominated_nodes()) == ["n1"]


@pytest.mark.parametrize("place", list(Place)[:4])
def test_an_update_follows_the_nomination_wherever_the_pod_waits(place: Place) -> None:
    bench = Bench(FIT)
    if place is Place.BACKOFF:
        fail(bench)
    elif place is Place.UNSCHEDULABLE:
        bench.reject("pod", "Fit")
    else:
        bench.add(gates=["a"] if place is Place.GATED else [])
    assert bench.queue.place_of("ns/pod") is place

    bench.queue.update(make_pod(), make_pod(nominated="n1", gates=["a"] if place is Place.GATED else []))

    assert list(bench.queue.nominations.nominated_nodes()) == ["n1"]


def test_an_update_under_another_uid_is_a_new_pod() -> None:
    bench = Bench(FIT)
    bench.reject("pod", "Fit")
    new = make_pod(uid="second")

    assert bench.queue.update(make_pod(), new) is Place.ACTIVE
    assert bench.queue.sizes == (1, 0, 0, 0, 0)


def test_an_old_version_of_another_uid_is_not_compared_with() -> None:
    bench = Bench(FIT)
    bench.reject("pod", "Fit")

    assert bench.queue.update(make_pod(uid="before", labels={"x": "y"}), make_pod()) is Place.UNSCHEDULABLE


# delete


@pytest.mark.parametrize("place", list(Place)[:4])
def test_a_deleted_pod_leaves_whatever_queue_it_is_in(place: Place) -> None:
    bench = Bench(FIT)
    if place is Place.BACKOFF:
        fail(bench)
    elif place is Place.UNSCHEDULABLE:
        bench.reject("pod", "Fit")
    else:
        bench.add(gates=["a"] if place is Place.GATED else [])
    assert bench.queue.place_of("ns/pod") is place

    bench.queue.delete(make_pod())

    assert bench.queue.sizes == (0, 0, 0, 0, 0)
    assert bench.queue.get("ns/pod") is None


def test_a_deleted_pod_loses_its_nomination_even_in_flight() -> None:
    bench = Bench()
    info = bench.add(nominated="n1")
    bench.pop()

    bench.queue.delete(info)

    assert list(bench.queue.nominations.nominated_nodes()) == []
    assert bench.queue.is_in_flight(info.uid)


def test_a_late_delete_of_a_pod_that_was_recreated_spares_the_new_one() -> None:
    bench = Bench()
    old = bench.add(uid="first")
    bench.add(uid="second")

    bench.queue.delete(old)

    assert bench.pop().uid == "second"


def test_deleting_an_unknown_pod_does_nothing() -> None:
    bench = Bench()

    bench.queue.delete(make_pod())

    assert bench.queue.sizes == (0, 0, 0, 0, 0)


# activate


def test_activating_takes_a_pod_out_of_the_pool_without_back_off() -> None:
    bench = Bench(FIT)
    queued = bench.reject("pod", "Fit")

    bench.queue.activate([queued.info])

    assert bench.queue.place_of("ns/pod") is Place.ACTIVE
    assert queued.last_event == "ForceActivate"
    assert bench.queue.incoming["active", "ForceActivate"] == 1


def test_activating_takes_a_pod_out_of_back_off_without_asking_the_plugins() -> None:
    gate = ScriptedGate()
    bench = Bench(FIT, pre_enqueue={"Preemption": gate})
    queued = fail(bench)
    gate.answer = held()

    bench.queue.activate([queued.info])

    assert bench.queue.place_of("ns/pod") is Place.ACTIVE


def test_activating_a_gated_pod_asks_its_holder() -> None:
    bench, gate = gated_bench()

    bench.queue.activate([make_pod("preemptor")])
    assert bench.queue.place_of("ns/preemptor") is Place.GATED
    gate.answer = None
    bench.queue.activate([make_pod("preemptor")])
    assert bench.queue.place_of("ns/preemptor") is Place.ACTIVE


def test_activating_a_pod_in_flight_counts_when_it_comes_back_and_for_it_alone() -> None:
    bench = Bench(FIT)
    bench.add("one")
    bench.add("two")
    one, two = bench.pop(), bench.pop()

    bench.queue.activate([one.info])

    assert bench.queue.in_flight_events() == {FORCE_ACTIVATE.name: 1, "PodPopped": 2}
    assert bench.queue.add_unschedulable_if_not_present(two, unschedulable_plugins={"Fit"}) is Place.UNSCHEDULABLE
    assert bench.queue.add_unschedulable_if_not_present(one, unschedulable_plugins={"Fit"}) is Place.BACKOFF


def test_activating_active_and_unknown_pods_does_nothing() -> None:
    bench = Bench()
    active = bench.add()

    bench.queue.activate([active, make_pod("nobody")])

    assert bench.queue.sizes == (1, 0, 0, 0, 0)
    assert bench.rings == 1


# flush_unschedulable


def test_after_five_minutes_in_the_pool_a_pod_is_tried_anyway() -> None:
    bench = Bench(FIT)
    queued = bench.reject("pod", "Nobody")

    bench.clock.advance(300)
    assert bench.queue.flush_unschedulable() == 0
    bench.clock.advance(0.1)
    assert bench.queue.flush_unschedulable() == 1

    assert bench.queue.place_of("ns/pod") is Place.ACTIVE
    assert queued.flushed_at == START + 300.1
    assert queued.last_event == "UnschedulableTimeout"


def test_how_long_is_a_setting() -> None:
    bench = Bench(times=BackoffTimes(max_in_unschedulable_seconds=10))
    bench.reject("pod", "Nobody")
    bench.clock.advance(11)

    assert bench.queue.flush_unschedulable() == 1


def test_a_gated_pod_that_stays_gated_is_asked_again_five_minutes_later() -> None:
    bench, gate = gated_bench()
    calls = gate.calls
    bench.clock.advance(301)

    assert bench.queue.flush_unschedulable() == 0
    assert gate.calls == calls + 1
    bench.clock.advance(30)
    bench.queue.flush_unschedulable()
    assert gate.calls == calls + 1
    bench.clock.advance(300)
    gate.answer = None
    assert bench.queue.flush_unschedulable() == 1


def test_a_pod_that_an_event_woke_does_not_count_as_flushed() -> None:
    bench, gate = gated_bench()
    bench.clock.advance(301)
    bench.queue.flush_unschedulable()
    gate.answer = None

    bench.queue.move_all(POD_DELETED)

    queued = bench.queue.get("ns/preemptor")
    assert queued is not None
    assert queued.flushed_at is None


def test_the_timeout_is_an_event_for_pods_in_flight_too() -> None:
    bench = Bench(FIT)
    bench.reject("old", "Fit")
    bench.clock.advance(301)
    bench.add("flying")
    flying = bench.pop()

    bench.queue.flush_unschedulable()

    assert bench.queue.add_unschedulable_if_not_present(flying, unschedulable_plugins={"Fit"}) is Place.BACKOFF


# What others want to know


def test_pending_pods_are_told_by_place() -> None:
    bench = Bench(FIT)
    fail(bench, "backoff")
    bench.reject("rejected", "Fit")
    bench.add("gated", gates=["a"])
    bench.add("active")

    named = {place.value: [queued.info.name for queued in pods] for place, pods in bench.queue.pending_pods().items()}

    assert named == {
        "active": ["active"],
        "backoff": ["backoff"],
        "unschedulable": ["rejected"],
        "gated": ["gated"],
    }
    assert bench.queue.sizes == (1, 1, 1, 1, 0)
    assert bench.queue.sizes.gated == 1


def test_rejections_are_counted_by_plugin_and_profile() -> None:
    bench = Bench(FIT)
    bench.reject("one", "Fit", "Taint")
    bench.reject("two", "Fit")
    bench.add("gated", gates=["a"])

    assert bench.queue.rejections() == {
        ("Fit", "default-scheduler"): 2,
        ("Taint", "default-scheduler"): 1,
        ("SchedulingGates", "default-scheduler"): 1,
    }


def test_incoming_pods_are_counted_by_queue_and_cause() -> None:
    bench = Bench(FIT)
    bench.reject("pod", "Fit")
    bench.add("gated", gates=["a"])
    bench.queue.move_all(NODE_ADD)
    bench.clock.advance(10)
    bench.queue.flush_backoff()

    assert bench.queue.incoming == {
        ("active", "UnschedulablePodAdd"): 1,
        ("unschedulable", "ScheduleAttemptFailure"): 1,
        ("gated", "UnschedulablePodAdd"): 1,
        ("backoff", "NodeAdd"): 1,
        ("active", "BackoffComplete"): 1,
    }


def test_a_queue_that_nobody_waits_at_needs_no_bell() -> None:
    queue = SchedulingQueue(VirtualClock(), QueuePolicy(), nominations=Nominations(lambda namespace, name: None))

    assert queue.add(make_pod()) is Place.ACTIVE
    assert queue.move_all(POD_ASSIGNED) == 0
