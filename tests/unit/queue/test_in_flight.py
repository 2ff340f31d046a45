from __future__ import annotations

from tests.unit.queue.kit import NODE_ADD, NODE_DELETE, POD_DELETED

from bayplan.queue.in_flight import InFlight


def since(in_flight: InFlight, uid: str) -> list[str] | None:
    events = in_flight.events_since(uid)
    return None if events is None else [str(recorded.new) for recorded in events]


def test_a_pod_sees_the_events_after_it_was_popped() -> None:
    in_flight = InFlight()
    in_flight.begin("a")
    in_flight.record(NODE_ADD, None, "one")
    in_flight.begin("b")
    in_flight.record(NODE_DELETE, "gone", "two")

    assert since(in_flight, "a") == ["one", "two"]
    assert since(in_flight, "b") == ["two"]


def test_events_are_not_kept_while_nobody_is_in_flight() -> None:
    in_flight = InFlight()

    assert not in_flight.record(NODE_ADD, None, "one")
    assert in_flight.recorded == 0


def test_events_are_dropped_when_the_oldest_pod_is_younger() -> None:
    in_flight = InFlight()
    in_flight.begin("a")
    in_flight.record(NODE_ADD, None, "one")
    in_flight.begin("b")
    in_flight.record(NODE_ADD, None, "two")
    in_flight.begin("c")

    in_flight.end("b")
    assert in_flight.recorded == 2
    in_flight.end("a")
    assert in_flight.recorded == 0
    assert since(in_flight, "c") == []


def test_a_young_pod_that_ends_first_keeps_the_events_of_the_old_one() -> None:
    in_flight = InFlight()
    in_flight.begin("a")
    in_flight.begin("b")
    in_flight.record(NODE_ADD, None, "one")

    in_flight.end("b")

    assert since(in_flight, "a") == ["one"]


def test_when_the_last_pod_ends_nothing_is_kept() -> None:
    in_flight = InFlight()
    in_flight.begin("a")
    in_flight.record(NODE_ADD, None, "one")

    in_flight.end("a")

    assert (len(in_flight), in_flight.recorded) == (0, 0)


def test_ending_twice_or_a_stranger_does_nothing() -> None:
    in_flight = InFlight()
    in_flight.begin("a")
    in_flight.record(NODE_ADD, None, "one")

    in_flight.end("b")

    assert since(in_flight, "a") == ["one"]


def test_the_events_of_a_pod_that_is_not_in_flight_are_unknown() -> None:
    assert since(InFlight(), "a") is None


def test_too_many_events_are_forgotten_and_the_pods_that_may_miss_one_are_told() -> None:
    in_flight = InFlight(limit=3)
    in_flight.begin("old")
    in_flight.record(NODE_ADD, None, "0")
    in_flight.begin("young")
    for number in range(1, 4):
        in_flight.record(NODE_ADD, None, str(number))

    assert in_flight.recorded == 3
    assert since(in_flight, "old") is None
    assert since(in_flight, "young") == ["1", "2", "3"]


def test_events_are_counted_by_name() -> None:
    in_flight = InFlight()
    in_flight.begin("a")
    for event in (NODE_ADD, NODE_ADD, POD_DELETED):
        in_flight.record(event, None, None)

    assert in_flight.count_by_event() == {"NodeAdd": 2, "AssignedPodDelete": 1}
    assert "a" in in_flight
    assert "b" not in in_flight


def test_many_pods_that_wait_for_a_minute_look_at_few_events_each() -> None:
    """As the pods of a group that is rejected at Permit: each alone would look at all that others did meanwhile."""
    in_flight = InFlight()
    for number in range(10):
        in_flight.begin(f"waits-{number}")
    for _ in range(5000):
        in_flight.record(NODE_ADD, None, None)
    in_flight.begin("late")
    in_flight.record(NODE_ADD, None, None)

    assert in_flight.recorded <= 2000
    assert all(in_flight.events_since(f"waits-{number}") is None for number in range(10))
    assert len(in_flight.events_since("late") or ()) == 1
