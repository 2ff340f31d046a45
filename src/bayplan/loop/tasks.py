"""Work beside the main path: every task is named, kept until it ends, and its failure is reported.

Most of it is bindings, and nearly each is one request. Those share a few dozen tasks, which run one after the other: a
task for each would be created, scheduled and destroyed for every pod, mostly to wait for a free connection.

What the work does is up to the caller. When so much is under way that deciding further ahead makes no sense, the
scheduler waits here for room.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Protocol

from bayplan.observe.clock import Clock

__all__ = ["BriefWork", "Tasks"]

_MOST = 512
_FEWER = 384
"""Once there are too many, deciding resumes below this number: runs of decisions and runs of bindings each find their
data in the processor's caches, which alternating between them would evict."""
_PATIENCE_SECONDS = 0.1
"""Longest pause: bindings that wait for volumes may take minutes, and one free place is enough to go on."""
_BRIEF_AT_A_TIME = 64
"""As many as the client writes at a time."""


class BriefWork(Protocol):
    """Work that waits for nothing but its own request, so that it may be queued behind other such work."""

    @property
    def name(self) -> str: ...

    def run(self) -> Coroutine[Any, Any, None]: ...

    def abandon(self) -> None:
        """It will not be run."""


class Tasks:
    def __init__(
        self, on_failure: Callable[[str, BaseException], None], *, idle: Callable[[], int] = lambda: 0
    ) -> None:
        """`idle` counts tasks that wait for other pods to be scheduled; they do not count as work under way."""
        self._running: dict[asyncio.Future[None], str] = {}
        self._brief: deque[BriefWork] = deque()
        self._brief_count = 0
        """Queued and under way."""
        self._workers: set[asyncio.Task[None]] = set()
        self._resting: list[asyncio.Future[None]] = []
        self._is_closing = False
        self._timers: set[asyncio.Task[None]] = set()
        self._on_failure = on_failure
        self._idle = idle
        self._has_room = asyncio.Event()

    def __len__(self) -> int:
        return len(self._running) + self._brief_count

    def start(self, name: str, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._running[task] = name
        task.add_done_callback(self._ended)

    def start_brief(self, work: BriefWork) -> None:
        self._brief.append(work)
        self._brief_count += 1
        if self._resting:
            self._resting.pop().set_result(None)
        elif len(self._workers) < _BRIEF_AT_A_TIME:
            worker = asyncio.create_task(self._work_off(), name="brief work")
            self._workers.add(worker)
            worker.add_done_callback(self._workers.discard)

    async def _work_off(self) -> None:
        """Run queued work, one after the other. An idle worker waits: ending and restarting a task would cost more."""
        brief, loop, own = self._brief, asyncio.get_running_loop(), asyncio.current_task()
        while brief or not self._is_closing:
            if not brief:
                rest = loop.create_future()
                self._resting.append(rest)
                await rest
                continue
            work = brief.popleft()
            try:
                await work.run()
            except Exception as exception:
                self._on_failure(work.name, exception)
            except asyncio.CancelledError:
                # If not this task was cancelled but what the work waited for, the worker goes on.
                if own is None or own.cancelling():
                    raise
            finally:
                # A worker at rest keeps nothing of what it did last alive.
                del work
                self._brief_count -= 1
                self._note_room()

    def call_later(self, seconds: float, callback: Callable[[], None], *, clock: Clock) -> None:
        """Call back after some time, unless everything ends before."""
        timer = asyncio.ensure_future(self._wait(seconds, callback, clock))
        self._timers.add(timer)
        timer.add_done_callback(self._timers.discard)

    async def _wait(self, seconds: float, callback: Callable[[], None], clock: Clock) -> None:
        await clock.sleep(seconds)
        try:
            callback()
        except Exception as exception:
            self._on_failure("timer", exception)

    @property
    def is_full(self) -> bool:
        """Whether so much is under way that deciding further ahead makes no sense."""
        return len(self) >= _MOST and len(self) - self._idle() >= _MOST

    def _ended(self, task: asyncio.Future[None]) -> None:
        name = self._running.pop(task)
        if not task.cancelled() and (exception := task.exception()) is not None:
            self._on_failure(name, exception)
        self._note_room()

    def _note_room(self) -> None:
        # Only cleared while the scheduler waits for room.
        if not self._has_room.is_set() and len(self) - self._idle() <= _FEWER:
            self._has_room.set()

    async def wait_for_room(self) -> None:
        while self.is_full:
            self._has_room.clear()
            patience = asyncio.get_running_loop().call_later(_PATIENCE_SECONDS, self._has_room.set)
            try:
                await self._has_room.wait()
            finally:
                patience.cancel()

    async def finish(self, *, timeout: float) -> None:
        """Wait for what is under way, then cancel the rest; timers are not waited for."""
        for timer in list(self._timers):
            timer.cancel()
        await asyncio.gather(*self._timers, return_exceptions=True)
        self._is_closing = True
        while self._resting:
            resting = self._resting.pop()
            if not resting.done():
                resting.set_result(None)
        if self._running or self._workers:
            await asyncio.wait({*self._running, *self._workers}, timeout=timeout)
        self._abandon_brief()
        for task in (*self._running, *self._workers):
            task.cancel()
        await asyncio.gather(*self._running, *self._workers, return_exceptions=True)

    def _abandon_brief(self) -> None:
        while self._brief:
            self._brief_count -= 1
            work = self._brief.popleft()
            try:
                work.abandon()
            except Exception as exception:
                self._on_failure(work.name, exception)
