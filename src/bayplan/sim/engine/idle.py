"""An event loop that can tell when nothing is left to run: the moment at which virtual time may move on."""

from __future__ import annotations

import asyncio
import selectors
from typing import Any

__all__ = ["CountingLoop", "IdleSelector", "made_on_this_loop"]


class IdleSelector(selectors.DefaultSelector):
    """Where a loop would block for want of ready tasks, the tasks that wait for `idle` are resumed instead."""

    def __init__(self) -> None:
        super().__init__()
        self._waiting: asyncio.Future[None] | None = None

    async def idle(self) -> None:
        """Wait until every other task waits for something that only this one can bring about."""
        self._waiting = asyncio.get_running_loop().create_future()
        await self._waiting

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout == 0 and len(self.get_map()) == 1:
            # Tasks are ready, and nothing is open but the loop's own pipe, which is read before it waits.
            return []
        if self._waiting is None or timeout == 0:
            return super().select(timeout)
        self._waiting.set_result(None)
        self._waiting = None
        return []


class CountingLoop(asyncio.SelectorEventLoop):
    """Counts the tasks that were made on it, so that the simulation can tell whether plugins made some."""

    tasks_made = 0

    def create_task(self, *arguments: Any, **options: Any) -> asyncio.Task[Any]:
        self.tasks_made += 1
        return super().create_task(*arguments, **options)


def made_on_this_loop() -> int:
    """How many tasks were made on the loop that runs; 0 if it counts none."""
    return getattr(asyncio.get_running_loop(), "tasks_made", 0)
