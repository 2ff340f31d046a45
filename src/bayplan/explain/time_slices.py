"""Long work in slices of time: a generator that pauses often, driven so that scheduling goes on between its pauses.

Explanations run in the scheduler's own thread, because they read what it writes. Whatever may take longer than a few
milliseconds is a generator that yields between steps and returns its result.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

from bayplan.observe.turns import Turns

__all__ = ["Work", "at_once", "in_slices"]

T = TypeVar("T")
Work = Generator[None, None, T]


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
