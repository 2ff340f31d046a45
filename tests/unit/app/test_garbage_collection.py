from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Iterator

import pytest

from bayplan.app.garbage_collection import GarbageCollection
from bayplan.observe.clock import VirtualClock
from bayplan.observe.freed_memory import FreedMemory


class SlowCollector:
    """Stands in for `gc.collect`: notes what it is asked for, and takes its time by the clock."""

    def __init__(self, clock: VirtualClock, *, seconds: float = 0.1) -> None:
        self._clock = clock
        self._seconds = seconds
        self.new = 0
        self.asked: list[int] = []

    def collect(self, generation: int = 2) -> int:
        self.asked.append(generation)
        self.new = 0
        self._clock.advance(self._seconds)
        return 0


def collection(
    clock: VirtualClock, *, is_idle: Callable[[], bool], pods_taken: Callable[[], int] = lambda: 0
) -> GarbageCollection:
    return GarbageCollection(clock, is_idle=is_idle, pods_taken=pods_taken)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def collector(clock: VirtualClock, monkeypatch: pytest.MonkeyPatch) -> SlowCollector:
    slow = SlowCollector(clock)
    monkeypatch.setattr(gc, "collect", slow.collect)
    monkeypatch.setattr(gc, "get_count", lambda: (slow.new, 0, 0))
    return slow


@pytest.fixture
def as_found() -> Iterator[tuple[int, int, int]]:
    """Those of a new interpreter: a command line that ran in this process before has raised them."""
    before, found = gc.get_threshold(), (700, 10, 10)
    gc.set_threshold(*found)
    yield found
    gc.set_threshold(*before)
    gc.unfreeze()


def test_the_collector_stays_on_as_a_safety_net_and_is_left_as_it_was_found(
    clock: VirtualClock, as_found: tuple[int, int, int]
) -> None:
    one = collection(clock, is_idle=lambda: True)
    one.start()
    one.settle()
    assert gc.isenabled()
    assert as_found[0] < gc.get_threshold()[0] < 1_000_000
    assert gc.get_freeze_count() > 0

    one.stop()
    one.stop()
    assert gc.get_threshold() == as_found
    assert gc.get_freeze_count() == 0


def test_new_objects_are_looked_at_when_nothing_else_is_to_be_done(
    clock: VirtualClock, collector: SlowCollector
) -> None:
    is_idle = False
    one = collection(clock, is_idle=lambda: is_idle)
    collector.new = 5_000
    one.collect_due()
    assert collector.asked == []

    is_idle = True
    one.collect_due()
    assert collector.asked == [1]


def test_many_new_objects_are_looked_at_in_a_rush_too(clock: VirtualClock, collector: SlowCollector) -> None:
    one = collection(clock, is_idle=lambda: False)
    collector.new = 60_000
    one.collect_due()

    assert collector.asked == [1]


def test_a_handful_of_objects_is_not_worth_a_look(clock: VirtualClock, collector: SlowCollector) -> None:
    one = collection(clock, is_idle=lambda: True)
    collector.new = 100
    one.collect_due()

    assert collector.asked == []


def test_looking_takes_a_hundredth_of_the_time_at_most(clock: VirtualClock, collector: SlowCollector) -> None:
    one = collection(clock, is_idle=lambda: False)
    began = clock.monotonic()
    for _ in range(200):
        collector.new = 1_000_000
        clock.advance(1.0)
        one.collect_due()

    spent = 0.1 * len(collector.asked)
    assert 0.005 < spent / (clock.monotonic() - began) <= 0.0101


def test_everything_is_looked_at_every_few_minutes_and_in_a_rush_that_never_ends_at_last(
    clock: VirtualClock, collector: SlowCollector
) -> None:
    is_idle = False
    one = collection(clock, is_idle=lambda: is_idle)
    clock.advance(400.0)
    one.collect_due()
    assert collector.asked == []

    is_idle = True
    one.collect_due()
    assert collector.asked == [2]

    is_idle = False
    clock.advance(1_300.0)
    one.collect_due()
    assert collector.asked == [2, 2]


async def test_it_looks_once_a_second_while_idle(clock: VirtualClock, collector: SlowCollector) -> None:
    collector.new = 1_000_000
    running = asyncio.create_task(collection(clock, is_idle=lambda: True).run())
    await clock.run_for(0.5)
    assert collector.asked == []
    await clock.run_for(1.0)
    assert collector.asked == [1]

    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_it_looks_ten_times_a_second_while_pods_are_on_their_way(
    clock: VirtualClock, collector: SlowCollector
) -> None:
    running = asyncio.create_task(collection(clock, is_idle=lambda: False).run())
    collector.new = 1_000_000
    await clock.run_for(0.15)
    assert collector.asked == [1]

    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


def test_memory_is_given_back_once_the_scheduler_was_idle_each_time_for_some_seconds(
    clock: VirtualClock, collector: SlowCollector, monkeypatch: pytest.MonkeyPatch
) -> None:
    given_back: list[int] = []
    monkeypatch.setattr(FreedMemory, "give_back", lambda self: given_back.append(look))
    is_idle = True
    one = collection(clock, is_idle=lambda: is_idle)
    for look in range(12):
        is_idle = look != 4
        clock.advance(1.0)
        one.collect_due()

    assert given_back == [9, 10, 11]


def test_memory_is_kept_while_pods_come_and_go_between_two_looks(
    clock: VirtualClock, collector: SlowCollector, monkeypatch: pytest.MonkeyPatch
) -> None:
    given_back: list[int] = []
    monkeypatch.setattr(FreedMemory, "give_back", lambda self: given_back.append(look))
    taken = 0
    one = collection(clock, is_idle=lambda: True, pods_taken=lambda: taken)
    for look in range(24):
        taken += look < 12
        clock.advance(1.0)
        one.collect_due()

    assert given_back == list(range(16, 24))
