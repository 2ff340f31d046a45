"""The watchdog: a loop that stands still is reported with what it does, and ends the process after a limit."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable
from typing import Any

from structlog.testing import capture_logs

from bayplan.observe.clock import SystemClock
from bayplan.observe.watchdog import StallLimits, Watchdog


class Watched:
    """A watchdog with everything that it did; `spin` holds the loop until something is true."""

    def __init__(self, **limits: float) -> None:
        self.stalls = 0
        self.ended = threading.Event()
        self.watchdog = Watchdog(
            StallLimits(**limits), describe=lambda frame: {"pod": "default/p"}, on_stall=self._count, end=self._end
        )

    def _count(self) -> None:
        self.stalls += 1

    def _end(self, status: int) -> None:
        assert status == 1
        self.ended.set()

    def spin(self, until: Callable[[], bool], seconds: float = 20.0) -> None:
        deadline = SystemClock.monotonic() + seconds
        while not until() and SystemClock.monotonic() < deadline:
            pass


async def test_a_loop_that_turns_is_left_alone() -> None:
    watched = Watched(notice_seconds=1.0, end_seconds=2.0)
    async with watched.watchdog.watching():
        await asyncio.sleep(0.1)

    assert (watched.stalls, watched.ended.is_set()) == (0, False)


async def test_a_loop_that_stands_still_is_reported_with_its_stack_and_then_ends_the_process() -> None:
    watched = Watched(notice_seconds=0.3, end_seconds=0.6)
    with capture_logs() as logs:
        async with watched.watchdog.watching():
            watched.spin(watched.ended.is_set)

    first, *_, last = logs
    assert watched.ended.is_set()
    assert (first["event"], first["pod"]) == ("the event loop does not turn", "default/p")
    assert "watched.spin(watched.ended.is_set)" in first["stack"]
    assert last["event"] == "the event loop stands still for too long; the process ends"
    assert sum(line["event"] == first["event"] for line in logs) == watched.stalls


async def test_a_limit_of_zero_never_ends_it() -> None:
    watched = Watched(notice_seconds=0.05, end_seconds=0.0)
    async with watched.watchdog.watching():
        watched.spin(watched.ended.is_set, seconds=0.6)

    assert not watched.ended.is_set()


async def test_a_signal_to_stop_counts_while_the_loop_stands_still() -> None:
    watched = Watched(notice_seconds=0.1, end_seconds=0.0, stop_seconds=0.3)
    loop, before = asyncio.get_running_loop(), signal.getsignal(signal.SIGUSR1)
    heard = asyncio.Event()
    loop.add_signal_handler(signal.SIGUSR1, heard.set)
    watched.watchdog.follow_signals(signal.SIGUSR1)
    try:
        async with watched.watchdog.watching():
            os.kill(os.getpid(), signal.SIGUSR1)
            watched.spin(watched.ended.is_set)
            assert watched.ended.is_set()
            async with asyncio.timeout(20):
                await heard.wait()
    finally:
        loop.remove_signal_handler(signal.SIGUSR1)
        signal.signal(signal.SIGUSR1, before)


async def test_what_cannot_be_described_is_reported_without() -> None:
    def fails(frame: Any) -> dict[str, str]:
        raise ValueError

    ended = threading.Event()
    watchdog = Watchdog(
        StallLimits(notice_seconds=0.1, end_seconds=0.2), describe=fails, on_stall=int, end=lambda _: ended.set()
    )
    with capture_logs() as logs:
        async with watchdog.watching():
            Watched().spin(ended.is_set)

    assert logs and "pod" not in logs[0]


def test_limits_have_defaults_that_fit_a_kubelet() -> None:
    assert StallLimits().stop_seconds < 30 < StallLimits().end_seconds
