"""What brings waiting pods back: events and their hints, gates, activation, and the timer of the pool."""

from __future__ import annotations

from typing import Any

from tests.unit.queue.kit import (
    EVERYTHING,
    FIT,
    NODE_ADD,
    NODE_LABEL,
    NODE_TAINT,
    POD_DELETED,
    START,
    Bench,
    ScriptedGate,
    ScriptedHint,
    fail,
    held,
    make_pod,
)

from bayplan.cluster.pod_info import PodInfo
from bayplan.framework.events import WILDCARD, ActionType, ClusterEvent, EventHint, Hint
from bayplan.framework.queued import QueuedPod
from bayplan.queue import BackoffTimes, Place
from bayplan.queue.places import FORCE_ACTIVATE

# UNSCHEDULABLE to ACTIVE, BACKOFF and GATED


def test_an_event_moves_a_pod_to_back_off_while_it_lasts_and_to_active_after() -> None:
    bench = Bench(FIT)
    early, late = bench.reject("early", "Fit"), bench.reject("late", "Fit")
    late.timestamp -= 60

    assert bench.queue.move_all(NODE_ADD) == 2

    assert bench.queue.place_of("ns/early") is Place.BACKOFF
    assert bench.queue.place_of("ns/late") is Place.ACTIVE
    assert early.last_event == "NodeAdd"
    assert early.history[-1] == (START, "backoff", "NodeAdd")


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
    assert [place for _, place, _ in queued.history].count("gated") == 1


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
