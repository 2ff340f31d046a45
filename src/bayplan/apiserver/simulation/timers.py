"""A timer queue on a clock, for kubelets and controllers.

One reader waits for the next item; any task may add. Sleeps on the clock it was given, so a virtual clock is
never polled.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from typing import Generic, TypeVar

from bayplan.observe.clock import Clock

Item = TypeVar("Item")


class TimerQueue(Generic[Item]):
    """A queue by time; items of the same time come in the order they were added."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._items: list[tuple[float, int, Item]] = []
        self._order = itertools.count()
        self._nearer = asyncio.Event()

    def __len__(self) -> int:
        return len(self._items)

    def add(self, seconds: float, item: Item) -> None:
        """Make an item due in so many seconds."""
        entry = (self._clock.monotonic() + seconds, next(self._order), item)
        heapq.heappush(self._items, entry)
        if self._items[0] is entry:
            self._nearer.set()

    def clear(self) -> None:
        self._items.clear()

    async def due(self) -> Item:
        """The next item, when its time has come. Does not yield to others while items are due already."""
        while True:
            self._nearer.clear()
            if not self._items:
                await self._nearer.wait()
                continue
            wait = self._items[0][0] - self._clock.monotonic()
            if wait <= 0:
                return heapq.heappop(self._items)[2]
            await self._sleep(wait)

    async def _sleep(self, seconds: float) -> None:
        """Until the time is up, or something nearer was added."""
        nap = asyncio.ensure_future(self._clock.sleep(seconds))
        bell = asyncio.ensure_future(self._nearer.wait())
        try:
            await asyncio.wait([nap, bell], return_when=asyncio.FIRST_COMPLETED)
        finally:
            nap.cancel()
            bell.cancel()
            await asyncio.gather(nap, bell, return_exceptions=True)
