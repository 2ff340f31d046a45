from __future__ import annotations

from bayplan.client.backoff import Backoff, BackoffSettings

from .support import no_draw


def test_delays_grow_to_a_ceiling_and_start_over_after_a_success() -> None:
    backoff = Backoff(BackoffSettings(initial_seconds=1, factor=2, ceiling_seconds=5, jitter=0.5), draw=no_draw)

    assert [backoff.next_delay() for _ in range(5)] == [1, 2, 4, 5, 5]
    assert backoff.failures == 5
    backoff.succeeded()
    assert backoff.next_delay() == 1


def test_jitter_only_lengthens() -> None:
    backoff = Backoff(BackoffSettings(initial_seconds=1, jitter=0.5), draw=lambda: 0.5)

    assert backoff.next_delay() == 1.25


def test_a_night_of_failures_does_not_overflow() -> None:
    backoff = Backoff(BackoffSettings(factor=5.0), draw=no_draw)

    assert [backoff.next_delay() for _ in range(10_000)][-1] == 30.0
