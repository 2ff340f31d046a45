"""The scheduler: takes pods from the queue, one after the other, for as long as it runs.

One thread. Scheduling runs in slices of a few milliseconds; between slices the event loop reads watch events and
bindings. When many bindings are under way, the scheduler waits for some to finish: deciding further ahead would only
make decisions on a state that the API server has not seen.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from bayplan.framework.queued import QueuedPod
from bayplan.loop.profile import Shared
from bayplan.loop.scheduling_cycle import asks_extenders, schedule_one, schedule_with_extenders
from bayplan.observe.clock import Clock
from bayplan.queue import QueueShell

__all__ = ["Scheduler", "Tasks"]

_log = structlog.get_logger()
_SLICE_SECONDS = 0.005
_MOST_BINDINGS = 512
_FEWER_BINDINGS = 384
"""Once there are too many, go on below this: a run of decisions and then a run of bindings find their data in the
processor's caches, where one of each in turn finds the other's. It is many times what is in flight at once."""
_PATIENCE_SECONDS = 0.1
"""For so long at most: bindings that wait for volumes may take minutes, and one place is better than none."""


class Tasks:
    """Work beside the main path: every task is named, kept until it ends, and its failure is reported."""

    def __init__(
        self, on_failure: Callable[[str, BaseException], None], *, idle: Callable[[], int] = lambda: 0
    ) -> None:
        """`idle` says how many tasks only wait for other pods to be scheduled: they must not keep those from it."""
        self._running: dict[asyncio.Future[None], str] = {}
        self._timers: set[asyncio.Task[None]] = set()
        self._on_failure = on_failure
        self._idle = idle
        self._has_room = asyncio.Event()

    def __len__(self) -> int:
        return len(self._running)

    def start(self, name: str, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._running[task] = name
        task.add_done_callback(self._ended)

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
        return self._under_way() >= _MOST_BINDINGS

    def _under_way(self) -> int:
        return len(self._running) - self._idle()

    def _ended(self, task: asyncio.Future[None]) -> None:
        name = self._running.pop(task)
        if not task.cancelled() and (exception := task.exception()) is not None:
            self._on_failure(name, exception)
        if self._under_way() <= _FEWER_BINDINGS:
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
        if self._running:
            await asyncio.wait(set(self._running), timeout=timeout)
        for task in list(self._running):
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)


class Scheduler:
    def __init__(self, shared: Shared, shell: QueueShell, tasks: Tasks) -> None:
        self.shared = shared
        self._shell = shell
        self._tasks = tasks

    async def run(self) -> None:
        """Schedule until cancelled or closed."""
        clock, pop = self.shared.clock, self.shared.queue.pop
        while True:
            queued = await self._shell.wait_pop()
            if queued is None:
                return
            deadline = clock.monotonic() + _SLICE_SECONDS
            while queued is not None:
                if asks_extenders(self.shared, queued):
                    await self._ask_and_schedule(queued)
                else:
                    self._schedule(queued)
                if clock.monotonic() >= deadline or self._tasks.is_full:
                    break
                queued = pop()
            await asyncio.sleep(0)
            await self._tasks.wait_for_room()

    def _schedule(self, queued: QueuedPod) -> None:
        """One pod; a bug in here costs one attempt, not the scheduler."""
        try:
            schedule_one(self.shared, queued)
        except Exception:
            self._take_back(queued)

    async def _ask_and_schedule(self, queued: QueuedPod) -> None:
        try:
            await schedule_with_extenders(self.shared, queued)
        except asyncio.CancelledError:
            self.shared.queue.done(queued.uid)
            raise
        except Exception:
            self._take_back(queued)

    def _take_back(self, queued: QueuedPod) -> None:
        """Starting the binding is the last step of a cycle: one that raised has started none, so nothing is assumed."""
        _log.exception("scheduling failed unexpectedly", pod=queued.key)
        self.shared.cache.forget(queued.uid)
        self.shared.queue.add_unschedulable_if_not_present(queued)

    def close(self) -> None:
        """Take no more pods; bindings under way go on."""
        self._shell.close()
