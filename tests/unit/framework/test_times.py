"""Times of plugins: what is noted, what is told on, and which cycles are drawn."""

from __future__ import annotations

import random
from itertools import count, pairwise

import pytest

from bayplan.framework.plugin import PostFilterResult
from bayplan.framework.status import SKIP, Unschedulable
from bayplan.framework.times import PluginTime, PluginTimes, Sampling, status_label


class Asked:
    """A plugin at a point, as the runtime keeps it."""

    name = "Mine"
    times: PluginTimes | None = None


def ticking() -> PluginTimes:
    """A second passes between two looks at the clock."""
    ticks = count()
    return PluginTimes(lambda: float(next(ticks)))


def test_calls_of_one_plugin_at_one_point_are_added_up() -> None:
    times = ticking()
    times.measure("Mine", "Filter", lambda: None)
    times.measure("Mine", "Filter", lambda: None)
    times.measure("Mine", "Score", lambda: 3)

    assert times.all() == [PluginTime("Mine", "Filter", "Success", 2.0), PluginTime("Mine", "Score", "Success", 1.0)]


def test_a_call_that_raises_is_noted_as_an_error_and_raises_on() -> None:
    times = ticking()
    with pytest.raises(ZeroDivisionError):
        times.measure("Mine", "Score", lambda: 1 // 0)

    assert times.all() == [PluginTime("Mine", "Score", "Error", 1.0)]


def test_what_a_call_does_in_turn_is_part_of_it() -> None:
    times, asked = ticking(), Asked()
    asked.times = times

    def outer() -> None:
        assert asked.times is None

    times.measure_once(asked, "Filter", outer)

    assert asked.times is times
    assert times.all() == [PluginTime("Mine", "Filter", "Success", 1.0)]


def test_a_listener_hears_of_what_was_and_of_what_follows() -> None:
    times = ticking()
    heard: list[tuple[str, str, str, float]] = []
    times.add("Mine", "Filter", "Success", 0.5)
    times.pass_on(lambda *time: heard.append(time))
    times.add("Mine", "Bind", "Error", 2.0)

    assert heard == [("Mine", "Filter", "Success", 0.5), ("Mine", "Bind", "Error", 2.0)]


@pytest.mark.parametrize(
    ("answer", "label"),
    [
        (None, "Success"),
        (7, "Success"),
        (SKIP, "Skip"),
        (Unschedulable("no"), "Unschedulable"),
        (PostFilterResult("n"), "Success"),
        (PostFilterResult("", Unschedulable("no")), "Unschedulable"),
    ],
)
def test_the_status_is_that_of_the_answer(answer: object, label: str) -> None:
    assert status_label(answer) == label


def test_about_one_cycle_in_ten_is_drawn_and_no_rhythm_is_kept() -> None:
    sampling = Sampling(draw=random.Random(1).random, monotonic=lambda: 0.0)
    drawn = [number for number in range(20_000) if sampling.is_due()]

    gaps = {later - earlier for earlier, later in pairwise(drawn)}
    assert 1_800 < len(drawn) < 2_200
    assert len(gaps) > 30


def test_no_more_than_so_many_cycles_a_second_are_drawn() -> None:
    now = 0.0
    sampling = Sampling(draw=random.Random(1).random, monotonic=lambda: now, most_per_second=20)
    drawn = 0
    for _ in range(10_000):
        now += 0.0005
        drawn += sampling.is_due()

    assert 80 < drawn <= 100


def test_no_cycle_can_be_asked_for() -> None:
    sampling = Sampling(draw=random.Random(1).random, monotonic=lambda: 0.0, share=0.0)

    assert not any(sampling.is_due() for _ in range(1000))


def test_every_cycle_can_be_asked_for() -> None:
    sampling = Sampling(draw=lambda: 0.5, monotonic=lambda: 0.0, share=1.0, most_per_second=20)

    assert all(sampling.is_due() for _ in range(10))
