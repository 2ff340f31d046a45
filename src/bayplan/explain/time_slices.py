"""Long work in slices of time: a generator that pauses often, driven so that scheduling goes on between its pauses.

Explanations run in the scheduler's own thread, because they read what it writes. Whatever may take longer than a few
milliseconds is a generator that yields between steps and returns its result.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import TypeVar

from bayplan.observe.clock import Clock

__all__ = ["Work", "at_once", "in_slices"]

T = TypeVar("T")
Work = Generator[None, None, T]

_SLICE_SECONDS = 0.003
"""Of work, and then of rest: no question takes more than half of the thread."""


def at_once(work: Work[T]) -> T:
    """Run to the end."""
    while True:
        try:
            next(work)
        except StopIteration as stop:
            result: T = stop.value
            return result


async def in_slices(work: Work[T], clock: Clock) -> T:
    """Run in slices of a few milliseconds, with as long a rest between two; cancelling it ends the work."""
    deadline = clock.monotonic() + _SLICE_SECONDS
    try:
        while True:
            try:
                next(work)
            except StopIteration as stop:
                result: T = stop.value
                return result
            if clock.monotonic() >= deadline:
                await asyncio.sleep(_SLICE_SECONDS)
                deadline = clock.monotonic() + _SLICE_SECONDS
    finally:
        work.close()
