"""A thread that notices when the event loop does not turn: a plugin that computes forever stops everything else.

A task of the loop moves a mark several times a second; the thread compares it with the clock. A loop that stands still
is logged with its stack and with what the caller can tell of it, and counted; after a limit the process ends, so that
another replica takes over. The same holds for a process that was asked to stop and does not. A process that was paused
as a whole, or a machine too busy to run even this thread, is no stall.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import threading
import traceback
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from types import FrameType

import structlog

from bayplan.observe.clock import SystemClock

__all__ = ["StallLimits", "Watchdog"]

_log = structlog.get_logger()
_LINES_OF_STACK = 15
_EXIT_STATUS = 1


@dataclass(frozen=True, kw_only=True)
class StallLimits:
    notice_seconds: float = 1.0
    end_seconds: float = 60.0
    """After so long the process ends; 0 for never."""
    stop_seconds: float = 25.0
    """How long a process may take that was asked to stop; kubelets wait for 30 s by default."""


class Watchdog:
    def __init__(
        self,
        limits: StallLimits,
        *,
        describe: Callable[[FrameType], Mapping[str, str]],
        on_stall: Callable[[], None],
        end: Callable[[int], object] = os._exit,
    ) -> None:
        self._limits = limits
        self._describe = describe
        self._on_stall = on_stall
        self._end = end
        self._now = SystemClock.monotonic
        self._every_seconds = limits.notice_seconds / 5
        self._mark = 0.0
        self._reported: float | None = None
        """The mark of a stall that is logged already."""
        self._stop_asked: float | None = None
        self._is_over = threading.Event()
        self._loop_thread = 0

    @contextlib.asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Watch the loop that runs this."""
        self._loop_thread, self._mark = threading.get_ident(), self._now()
        thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)
        marking = asyncio.create_task(self._keep_marking(), name="watchdog")
        thread.start()
        try:
            yield
        finally:
            self._is_over.set()
            marking.cancel()
            await asyncio.gather(marking, return_exceptions=True)
            thread.join()

    def follow_signals(self, *numbers: signal.Signals) -> None:
        """Note when one of these comes, even while the loop stands still. Call it after the loop's own handlers are
        set: those run as well, when the loop turns."""
        for number in numbers:
            signal.signal(number, self._note_stop)

    def _note_stop(self, number: int, frame: FrameType | None) -> None:
        if self._stop_asked is None:
            self._stop_asked = self._now()

    async def _keep_marking(self) -> None:
        while True:
            self._mark = self._now()
            await asyncio.sleep(self._every_seconds)

    def _watch(self) -> None:
        before = self._now()
        while not self._is_over.wait(self._every_seconds):
            now = self._now()
            if now - before > self._limits.notice_seconds:
                # This thread stood still as well.
                self._mark = max(self._mark, now)
            before = now
            self._look(now)

    def _look(self, now: float) -> None:
        limits, mark = self._limits, self._mark
        stalled = now - mark
        if stalled >= limits.notice_seconds and self._reported != mark:
            self._reported = mark
            self._on_stall()
            self._report("the event loop does not turn", seconds=round(stalled, 1))
        if limits.end_seconds and stalled >= limits.end_seconds:
            self._report("the event loop stands still for too long; the process ends", seconds=round(stalled, 1))
            self._end(_EXIT_STATUS)
        elif self._stop_asked is not None and now - self._stop_asked >= limits.stop_seconds:
            self._report("asked to stop and still at work; the process ends", seconds=round(now - self._stop_asked, 1))
            self._end(_EXIT_STATUS)

    def _report(self, what: str, *, seconds: float) -> None:
        frame = sys._current_frames().get(self._loop_thread)
        told: Mapping[str, str] = {}
        stack = ""
        if frame is not None:
            stack = "".join(traceback.format_stack(frame)[-_LINES_OF_STACK:])
            with contextlib.suppress(Exception):
                told = self._describe(frame)
        _log.error(what, seconds=seconds, **told, stack=stack)
