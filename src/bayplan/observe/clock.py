"""The clock interface: time is an input, so that tests and simulations control it.

Everything in Bayplan that reads the time or waits takes a `Clock`. `SystemClock` is the machine's clock; `VirtualClock`
advances only in calls of its own methods. This module starts no threads and keeps no global clock.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
from typing import Protocol, runtime_checkable

# Iterations of the event loop in `VirtualClock.run_for` before it advances to the next deadline. A woken task may need
# several iterations (queue, lock, response) before it sleeps again.
_TURNS_BETWEEN_DEADLINES = 20


@runtime_checkable
class Clock(Protocol):
    """Reads the time and waits."""

    def now(self) -> float:
        """Seconds since the Unix epoch."""

    def monotonic(self) -> float:
        """Seconds that never go backwards; only differences mean something."""

    async def sleep(self, seconds: float) -> None:
        """Wait for `seconds`; zero or less still yields to the event loop once."""


class SystemClock:
    """The machine's clock."""

    # Called two dozen times for every pod, so without a Python function around them.
    now = staticmethod(time.time)
    monotonic = staticmethod(time.monotonic)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(max(0.0, seconds))


class VirtualClock:
    """A clock that advances only by `advance` and `run_for`."""

    def __init__(self, start: float = 1_700_000_000.0) -> None:
        self._start = start
        self._elapsed = 0.0
        self._order = itertools.count()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []

    def now(self) -> float:
        return self._start + self._elapsed

    def monotonic(self) -> float:
        return self._elapsed

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._elapsed + seconds, next(self._order), woken))
        await woken

    @property
    def sleeping(self) -> int:
        """How many sleepers wait for a deadline."""
        return sum(1 for _, _, woken in self._sleepers if not woken.done())

    def next_deadline(self) -> float | None:
        """The earliest deadline on the monotonic scale, or None without sleepers."""
        while self._sleepers and self._sleepers[0][2].done():
            heapq.heappop(self._sleepers)
        return self._sleepers[0][0] if self._sleepers else None

    def advance(self, seconds: float) -> None:
        """Move time forward at once and wake, in order of deadline, all sleepers whose deadline has passed."""
        if seconds < 0:
            raise ValueError(f"a clock cannot go back: advance({seconds})")
        self.advance_to(self._elapsed + seconds)

    def advance_to(self, elapsed: float) -> None:
        """The same, up to a time on the monotonic scale."""
        self._elapsed = elapsed
        while (deadline := self.next_deadline()) is not None and deadline <= self._elapsed:
            heapq.heappop(self._sleepers)[2].set_result(None)

    def move_to(self, elapsed: float) -> None:
        """Move time without waking sleepers: they wait for the next `advance`, or until they are cancelled."""
        self._elapsed = elapsed

    async def run_for(self, seconds: float) -> None:
        """Move time forward from deadline to deadline and let the woken tasks run in between.

        A task that sleeps one second at a time is woken `seconds` times, which `advance` alone would not do.
        """
        end = self._elapsed + seconds
        await _let_tasks_run()
        while (deadline := self.next_deadline()) is not None and deadline <= end:
            self.advance(max(0.0, deadline - self._elapsed))
            await _let_tasks_run()
        self.advance(max(0.0, end - self._elapsed))
        await _let_tasks_run()


async def _let_tasks_run() -> None:
    for _ in range(_TURNS_BETWEEN_DEADLINES):
        await asyncio.sleep(0)
