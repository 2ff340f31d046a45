"""The queues as one, and the history of moves."""

from __future__ import annotations

from tests.unit.queue.kit import PROFILE, make_queued

from bayplan.queue.backoff import BackoffQueue, BackoffTimes
from bayplan.queue.heap import PodHeap, by_priority
from bayplan.queue.places import HISTORY_LENGTH, MoveHistory, Place, Queues
from bayplan.queue.unschedulable import UnschedulablePool


def make_queues() -> Queues:
    queues = Queues(
        PodHeap(by_priority, fallback=by_priority),
        BackoffQueue(BackoffTimes(), by_priority),
        UnschedulablePool({PROFILE}),
    )
    queues.active.push(make_queued("active"))
    queues.backoff.push(make_queued("backoff"))
    rejected, gated = make_queued("unschedulable"), make_queued("gated")
    rejected.unschedulable_plugins = frozenset({"Fit"})
    gated.gating_plugin = "Gate"
    queues.pool.add(rejected)
    queues.pool.add(gated)
    return queues


def test_each_pod_is_found_in_its_place() -> None:
    queues = make_queues()

    assert {place.value: queues.place_of(f"ns/{place.value}") for place in queues.by_place()} == {
        place.value: place for place in queues.by_place()
    }
    assert queues.place_of("ns/nobody") is None
    assert queues.get("ns/nobody") is None


def test_each_pod_is_removed_from_its_place() -> None:
    queues = make_queues()

    for place in list(Place)[:4]:
        removed = queues.remove(f"ns/{place.value}")
        assert removed is not None
        assert removed.info.name == place.value

    assert queues.remove("ns/active") is None
    assert not any(queues.by_place().values())


def test_rejections_are_counted() -> None:
    assert make_queues().rejections() == {("Fit", PROFILE): 1}


def test_each_move_is_noted_with_its_time_and_cause() -> None:
    history = MoveHistory(lambda: 7.0)
    queued = make_queued()

    history.entered(queued, Place.ACTIVE, "PodAdd")
    history.popped(queued, "Pop")

    assert queued.history == [(7.0, "active", "PodAdd"), (7.0, "in-flight", "Pop")]
    assert history.incoming == {("active", "PodAdd"): 1}


def test_a_pod_that_stays_gated_enters_once() -> None:
    history = MoveHistory(lambda: 7.0)
    queued = make_queued()
    for _ in range(3):
        history.entered(queued, Place.GATED, "NodeAdd")

    assert len(queued.history) == 1
    assert history.incoming == {("gated", "NodeAdd"): 1}


def test_a_history_is_bounded_and_keeps_its_beginning() -> None:
    history = MoveHistory(lambda: 7.0)
    queued = make_queued()
    for number in range(3 * HISTORY_LENGTH):
        history.entered(queued, Place.ACTIVE, str(number))

    causes = [cause for _, _, cause in queued.history]

    assert len(causes) == HISTORY_LENGTH
    assert causes[0] == "0"
    assert causes[-1] == str(3 * HISTORY_LENGTH - 1)
