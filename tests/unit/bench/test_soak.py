"""The verdict of a soak: it must see a leak, and must not take noise or warm-up for one."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from bench.soak import Sample, trend, verdict

MIB = 1 << 20
SAMPLES = 200
PODS = 60_000


def samples(
    *,
    rss: Callable[[int], float] = lambda bound: 100 * MIB,
    blocks: Callable[[int], float] = lambda bound: 500_000,
    objects: Callable[[int], float] = lambda bound: 60_000,
    descriptors: Callable[[int], float] = lambda bound: 40,
    waiting: Callable[[int], float] = lambda bound: 800,
    pods: int = PODS,
) -> list[Sample]:
    """Ten minutes at 100 pods a second, each figure a function of the pods bound so far."""
    dice = random.Random(1)
    made = []
    for number in range(SAMPLES):
        bound = pods * number // (SAMPLES - 1)
        made.append(
            Sample(
                seconds=3.0 * number,
                rss_bytes=int(rss(bound) + dice.uniform(-0.5, 0.5) * MIB),
                blocks=int(blocks(bound) + dice.uniform(-4000, 4000)),
                objects=int(objects(bound) + dice.uniform(-400, 400)),
                garbage=0,
                connections=12,
                descriptors=int(descriptors(bound)),
                tasks=40,
                events_waiting=int(waiting(bound)),
                events_dropped=0,
                cached_pods=1000,
                shapes=1200,
                bound=bound,
                cpu_seconds=0.0,
            )
        )
    return made


def test_noise_around_a_level_is_flat() -> None:
    assert verdict(samples(), PODS) == []


def test_what_fills_during_warm_up_is_flat() -> None:
    filling = samples(rss=lambda bound: 80 * MIB + min(bound, 15_000) * 1500)

    assert verdict(filling, PODS) == []


def test_an_allocator_that_took_one_more_arena_is_flat() -> None:
    assert verdict(samples(rss=lambda bound: (100 + (bound > 40_000)) * MIB), PODS) == []


def test_a_uid_that_stays_behind_for_each_pod_is_a_leak() -> None:
    """A string of 36 characters, and its place in a dictionary."""
    leaking = samples(rss=lambda bound: 100 * MIB + 85 * bound, blocks=lambda bound: 500_000 + bound)

    assert verdict(leaking, PODS) == ["rss_bytes rises", "blocks rises"]
    assert trend(leaking, "rss_bytes").per_pod == pytest.approx(85, abs=15)


def test_an_object_that_stays_behind_for_every_tenth_pod_is_a_leak() -> None:
    assert verdict(samples(objects=lambda bound: 60_000 + bound / 10), PODS) == ["objects rises"]


def test_descriptors_are_counted_in_all_not_per_pod() -> None:
    assert verdict(samples(descriptors=lambda bound: 40 + bound / 5000), PODS) == ["descriptors rises"]


def test_events_that_pile_up_are_seen() -> None:
    assert verdict(samples(waiting=lambda bound: bound / 10), PODS) == ["events_waiting rises"]


def test_a_short_run_cannot_tell() -> None:
    assert "too few to tell" in verdict(samples(pods=6000), 6000)[0]
    assert "too few to tell" in verdict([], 0)[0]


def test_pods_that_were_not_bound_are_reported() -> None:
    assert verdict(samples(), 2 * PODS) == [f"{PODS} pods were not bound"]
