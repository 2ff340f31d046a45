"""Work that clients ask for, in slices of time in the event loop's thread: explanations, scrapes, pages.

Such work runs in the thread that schedules, because it reads what that writes. It waits for a turn first. Turns are
given one at a time, in the order of asking, and while the scheduler is at work, a turn waits for its end, within
limits. So a pod waits for one turn at most on each of its steps, however many clients ask, and clients are answered
however many pods there are.

While pods come, all turns together have a share of the thread's time, kept by rests between them. What they do not use
of it is saved for a while: a client that asks now and then is answered at half the thread's speed, clients that ask
all the time get the share. Once no pod was on its way for a second, there are no rests.

What may take longer than a turn is a generator (`Work`) that yields between steps and returns its result; `in_slices`
runs it over many turns.
"""

from __future__ import annotations

import asyncio
import math
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
_SHARE = 0.1
"""Of the thread's time, for all turns together, while pods come."""
_MOST_SAVED_SECONDS = 0.5
_MOST_REST_SECONDS = 1.0
_QUIET_SECONDS = 1.0
"""Without a pod on its way, after which turns are no longer limited to their share."""


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
        self._saved = _MOST_SAVED_SECONDS
        """Seconds that turns may take beyond their share; negative: that they took beyond it."""
        self._counted_at = self._pods_at = -math.inf
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
        is_busy = self._is_busy()
        if is_busy:
            self._pods_at = now
        if is_busy and now < self._due + _PATIENCE_SECONDS:
            self._timer = self._loop.call_later(_LOOK_SECONDS, self._give)
            return
        self._began, self._due = now, None
        self._waiting.popleft().set_result(None)
        # Comes right after the step of the task that was woken.
        self._timer = self._loop.call_soon(self._rest)

    def _rest(self) -> None:
        assert self._loop is not None
        # Whatever else is ready in the loop has its step before the next turn even without a rest.
        self._timer = self._loop.call_later(self._rest_after(self._time()), self._give)

    def _rest_after(self, ended: float) -> float:
        """Seconds without a turn, after the one that ended now."""
        self._saved = min(_MOST_SAVED_SECONDS, self._saved + (ended - self._counted_at) * _SHARE)
        self._counted_at = ended
        if not self._is_idle():
            self._pods_at = ended
        if ended >= self._pods_at + _QUIET_SECONDS:
            return 0.0
        taken = ended - self._began
        self._saved = max(self._saved - taken, -_MOST_REST_SECONDS * _SHARE)
        return min(taken, _MOST_REST_SECONDS) if self._saved > 0 else -self._saved / _SHARE


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
