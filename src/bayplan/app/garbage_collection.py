"""When the garbage collector runs: between two pieces of work, and so seldom that nobody notices.

Nearly everything here is given back by counting references; cycles are rare. Left to itself the collector comes after a
number of new objects, which is mostly in the midst of a decision, walks everything that bindings under way hold, and
finds nothing. So it is asked to come by itself only as a safety net, for plugins that make cycles, and otherwise:

- Before the cluster is read, what starting left behind is collected.
- While it is read, everything is new and nothing is garbage: nobody looks. What was read lives as long as the process,
  mostly, and is never looked at (`gc.freeze`).
- Afterwards, once a second, between slices of scheduling: new objects are looked at when nothing else is to be done, or
  when there are many. They are looked at once; what has grown old is looked at every few minutes.

After each look comes a pause a hundred times as long, so that all of it stays below a hundredth of the time.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Final

from bayplan.observe.clock import Clock

__all__ = ["GarbageCollection"]

_SAFETY_NET: Final = 200_000
"""New objects after which the collector comes by itself, be it in the midst of a decision."""
_MANY: Final = 50_000
_FEW: Final = 2_000
_SHARE_OF_TIME: Final = 0.01
_LOOK_SECONDS: Final = 1.0
_OLD_AFTER_SECONDS: Final = 300.0
_OLD_AT_LAST_SECONDS: Final = 1_200.0
_YOUNG, _ALL = 1, 2


class GarbageCollection:
    """Of one process. `start` it, `settle` once the cluster is read, then `run` it beside the work, and `stop`."""

    def __init__(self, clock: Clock, *, is_idle: Callable[[], bool]) -> None:
        self._clock = clock
        self._is_idle = is_idle
        self._affordable_at = self._looked_at_all = clock.monotonic()
        self._before: tuple[int, int, int] | None = None

    def start(self) -> None:
        gc.collect()
        self._before = gc.get_threshold()
        gc.set_threshold(_SAFETY_NET, *self._before[1:])

    def settle(self) -> None:
        """The cluster is read."""
        gc.freeze()
        self._looked_at_all = self._clock.monotonic()

    async def run(self) -> None:
        """Look once a second until cancelled."""
        while True:
            await self._clock.sleep(_LOOK_SECONDS)
            self.look()

    def look(self) -> None:
        """Collect what is due, if it can be afforded now."""
        began = self._clock.monotonic()
        generation = self._due(began) if began >= self._affordable_at else None
        if generation is None:
            return
        gc.collect(generation)
        ended = self._clock.monotonic()
        self._affordable_at = ended + (ended - began) / _SHARE_OF_TIME
        if generation == _ALL:
            self._looked_at_all = ended

    def _due(self, now: float) -> int | None:
        is_idle, new, age = self._is_idle(), gc.get_count()[0], now - self._looked_at_all
        if age >= (_OLD_AFTER_SECONDS if is_idle else _OLD_AT_LAST_SECONDS):
            return _ALL
        return _YOUNG if new >= (_FEW if is_idle else _MANY) else None

    def stop(self) -> None:
        """Leave the process as it was found."""
        if self._before is not None:
            gc.set_threshold(*self._before)
            gc.unfreeze()
            self._before = None
