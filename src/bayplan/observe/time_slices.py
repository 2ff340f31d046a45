"""Work that clients ask for, in slices of time in the event loop's thread: explanations, scrapes, pages.

Such work runs in the thread that schedules, because it reads what that writes. It waits for a turn first. Turns are
given one at a time, in the order of asking; each is followed by a rest as long as it took while pods are on their way,
and while the scheduler is at work, a turn waits for its end, within limits. So a pod waits for one turn at most on each
of its steps, however many clients ask, and clients are answered however many pods there are. What may take longer than
a turn is a generator (`Work`) that yields between steps and returns its result; `in_slices` runs it over many turns.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Generator
from typing import TypeVar

__all__ = ["Turns", "Work", "at_once", "in_slices"]

T = TypeVar("T")
Work = Generator[None, None, T]

_TURN_SECONDS = 0.002
_LOOK_SECONDS = 0.001
_PATIENCE_SECONDS = 0.015
"""How long a turn waits for the scheduler."""
_MOST_REST_SECONDS = 0.1


class Turns:
    """Of one event loop."""

    def __init__(
        self, is_busy: Callable[[], bool] = lambda: False, *, is_idle: Callable[[], bool] = lambda: False
    ) -> None:
        """`is_busy`: pods wait to be decided on. `is_idle`: no pod is on its way anywhere."""
        self._is_busy = is_busy
        self._is_idle = is_idle
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.Handle | None = None
        self._began = 0.0
        self._due: float | None = None
        """Since when the next turn waits for the scheduler."""
        self._loop: asyncio.AbstractEventLoop | None = None

    async def take(self) -> None:
        """Wait for a turn, which begins when this returns, and ends with the next `await`. It should be over soon."""
        loop = self._loop = asyncio.get_running_loop()
        turn: asyncio.Future[None] = loop.create_future()
        self._waiting.append(turn)
        if self._timer is None:
            self._timer = loop.call_soon(self._give)
        await turn

    @property
    def is_over(self) -> bool:
        """Whether the turn has lasted long enough: work that is not done takes another one."""
        return self._time() >= self._began + _TURN_SECONDS

    def _time(self) -> float:
        return self._loop.time() if self._loop is not None else 0.0

    def _give(self) -> None:
        while self._waiting and self._waiting[0].done():
            self._waiting.popleft()
        self._timer = None
        if not self._waiting or self._loop is None:
            return
        now = self._loop.time()
        self._due = now if self._due is None else self._due
        if self._is_busy() and now < self._due + _PATIENCE_SECONDS:
            self._timer = self._loop.call_later(_LOOK_SECONDS, self._give)
            return
        self._began, self._due = now, None
        self._waiting.popleft().set_result(None)
        # Comes right after the step of the task that was woken.
        self._timer = self._loop.call_soon(self._rest)

    def _rest(self) -> None:
        assert self._loop is not None
        # Whatever else is ready in the loop has its step before the next turn even without a rest.
        rest = 0.0 if self._is_idle() else min(self._time() - self._began, _MOST_REST_SECONDS)
        self._timer = self._loop.call_later(rest, self._give)


def at_once(work: Work[T]) -> T:
    """Run to the end."""
    while True:
        try:
            next(work)
        except StopIteration as stop:
            result: T = stop.value
            return result


async def in_slices(work: Work[T], turns: Turns) -> T:
    """Run in turns of a few milliseconds; cancelling it ends the work."""
    try:
        while True:
            await turns.take()
            try:
                next(work)
                while not turns.is_over:
                    next(work)
            except StopIteration as stop:
                result: T = stop.value
                return result
    finally:
        work.close()
