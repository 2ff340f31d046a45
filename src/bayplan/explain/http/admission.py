"""How much of the scheduler's thread may be spent on questions.

Explanations read what the scheduler writes, so they run in its thread, in turns (`bayplan.observe.time_slices`).
However many clients ask: quick questions are answered in a turn each; long ones in as many as they take, one at a time
in each of a few lines and within a time limit. A client that finds too many waiting is sent away; a question ends when
the client that asked it is gone. Clients that wait for the same answer share one that was begun after all asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from math import inf
from typing import Any

from starlette.requests import Request

from bayplan.observe.clock import Clock
from bayplan.observe.time_slices import Turns
from bayplan.server.answers import Refusal
from bayplan.server.connected import while_connected

__all__ = ["Admit", "Handler", "QuestionAdmission", "QuestionLimits"]

_MOST_SHARED = 8
"""Answers of a line that others who wait may share."""
Handler = Callable[[Request], Awaitable[Any]]
Admit = Callable[[Request, Handler], Awaitable[Any]]


@dataclass(frozen=True, kw_only=True)
class QuestionLimits:
    """For all clients together."""

    quick_waiting: int = 64
    long_waiting: int = 8
    long_seconds: float = 60.0
    """How long one may take, once it is its turn."""
    scenario_bytes: int = 512 * 1024


class _Line:
    """One at a time; so many may wait."""

    def __init__(self, most: int, clock: Clock) -> None:
        self._most = most
        self._now = clock.monotonic
        self._waiting = 0
        self._lock = asyncio.Lock()
        self._answers: dict[Hashable, tuple[float, Any]] = {}
        """(when it was begun, answer) by question, while somebody waits who may have asked the same."""

    async def answer(self, question: Hashable, work: Callable[[], Awaitable[Any]]) -> Any:
        asked = self._now()
        async with self.turn():
            began, answer = self._answers.get(question, (-inf, None))
            if began < asked:
                began = self._now()
                answer = await work()
                self._keep(question, began, answer)
            return answer

    def _keep(self, question: Hashable, began: float, answer: Any) -> None:
        self._answers.pop(question, None)
        self._answers[question] = (began, answer)
        while len(self._answers) > (_MOST_SHARED if self._waiting else 0):
            del self._answers[next(iter(self._answers))]

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        if self._waiting >= self._most:
            raise Refusal(429, "too many questions are waiting; try again later", headers={"retry-after": "1"})
        self._waiting += 1
        try:
            await self._lock.acquire()
        finally:
            self._waiting -= 1
        try:
            yield
        finally:
            self._lock.release()


class QuestionAdmission:
    def __init__(self, clock: Clock, turns: Callable[[], Turns], limits: QuestionLimits | None = None) -> None:
        self.limits = limits or QuestionLimits()
        self._clock = clock
        self._turns = turns
        self._quick = _Line(self.limits.quick_waiting, clock)
        self._long: dict[str, _Line] = {}

    async def quick(self, request: Request, handler: Handler) -> Any:
        async def work() -> Any:
            await self._turns().take()
            return await handler(request)

        return await self._quick.answer(await _question(request), work)

    def long(self, line: str) -> Admit:
        """For questions that wait for each other in that line. Raises `ClientGone`."""
        waiting = self._long.setdefault(line, _Line(self.limits.long_waiting, self._clock))

        async def admit(request: Request, handler: Handler) -> Any:
            question = await _question(request)
            work = waiting.answer(question, lambda: self._limited(request, handler))
            return await while_connected(request, work)

        return admit

    async def _limited(self, request: Request, handler: Handler) -> Any:
        try:
            async with asyncio.timeout(self.limits.long_seconds):
                return await handler(request)
        except TimeoutError:
            message = f"the answer takes more than {self.limits.long_seconds:g} s; ask about less"
            raise Refusal(503, message) from None


async def _question(request: Request) -> Hashable:
    return request.url.path, request.url.query, await request.body()
