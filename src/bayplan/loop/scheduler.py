"""The scheduler: takes pods from the queue, one after the other, for as long as it runs.

One thread. Scheduling runs in slices of a few milliseconds; between slices the event loop reads watch events and
bindings. When many bindings are under way, the scheduler waits for some to finish: deciding further ahead would only
make decisions on a state that the API server has not seen.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from bayplan.loop.profile import Shared
from bayplan.loop.scheduling_cycle import schedule_one
from bayplan.queue import QueueShell

__all__ = ["Scheduler", "Tasks"]

_log = structlog.get_logger()
_SLICE_SECONDS = 0.005
_MOST_BINDINGS = 512


class Tasks:
    """Work beside the main path: every task is named, kept until it ends, and its failure is reported."""

    def __init__(self, on_failure: Callable[[str, BaseException], None]) -> None:
        self._running: set[asyncio.Task[None]] = set()
        self._on_failure = on_failure
        self._room = asyncio.Event()
        self._room.set()

    def __len__(self) -> int:
        return len(self._running)

    def start(self, name: str, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(self._run(name, work))
        self._running.add(task)
        task.add_done_callback(self._ended)
        if len(self._running) >= _MOST_BINDINGS:
            self._room.clear()

    async def _run(self, name: str, work: Awaitable[None]) -> None:
        try:
            await work
        except asyncio.CancelledError:
            raise
        except Exception as exception:
            self._on_failure(name, exception)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if len(self._running) < _MOST_BINDINGS:
            self._room.set()

    async def wait_for_room(self) -> None:
        await self._room.wait()

    async def finish(self, *, timeout: float) -> None:
        """Wait for what is under way, then cancel the rest."""
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
                self._schedule(queued)
                if clock.monotonic() >= deadline or len(self._tasks) >= _MOST_BINDINGS:
                    break
                queued = pop()
            await asyncio.sleep(0)
            await self._tasks.wait_for_room()

    def _schedule(self, queued: object) -> None:
        """One pod; a bug in here costs one attempt, not the scheduler."""
        try:
            schedule_one(self.shared, queued)  # type: ignore[arg-type]  # what the queue hands out
        except Exception:
            _log.exception("scheduling failed unexpectedly", pod=getattr(queued, "key", ""))
            self.shared.queue.add_unschedulable_if_not_present(queued)  # type: ignore[arg-type]

    def close(self) -> None:
        """Take no more pods; bindings under way go on."""
        self._shell.close()
