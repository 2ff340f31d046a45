from __future__ import annotations

from tests.unit.queue.kit import PROFILE, make_queued

from bayplan.queue.backoff import BackoffQueue, BackoffTimes
from bayplan.queue.heap import PodHeap
from bayplan.queue.ordering import by_priority
from bayplan.queue.places import Place
from bayplan.queue.unschedulable import UnschedulablePool
from bayplan.queue.waiting import WaitingPods


def make_waiting() -> WaitingPods:
    waiting = WaitingPods(
        PodHeap(by_priority, fallback=by_priority),
        BackoffQueue(BackoffTimes(), by_priority),
        UnschedulablePool({PROFILE}),
    )
    waiting.active.push(make_queued("active"))
    waiting.backoff.push(make_queued("backoff"))
    rejected, gated = make_queued("unschedulable"), make_queued("gated")
    rejected.unschedulable_plugins = {"Fit"}
    gated.gating_plugin = "Gate"
    waiting.pool.add(rejected)
    waiting.pool.add(gated)
    return waiting


def test_each_pod_is_found_in_its_place() -> None:
    waiting = make_waiting()

    assert {place.value: waiting.place_of(f"ns/{place.value}") for place in waiting.by_place()} == {
        place.value: place for place in waiting.by_place()
    }
    assert waiting.place_of("ns/nobody") is None
    assert waiting.get("ns/nobody") is None


def test_each_pod_is_removed_from_its_place() -> None:
    waiting = make_waiting()

    for place in list(Place)[:4]:
        removed = waiting.remove(f"ns/{place.value}")
        assert removed is not None
        assert removed.info.name == place.value

    assert waiting.remove("ns/active") is None
    assert not any(waiting.by_place().values())


def test_rejections_are_counted() -> None:
    assert make_waiting().rejections() == {("Fit", PROFILE): 1}
