"""When the garbage collector runs: between slices of scheduling, for at most a hundredth of the time.

Nearly all memory is freed by reference counting; cycles are rare. By default the collector runs after a number of new
objects, mostly in the middle of a decision, and traverses everything that bindings under way hold, without finding
garbage. So its threshold is only a safety net, for plugins that make cycles, and collections are scheduled here:

- Before the cluster is read, the garbage of the start is collected.
- While it is read, everything is new and nothing is garbage: no collection. What was read mostly stays as long as the
  process, and is excluded from collections (`gc.freeze`).
- Afterwards, once a second, or ten times while pods are on their way: the young generations when the scheduler is idle
  or when there are many new objects, and all generations every few minutes.

Each collection is followed by a pause a hundred times as long. Many are some thousands: ten collections of a few
milliseconds delay fewer pods than one of thirty, which is what 50,000 new objects took. When the scheduler was idle
each time for some seconds and no pod came in between, freed memory is given back to the machine as well.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Final

from bayplan.observe.clock import Clock
from bayplan.observe.freed_memory import FreedMemory

__all__ = ["GarbageCollection"]

_SAFETY_NET: Final = 200_000
"""New objects after which the collector runs in any case, be it in the middle of a decision."""
_MANY: Final = 10_000
_FEW: Final = 2_000
_SHARE_OF_TIME: Final = 0.01
_LOOKS_BEFORE_STILL: Final = 5
"""Asking how much memory is free takes the longer the more gaps there are, up to 100 ms: it waits for few pods."""
_INTERVAL_SECONDS: Final = 1.0
_BUSY_INTERVAL_SECONDS: Final = 0.1
_OLD_AFTER_SECONDS: Final = 300.0
_OLD_AT_LAST_SECONDS: Final = 1_200.0
_YOUNG, _ALL = 1, 2


class GarbageCollection:
    """Of one process. `start` it, `settle` once the cluster is read, then `run` it beside the work, and `stop`."""

    def __init__(self, clock: Clock, *, is_idle: Callable[[], bool], pods_taken: Callable[[], int]) -> None:
        """`is_idle`: no pod is on its way. `pods_taken`: how many pods were taken from the queue since the start."""
        self._clock = clock
        self._is_idle = is_idle
        self._pods_taken = pods_taken
        self._taken = 0
        self._affordable_at = self._collected_all_at = clock.monotonic()
        self._before: tuple[int, int, int] | None = None
        self._idle_looks = 0
        self._freed = FreedMemory()

    def start(self) -> None:
        # What is there by now, modules for the most part, stays: to look for garbage among it would delay the start.
        gc.freeze()
        self._before = gc.get_threshold()
        gc.set_threshold(_SAFETY_NET, *self._before[1:])

    def settle(self) -> None:
        """To be called once the cluster is read."""
        gc.freeze()
        self._collected_all_at = self._clock.monotonic()

    async def run(self) -> None:
        """Collect what is due, again and again, until cancelled."""
        while True:
            await self._clock.sleep(_INTERVAL_SECONDS if self._is_idle() else _BUSY_INTERVAL_SECONDS)
            self.collect_due()

    def collect_due(self) -> None:
        """Collect what is due, unless the last collection was too recent."""
        began = self._clock.monotonic()
        taken = self._pods_taken()
        self._idle_looks = self._idle_looks + 1 if self._is_idle() and taken == self._taken else 0
        self._taken = taken
        if began < self._affordable_at:
            return
        generation = self._due(began)
        if generation is not None:
            gc.collect(generation)
        is_still = self._idle_looks >= _LOOKS_BEFORE_STILL
        if is_still:
            self._freed.give_back()
        if generation is None and not is_still:
            return
        ended = self._clock.monotonic()
        self._affordable_at = ended + (ended - began) / _SHARE_OF_TIME
        if generation == _ALL:
            self._collected_all_at = ended

    def _due(self, now: float) -> int | None:
        is_idle, new, age = self._is_idle(), gc.get_count()[0], now - self._collected_all_at
        if age >= (_OLD_AFTER_SECONDS if is_idle else _OLD_AT_LAST_SECONDS):
            return _ALL
        return _YOUNG if new >= (_FEW if is_idle else _MANY) else None

    def stop(self) -> None:
        """Restore the collector's settings."""
        if self._before is not None:
            gc.set_threshold(*self._before)
            gc.unfreeze()
            self._before = None
