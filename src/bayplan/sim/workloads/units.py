"""Words of workload files: times (`90s`, `2h30m`, `7d`), rates (`12/h`) and how long pods run."""

from __future__ import annotations

import math
import re
from random import Random

import msgspec

__all__ = ["Durations", "LogNormal", "period_of", "rate_per_second", "seconds_of"]

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|w)", re.ASCII)
_RATE = re.compile(r"(\d+(?:\.\d+)?)/(s|m|h|d)", re.ASCII)
_LONGEST_SECONDS = 1e9
_LOWEST_RATE, _HIGHEST_RATE = 1 / _LONGEST_SECONDS, 1e6


def seconds_of(given: str | float) -> float:
    """A time in seconds. Raises ValueError for text that is none, and for a negative number."""
    if isinstance(given, int | float):
        seconds = float(given)
    else:
        parts = _PART.findall(given)
        if not parts or "".join(number + unit for number, unit in parts) != given:
            raise ValueError(f"`{given:.40}` is no time; write 90s, 15m, 2h30m or 7d")
        seconds = math.fsum(float(number) * _UNITS[unit] for number, unit in parts)
    if not 0.0 <= seconds <= _LONGEST_SECONDS:
        raise ValueError(f"`{given!s:.40}` is no time between 0 and 30 years")
    return seconds


def period_of(given: str) -> float:
    """The seconds between two times at which something happens. Raises ValueError for none, as `seconds_of` does."""
    seconds = seconds_of(given)
    if not seconds:
        raise ValueError(f"`{given}` is no time between two events; write 1s or more")
    return seconds


def rate_per_second(text: str) -> float:
    """`12/h` as a number of times a second."""
    found = _RATE.fullmatch(text)
    if found is None or not float(found[1]):
        raise ValueError(f"`{text:.40}` is no rate; write 5/s, 30/m, 12/h or 100/d")
    rate = float(found[1]) / _UNITS[found[2]]
    if not _LOWEST_RATE <= rate <= _HIGHEST_RATE:
        raise ValueError(f"`{text:.40}` is no rate between one in 30 years and a million a second")
    return rate


MOST_PODS = 10_000_000
"""Of one item of a workload: hours of simulation, and what a machine has of memory."""
_LARGEST_SIGMA = 10
"""At 10, one pod in six runs 22,000 times as long as the median; far beyond, numbers overflow."""


class LogNormal(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    median: str
    sigma: float = 1.0
    """Of the logarithm: 1 means that one in six pods runs 2.7 times as long as the median."""


class Durations(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How long pods run: one of these."""

    fixed: str | float | None = None
    uniform: tuple[str, str] | None = None
    exponential: str | None = None
    """With this mean."""
    lognormal: LogNormal | None = None

    def draw(self, dice: Random) -> float:
        """The next duration, to the millisecond: processors may differ in the last digits of a logarithm."""
        if self.uniform is not None:
            shortest, longest = map(seconds_of, self.uniform)
            return round(dice.uniform(shortest, longest), 3)
        if self.exponential is not None:
            return round(dice.expovariate(1.0) * seconds_of(self.exponential), 3)
        if self.lognormal is not None:
            shift = math.exp(self.lognormal.sigma * dice.gauss(0.0, 1.0))
            return round(seconds_of(self.lognormal.median) * shift, 3)
        return seconds_of(self.fixed if self.fixed is not None else 0.0)

    def check(self) -> None:
        """Raises ValueError for what types cannot say."""
        given = [form for form in (self.fixed, self.uniform, self.exponential, self.lognormal) if form is not None]
        if len(given) != 1:
            raise ValueError("state one of fixed, uniform, exponential and lognormal")
        if self.lognormal is not None and not 0 <= self.lognormal.sigma <= _LARGEST_SIGMA:
            raise ValueError(f"sigma is a number from 0 to {_LARGEST_SIGMA}, not {self.lognormal.sigma:g}")
        if self.uniform is not None and seconds_of(self.uniform[0]) > seconds_of(self.uniform[1]):
            raise ValueError(f"the shortest time comes first, not `{self.uniform[0]}` before `{self.uniform[1]}`")
        self.draw(Random(0))
