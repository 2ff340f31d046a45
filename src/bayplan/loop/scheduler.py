"""The scheduler: takes pods from the queue, one after the other, for as long as it runs.

One thread. Scheduling runs in slices of a few milliseconds; between slices the event loop reads watch events and
bindings. When many bindings are under way, the scheduler waits for some to finish: deciding further ahead would only
make decisions on a state that the API server has not seen.
"""

from __future__ import annotations

import asyncio

import structlog

from bayplan.framework.queued import QueuedPod
from bayplan.loop.profile import Shared
from bayplan.loop.scheduling_cycle import asks_extenders, schedule_one, schedule_with_extenders
from bayplan.loop.tasks import Tasks
from bayplan.queue import QueueShell

__all__ = ["Scheduler"]

_log = structlog.get_logger()
_SLICE_SECONDS = 0.005


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
