from __future__ import annotations

from bayplan.observe.clock import VirtualClock
from bayplan.observe.logs import RepeatLimit


def test_the_first_few_of_a_kind_are_written_and_the_rest_counted() -> None:
    limit = RepeatLimit(VirtualClock().monotonic, burst=3)

    assert [limit.admit("a") for _ in range(5)] == [0, 0, 0, None, None]
    assert limit.admit("b") == 0
    assert limit.left_out() == 2


def test_after_the_window_one_line_tells_how_many_were_left_out() -> None:
    clock = VirtualClock()
    limit = RepeatLimit(clock.monotonic, burst=1, window_seconds=10.0)
    for _ in range(4):
        limit.admit("a")
    clock.advance(10.0)

    assert limit.admit("a") == 3
    assert limit.admit("a") is None
    clock.advance(10.0)
    assert limit.admit("a") == 1


def test_kinds_without_end_do_not_fill_the_memory() -> None:
    limit = RepeatLimit(VirtualClock().monotonic, burst=1)
    for number in range(5_000):
        limit.admit(number)

    assert len(limit._kinds) == 1024
