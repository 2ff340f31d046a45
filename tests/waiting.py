"""Waiting for conditions, so that no test depends on how fast the machine is.

The limit only ends a test that would otherwise hang; it is no measure of anything.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

PATIENCE_SECONDS = 90.0

T = TypeVar("T")


async def until(
    is_true: Callable[[], object],
    *,
    what: str = "the condition",
    instead: Callable[[], object] = lambda: "",
    seconds: float = PATIENCE_SECONDS,
) -> None:
    """Return once `is_true`; otherwise fail with `what` was expected and what is true `instead`."""
    try:
        async with asyncio.timeout(seconds):
            while not is_true():  # noqa: ASYNC110  # the condition may be anything, and has no event
                await asyncio.sleep(0.01)
    except TimeoutError:
        raise AssertionError(f"not within {seconds:g} s: {what}; instead: {instead()}") from None


def wait_until(
    is_true: Callable[[], object], *, what: str = "the condition", seconds: float = PATIENCE_SECONDS
) -> None:
    """`until` for tests without an event loop."""
    deadline = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}"
        time.sleep(0.02)


async def answer(
    question: Callable[[], Awaitable[T]], *, what: str = "an answer", seconds: float = PATIENCE_SECONDS
) -> T:
    """The first answer that is true; a question is a request, which takes time itself."""
    last: T | None = None
    try:
        async with asyncio.timeout(seconds):
            while not (last := await question()):  # noqa: ASYNC110  # the answer comes from a server
                await asyncio.sleep(0.05)
            return last
    except TimeoutError:
        raise AssertionError(f"not within {seconds:g} s: {what}; the last answer was {last!r}") from None
