"""The way of a pod through the queue: new, active, in flight, and back. In the order of the table in the module."""

from __future__ import annotations

import logging

import pytest
from tests.unit.queue.kit import (
    FIT,
    NODE_ADD,
    NODE_DELETE,
    NODE_LABEL,
    START,
    Bench,
    ScriptedGate,
    fail,
    held,
    make_pod,
    sort_key_of,
)

from bayplan.framework.events import EventHint
from bayplan.framework.plugin import Plugin
from bayplan.framework.queued import QueuedPod
from bayplan.queue import BackoffTimes, Place

# (new) to ACTIVE or GATED


def test_a_new_pod_becomes_active() -> None:
    bench = Bench()

    assert bench.queue.add(make_pod()) is Place.ACTIVE

    queued = bench.queue.get("ns/pod")
    assert queued is not None
    assert (queued.timestamp, queued.initial_attempt_timestamp, queued.attempts) == (START, START, 0)
    assert queued.history == [(START, "active", "UnschedulablePodAdd")]
    assert bench.rings == 1


def test_pods_are_popped_by_priority_then_by_arrival() -> None:
    bench = Bench()
    bench.add("first", priority=1)
    bench.clock.advance(0.001)
    bench.add("second", priority=1)
    bench.add("high", priority=9)

    assert bench.popped_names() == ["high", "first", "second"]


def test_the_queue_sort_plugin_decides_the_order() -> None:
    class LowestFirst(Plugin):
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
    assert queued.history[-1] == (START, "in-flight", "Pop")


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
    assert queued.history[-1] == (START + 0.5, "unschedulable", "ScheduleAttemptFailure")


def test_coming_back_refreshes_the_timestamp_and_clears_what_belonged_to_the_last_wait() -> None:
    bench = Bench(FIT)
    bench.add()
    queued = bench.pop()
    queued.backoff_expiration = queued.flushed_at = 1.0
    queued.unschedulable_plugins = frozenset({"Old"})
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
    assert queued.history[-1][1:] == ("backoff", "ScheduleAttemptFailure")


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
    assert queued.history[-1][1:] == ("gated", "ScheduleAttemptFailure")


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


def test_a_pod_becomes_active_when_its_back_off_is_over() -> None:
    bench = Bench(FIT)
    queued = fail(bench)

    bench.clock.advance(1.999)
    assert bench.queue.flush_backoff() == 0
    bench.clock.advance(0.001)
    assert bench.queue.flush_backoff() == 1

    assert bench.queue.place_of("ns/pod") is Place.ACTIVE
    assert queued.history[-1] == (START + 2, "active", "BackoffComplete")


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
    assert queued.history[-1] == (START, "in-flight", "PopFromBackoffQ")
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
