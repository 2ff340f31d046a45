"""Changed and deleted pods, and what the queue reports about itself."""

from __future__ import annotations

import pytest
from tests.unit.queue.kit import (
    FIT,
    GATES_GONE,
    NODE_ADD,
    POD_ASSIGNED,
    START,
    Bench,
    ScriptedHint,
    fail,
    make_pod,
    queue_itself,
    sort_key_of,
)

from bayplan.framework.events import WILDCARD, ActionType, ClusterEvent, EventHint, Resource
from bayplan.framework.plugin import Plugin
from bayplan.framework.queued import QueuedPod
from bayplan.observe.clock import VirtualClock
from bayplan.queue import Nominations, Place, QueuePolicy, SchedulingQueue

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
    class ByPriority(Plugin):
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
