"""Long work in turns: a generator that pauses often, driven so that scheduling goes on between its pauses.

Explanations run in the scheduler's own thread, because they read what it writes. Whatever may take longer than a few
milliseconds is a generator that yields between steps and returns its result.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import TypeVar

from bayplan.observe.clock import Clock

__all__ = ["Work", "in_turns", "straight"]

T = TypeVar("T")
Work = Generator[None, None, T]

_SLICE_SECONDS = 0.004


def straight(work: Work[T]) -> T:
    """Run to the end."""
    while True:
        try:
            next(work)
        except StopIteration as stop:
            result: T = stop.value
            return result


async def in_turns(work: Work[T], clock: Clock) -> T:
    """Run in slices of a few milliseconds; the event loop has its turn between two."""
    deadline = clock.monotonic() + _SLICE_SECONDS
    try:
        while True:
            try:
                next(work)
            except StopIteration as stop:
                result: T = stop.value
                return result
            if clock.monotonic() >= deadline:
                await asyncio.sleep(0)
                deadline = clock.monotonic() + _SLICE_SECONDS
    finally:
        work.close()
