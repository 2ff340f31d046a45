"""The clock of the machine is set, by hand or by a time server: waiting pods wait no longer and no shorter for it."""

from __future__ import annotations

import pytest
from tests.unit.queue.kit import FIT, START, Bench, make_queued

from bayplan.observe.clock import VirtualClock
from bayplan.queue import Place
from bayplan.queue.heap import PodHeap, by_priority

HOUR = 3600.0


class SettableClock(VirtualClock):
    """Its time of day can be set; the seconds that pass stay the same."""

    def __init__(self) -> None:
        super().__init__(START)
        self.ahead = 0.0

    def now(self) -> float:
        return super().now() + self.ahead


class Settable(Bench):
    def __init__(self) -> None:
        self.watch = SettableClock()
        super().__init__(FIT, clock=self.watch)

    def fail(self, name: str = "pod", *plugins: str) -> Place:
        """Without plugins, with an error, which keeps the pod until its back-off is over."""
        info = self.add(name)
        return self.queue.add_unschedulable_if_not_present(self.pop(), unschedulable_plugins=plugins, info=info)

    def after(self, seconds: float) -> Place | None:
        """Where the pod is then; the timers run each second."""
        for _ in range(int(seconds)):
            self.watch.advance(1.0)
            self.queue.flush_backoff()
        return self.queue.place_of("ns/pod")


@pytest.mark.parametrize("jump", [HOUR, -HOUR], ids=["ahead", "back"])
def test_a_back_off_lasts_as_long_as_it_was_to_last(jump: float) -> None:
    bench = Settable()
    assert bench.fail() is Place.BACKOFF

    bench.watch.ahead = jump
    bench.queue.flush_backoff()
    assert bench.queue.place_of("ns/pod") is Place.BACKOFF
    assert bench.after(2) is Place.ACTIVE


@pytest.mark.parametrize("jump", [HOUR, -HOUR], ids=["ahead", "back"])
def test_a_back_off_that_began_while_the_clock_was_wrong_ends_in_time(jump: float) -> None:
    bench = Settable()
    bench.watch.ahead = jump
    assert bench.fail() is Place.BACKOFF

    bench.watch.ahead = 0.0
    bench.queue.flush_backoff()
    assert bench.queue.place_of("ns/pod") is Place.BACKOFF
    assert bench.after(2) is Place.ACTIVE


def test_no_pod_has_waited_for_five_minutes_because_the_clock_was_set() -> None:
    bench = Settable()
    assert bench.fail("pod", "Fit") is Place.UNSCHEDULABLE

    bench.watch.ahead = HOUR
    assert bench.queue.flush_unschedulable() == 0
    bench.watch.advance(301.0)
    assert bench.queue.flush_unschedulable() == 1


def test_a_pod_that_waited_for_five_minutes_is_tried_though_the_clock_was_set_back() -> None:
    bench = Settable()
    bench.watch.ahead = HOUR
    assert bench.fail("pod", "Fit") is Place.UNSCHEDULABLE

    bench.watch.ahead = 0.0
    bench.watch.advance(301.0)
    assert bench.queue.flush_unschedulable() == 1


def test_pods_that_came_before_the_clock_was_set_back_stay_first() -> None:
    bench = Settable()
    for name in ("a", "b"):
        bench.add(name)
        bench.watch.advance(1.0)
    bench.watch.ahead = -HOUR
    bench.add("c")

    assert [bench.pop().info.name for _ in range(3)] == ["a", "b", "c"]


def test_a_clock_that_drifts_a_little_is_not_set() -> None:
    bench = Settable()
    assert bench.fail() is Place.BACKOFF
    before = bench.queue.get("ns/pod")
    assert before is not None
    expiration = before.backoff_expiration
    bench.watch.ahead = 0.5
    bench.queue.flush_backoff()

    assert before.backoff_expiration == expiration


def test_a_heap_whose_key_fails_when_it_is_sorted_again_falls_back() -> None:
    is_broken = False

    def key(queued: object) -> int:
        if is_broken:
            raise RuntimeError("broken")
        return 0

    heap = PodHeap(key, fallback=by_priority)
    heap.push(make_queued("low", priority=1))
    heap.push(make_queued("high", priority=2))
    is_broken = True
    heap.sort_again()

    first = heap.pop()
    assert first is not None
    assert first.info.name == "high"
