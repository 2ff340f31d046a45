"""So many at a time, the others in order of arrival: a semaphore that costs next to nothing while there is room.

A binding is asked for thousands of times a second, and nearly always finds a place. `asyncio.Semaphore` makes three
coroutines to find that out. Whoever leaves hands the place to the one who has waited longest.
"""

from __future__ import annotations

import asyncio
from collections import deque

__all__ = ["Places"]


class Places:
    """`async with places: ...`, or `if not places.take(): await places.wait()` and `give` in the end."""

    def __init__(self, count: int) -> None:
        self._free = count
        """More than none only while nobody waits."""
        self._waiting: deque[asyncio.Future[None]] = deque()

    def take(self) -> bool:
        """Take a place if one is free."""
        if self._free <= 0:
            return False
        self._free -= 1
        return True

    async def wait(self) -> None:
        """Take a place when it is one's turn."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            # The turn may have come in the same instant: pass it on.
            if turn.done() and not turn.cancelled():
                self.give()
            raise

    def give(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1

    async def __aenter__(self) -> None:
        if not self.take():
            await self.wait()

    async def __aexit__(self, *_: object) -> None:
        self.give()
