"""How much of the scheduler's thread may be spent on questions.

Explanations read what the scheduler writes, so they run in its thread. Whoever asks, and however many do: quick
questions are answered one at a time, each followed by a rest as long as it took; long ones, which work in slices
(`turns`), one at a time in each of a few lines and within a time limit. Who finds too many waiting is sent away, and a
question ends when the client that asked it is gone.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request

from bayplan.observe.clock import Clock
from bayplan.server.answers import Refusal

__all__ = ["Admit", "ClientGone", "Handler", "QuestionAdmission", "QuestionLimits"]

Handler = Callable[[Request], Awaitable[Any]]
Admit = Callable[[Request, Handler], Awaitable[Any]]


@dataclass(frozen=True, kw_only=True)
class QuestionLimits:
    """For all clients together."""

    quick_waiting: int = 64
    most_rest_seconds: float = 0.1
    long_waiting: int = 8
    long_seconds: float = 60.0
    """How long one may take, once it is its turn."""
    scenario_bytes: int = 512 * 1024


class ClientGone(Exception):
    """Nobody waits for the answer any more."""


class _Line:
    """One at a time; so many may wait."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._waiting = 0
        self._lock = asyncio.Lock()

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
    def __init__(self, clock: Clock, limits: QuestionLimits | None = None) -> None:
        self.limits = limits or QuestionLimits()
        self._clock = clock
        self._quick = _Line(self.limits.quick_waiting)
        self._long: defaultdict[str, _Line] = defaultdict(lambda: _Line(self.limits.long_waiting))

    async def quick(self, request: Request, handler: Handler) -> Any:
        async with self._quick.turn():
            began = self._clock.monotonic()
            try:
                return await handler(request)
            finally:
                await asyncio.sleep(min(self._clock.monotonic() - began, self.limits.most_rest_seconds))

    def long(self, line: str) -> Admit:
        """For questions that wait for each other in that line. Raises `ClientGone`."""

        async def admit(request: Request, handler: Handler) -> Any:
            await request.body()
            return await _while_connected(request, self._limited(self._long[line], request, handler))

        return admit

    async def _limited(self, line: _Line, request: Request, handler: Handler) -> Any:
        async with line.turn():
            try:
                async with asyncio.timeout(self.limits.long_seconds):
                    return await handler(request)
            except TimeoutError:
                message = f"the answer takes more than {self.limits.long_seconds:g} s; ask about less"
                raise Refusal(503, message) from None


async def _while_connected(request: Request, work: Awaitable[Any]) -> Any:
    answer, gone = asyncio.ensure_future(work), asyncio.ensure_future(_disconnected(request))
    try:
        await asyncio.wait((answer, gone), return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            raise ClientGone
        return answer.result()
    finally:
        for task in (answer, gone):
            task.cancel()
        await asyncio.wait((answer, gone))


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
