"""How long each plugin took, of a sample of the cycles.

Reading the clock around every plugin call would cost more than many of the calls, so kube-scheduler does it in one
cycle of ten, drawn at random, and so do we, up to a number of them a second. `Sampling` says which cycles; a
`PluginTimes` belongs to one of them and is filled from its first extension point to its last, binding included. The
other cycles pay for one countdown.

A plugin whose answers are remembered is not called in every cycle, and then has no time. Where a plugin is called node
by node, the time is that of all nodes together.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeVar

from bayplan.framework.plugin import PostFilterResult
from bayplan.framework.status import Code, Status

__all__ = ["SAMPLED_SHARE", "PluginTime", "PluginTimes", "Sampling", "Timed", "status_label"]

T = TypeVar("T")
SAMPLED_SHARE = 0.1
_SUCCESS = Code.SUCCESS.label
_ERROR = Code.ERROR.label


class PluginTime(NamedTuple):
    plugin: str
    point: str
    """As in metrics: PreFilter, Filter, Score, ScoreExtensionNormalize, ..."""
    status: str
    """The code of the answer; Success where it was about many nodes."""
    seconds: float


class Timed(Protocol):
    """A plugin at an extension point, with a place for the times of the cycle under way."""

    name: str
    times: PluginTimes | None


class PluginTimes:
    """The times of one cycle, by plugin and extension point in the order of the first calls."""

    __slots__ = ("_listener", "_seconds", "monotonic")

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self.monotonic = monotonic
        self._seconds: dict[tuple[str, str, str], float] = {}
        self._listener: Callable[[str, str, str, float], None] | None = None

    def all(self) -> list[PluginTime]:
        """What was measured so far."""
        return [PluginTime(*key, seconds) for key, seconds in self._seconds.items()]

    def pass_on(self, listener: Callable[[str, str, str, float], None]) -> None:
        """Call back with (plugin, point, status, seconds) for what was measured, and from now on as it is measured."""
        for (plugin, point, status), seconds in self._seconds.items():
            listener(plugin, point, status, seconds)
        self._listener = listener

    def measure(self, plugin: str, point: str, call: Callable[..., T], *arguments: Any) -> T:
        """Call, and note how long it took and what came out."""
        began, status = self.monotonic(), _ERROR
        try:
            answer = call(*arguments)
            status = status_label(answer)
        finally:
            self.add(plugin, point, status, self.monotonic() - began)
        return answer

    def measure_once(self, timed: Timed, point: str, call: Callable[..., T], *arguments: Any) -> T:
        """As `measure`; what the plugin's own calls take is part of this one and not noted again."""
        timed.times = None
        try:
            return self.measure(timed.name, point, call, *arguments)
        finally:
            timed.times = self

    def add(self, plugin: str, point: str, status: str, seconds: float) -> None:
        key = (plugin, point, status)
        self._seconds[key] = self._seconds.get(key, 0.0) + seconds
        if self._listener is not None:
            self._listener(plugin, point, status, seconds)


def status_label(answer: object) -> str:
    status = answer.status if isinstance(answer, PostFilterResult) else answer
    return status.code.label if isinstance(status, Status) else _SUCCESS


class Sampling:
    """Draws the cycles to measure: each with the same chance, whatever came before, but not too soon after another.

    A measured cycle costs a third more, and a thousand a second tell no more than `most_per_second` do. Where all are
    asked for, all are measured.
    """

    __slots__ = ("_draw", "_left", "_monotonic", "_not_before", "_pause_seconds", "_share")

    def __init__(
        self,
        *,
        draw: Callable[[], float],
        monotonic: Callable[[], float],
        share: float = SAMPLED_SHARE,
        most_per_second: float = math.inf,
    ) -> None:
        self._draw = draw
        self._monotonic = monotonic
        self._share = share
        self._pause_seconds = 1.0 / most_per_second if share < 1 else 0.0
        self._not_before = monotonic()
        self._left = self._gap()

    def is_due(self) -> bool:
        """Whether to measure this cycle. Drawing the distance to the next one leaves a countdown for the others."""
        self._left -= 1
        if self._left:
            return False
        self._left = self._gap()
        now = self._monotonic()
        if now < self._not_before:
            return False
        self._not_before = now + self._pause_seconds
        return True

    def measure_next(self) -> None:
        """Measure the next cycle, whatever was drawn: something in the last one was slow."""
        self._left, self._not_before = 1, -math.inf

    def times(self) -> PluginTimes:
        return PluginTimes(self._monotonic)

    def _gap(self) -> float:
        if self._share >= 1:
            return 1
        if self._share <= 0:
            return math.inf
        return 1 + int(math.log(1.0 - self._draw()) / math.log(1.0 - self._share))
