"""The queue as tasks use it: waiting for the next pod, and the timers.

`SchedulingQueue` never waits. This adds the two things that take time: waiting until there is a pod, and the flushes,
of the back-off at the start of each wall-clock second, of the unschedulable pods every half minute.
"""

from __future__ import annotations

import asyncio
import logging
from math import floor

from bayplan.framework.queued import QueuedPod
from bayplan.observe.clock import Clock
from bayplan.queue.machine import SchedulingQueue

__all__ = ["Doorbell", "QueueShell"]

_log = logging.getLogger(__name__)

BACKOFF_FLUSH_SECONDS = 1.0
UNSCHEDULABLE_FLUSH_SECONDS = 30.0


class Doorbell:
    """Rung by the machine when a pod may be due: `SchedulingQueue(..., on_ready=bell.ring)`."""

    def __init__(self) -> None:
        self._rung = asyncio.Event()

    def ring(self) -> None:
        self._rung.set()

    async def wait_for_next(self) -> None:
        """Wait for a ring after this call."""
        self._rung.clear()
        await self._rung.wait()


class QueueShell:
    def __init__(self, queue: SchedulingQueue, bell: Doorbell, clock: Clock) -> None:
        self._queue = queue
        self._bell = bell
        self._clock = clock
        self._is_closed = False

    async def wait_pop(self) -> QueuedPod | None:
        """The next pod, as soon as there is one; None once the shell is closed."""
        while not self._is_closed:
            # Nothing runs between an empty pop and the wait, so no ring can be missed.
            queued = self._queue.pop()
            if queued is not None:
                return queued
            await self._bell.wait_for_next()
        return None

    def close(self) -> None:
        """Wake all waiters with None; queued pods stay."""
        self._is_closed = True
        self._bell.ring()

    async def run_timers(self) -> None:
        """Flush until cancelled. A flush that raises is logged and repeated a second later."""
        flushed_at = self._clock.monotonic()
        while True:
            await self._clock.sleep(_until_next_tick(self._clock.now()))
            try:
                self._queue.flush_backoff()
                if self._clock.monotonic() - flushed_at >= UNSCHEDULABLE_FLUSH_SECONDS:
                    flushed_at = self._clock.monotonic()
                    self._queue.flush_unschedulable()
            except Exception:
                _log.exception("flushing the queue failed; the next flush is in a second")


def _until_next_tick(now: float) -> float:
    return floor(now) + BACKOFF_FLUSH_SECONDS - now
