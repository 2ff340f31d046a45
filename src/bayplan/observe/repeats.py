"""Limits repeated log lines: the first few of a kind are written, then one per window with a count.

Ten thousand pods that cannot be bound must not make the log a bottleneck or hide other lines. A kind is a level and a
message without its values. The caller decides what a kind is.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable

__all__ = ["RepeatLimit"]

_MOST_KINDS = 1024


class RepeatLimit:
    """`burst` lines of a kind per `window_seconds`; those above are counted."""

    def __init__(self, monotonic: Callable[[], float], *, burst: int = 20, window_seconds: float = 10.0) -> None:
        self._monotonic = monotonic
        self._burst = burst
        self._window_seconds = window_seconds
        self._kinds: OrderedDict[Hashable, _Kind] = OrderedDict()

    def admit(self, kind: Hashable) -> int | None:
        """None when the line must not be written, otherwise how many of its kind were left out before it."""
        now = self._monotonic()
        seen = self._kinds.get(kind)
        if seen is None:
            self._remember(kind, now)
            return 0
        if now - seen.since >= self._window_seconds:
            left_out, seen.left_out, seen.written, seen.since = seen.left_out, 0, 1, now
            self._kinds.move_to_end(kind)
            return left_out
        if seen.written < self._burst:
            seen.written += 1
            return 0
        seen.left_out += 1
        return None

    def left_out(self) -> int:
        """Lines that were counted and not yet reported."""
        return sum(kind.left_out for kind in self._kinds.values())

    def _remember(self, kind: Hashable, now: float) -> None:
        self._kinds[kind] = _Kind(now)
        if len(self._kinds) > _MOST_KINDS:
            self._kinds.popitem(last=False)


class _Kind:
    __slots__ = ("left_out", "since", "written")

    def __init__(self, since: float) -> None:
        self.since = since
        self.written = 1
        self.left_out = 0
