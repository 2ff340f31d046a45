"""An event loop that can tell when nothing is left to run: the moment at which virtual time may move on."""

from __future__ import annotations

import asyncio
import selectors
from typing import Any

__all__ = ["IdleSelector"]


class IdleSelector(selectors.DefaultSelector):
    """Where a loop would block for want of ready tasks, those who wait for `idle` go on instead."""

    def __init__(self) -> None:
        super().__init__()
        self._waiting: asyncio.Future[None] | None = None

    async def idle(self) -> None:
        """Wait until every other task waits for something that only this one can bring about."""
        self._waiting = asyncio.get_running_loop().create_future()
        await self._waiting

    def select(self, timeout: float | None = None) -> list[Any]:
        if self._waiting is None or timeout == 0:
            return super().select(timeout)
        self._waiting.set_result(None)
        self._waiting = None
        return []
