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
from bayplan.loop.attempt import Attempt
from bayplan.loop.decide_with_extenders import Extenders
from bayplan.loop.profile import Shared
from bayplan.loop.scheduling_cycle import schedule_one, schedule_with_extenders
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
        self._awaited: Callable[[], Awaitable[None]] | None = None

    def wait_for(self, something: Callable[[], Awaitable[None]]) -> None:
        """Decide about no further pod before this is done, as after a change of plugins that need objects first."""
        self._awaited = something

    async def run(self) -> None:
        """Schedule until cancelled or closed."""
        shared, clock, queue = self.shared, self.shared.clock, self.shared.queue
        while True:
            queued = await self._shell.wait_pop()
            if queued is None:
                return
            while self._awaited is not None:
                awaited, self._awaited = self._awaited, None
                await awaited()
            deadline = clock.monotonic() + _SLICE_SECONDS
            while queued is not None:
                profile = shared.profiles.get(queued.info.scheduler_name)
                if profile is None:
                    queue.done(queued.uid)
                elif profile.extenders is None:
                    self._schedule(Attempt(shared, profile, queued))
                else:
                    await self._schedule_with_extenders(Attempt(shared, profile, queued), profile.extenders)
                if clock.monotonic() >= deadline or self._tasks.is_full:
                    break
                queued = queue.pop()
            await asyncio.sleep(0)
            await self._tasks.wait_for_room()

    def step(self) -> bool:
        """Try the next pod, if one is due, for an owner with a clock of its own; profiles with extenders need `run`."""
        queued = self.shared.queue.pop()
        if queued is None:
            return False
        self.schedule(queued)
        return True

    def schedule(self, queued: QueuedPod) -> None:
        """Try a pod that is in flight."""
        profile = self.shared.profiles.get(queued.info.scheduler_name)
        if profile is None:
            self.shared.queue.done(queued.uid)
        else:
            self._schedule(Attempt(self.shared, profile, queued))

    def _schedule(self, attempt: Attempt) -> None:
        """A defect of the scheduler costs one attempt; the next pod is tried."""
        try:
            schedule_one(attempt)
        except Exception:
            self._requeue(attempt)

    async def _schedule_with_extenders(self, attempt: Attempt, extenders: Extenders) -> None:
        try:
            await schedule_with_extenders(attempt, extenders)
        except asyncio.CancelledError:
            attempt.abandon()
            raise
        except Exception:
            self._requeue(attempt)

    def _requeue(self, attempt: Attempt) -> None:
        """Starting the binding is the last step of a cycle: one that raised has started none, so all can be undone."""
        _log.exception("scheduling failed unexpectedly", pod=attempt.queued.key)
        attempt.requeue()

    def close(self) -> None:
        """Take no more pods; bindings under way go on."""
        self._shell.close()
