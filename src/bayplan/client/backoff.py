"""Exponential backoff with jitter.

A `Backoff` counts failures; the caller decides what a failure is and when to reset. Randomness is a parameter: `draw`
returns a number from 0 to 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

Draw = Callable[[], float]
"""A number drawn evenly from 0 (included) to 1 (excluded), as `random.Random.random` gives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackoffSettings:
    """The k-th delay is `initial * factor**k`, at most `ceiling`, lengthened by up to `jitter` of itself."""

    initial_seconds: float = 0.2
    factor: float = 2.0
    ceiling_seconds: float = 30.0
    jitter: float = 0.5


class Backoff:
    """Computes delays that grow with every failure."""

    def __init__(self, settings: BackoffSettings, *, draw: Draw) -> None:
        self._settings = settings
        self._draw = draw
        self._failures = 0

    @property
    def failures(self) -> int:
        """How many delays have been given since the last success."""
        return self._failures

    def next_delay(self) -> float:
        # Past the ceiling the power is not computed any more: after a night of failures it would overflow.
        exponent = min(self._failures, 64)
        self._failures += 1
        delay = min(self._settings.initial_seconds * self._settings.factor**exponent, self._settings.ceiling_seconds)
        return delay * (1.0 + self._settings.jitter * self._draw())

    def succeeded(self) -> None:
        self._failures = 0
