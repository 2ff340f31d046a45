"""Schedules of CronJobs: five fields or a macro, and the times they name."""

from __future__ import annotations

import zoneinfo
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo

_MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_MONTH_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAY_NAMES = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_MONTHS = {name: number for number, name in enumerate(_MONTH_NAMES, 1)}
_DAYS = {name: number for number, name in enumerate(_DAY_NAMES)}
_FIELDS: tuple[tuple[str, int, int, dict[str, int]], ...] = (
    ("minute", 0, 59, {}),
    ("hour", 0, 23, {}),
    ("day of month", 1, 31, {}),
    ("month", 1, 12, _MONTHS),
    ("day of week", 0, 7, _DAYS),
)
_HORIZON_DAYS = 5 * 366


class BadSchedule(ValueError):
    """The text is no schedule; the message says why."""


def is_time_zone(name: str) -> bool:
    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return bool(name) and name.lower() != "local"


@dataclass(frozen=True, slots=True)
class Schedule:
    """The minutes, hours, days and months of a schedule."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either_day: bool
    """Both days are restricted: one of them is enough."""

    @classmethod
    def parse(cls, text: str) -> Schedule:
        """Raises `BadSchedule`."""
        words = _MACROS.get(text.strip().lower(), text).split()
        if len(words) != len(_FIELDS):
            raise BadSchedule(f"expected exactly 5 fields, found {len(words)}: [{text}]")
        minutes, hours, days, months, weekdays = (
            _values(word, *declared) for word, declared in zip(words, _FIELDS, strict=True)
        )
        either = words[2][0] not in "*?" and words[4][0] not in "*?"
        return cls(minutes, hours, days, months, frozenset(day % 7 for day in weekdays), either)

    def next_after(self, moment: float, zone: str = "") -> float | None:
        """The first time of the schedule after a moment, in Unix seconds; None when there is none in five years."""
        place: tzinfo = zoneinfo.ZoneInfo(zone) if zone else UTC
        day = datetime.fromtimestamp(moment, place).replace(hour=0, minute=0, second=0, microsecond=0)
        for _ in range(_HORIZON_DAYS):
            if self._names_day(day):
                for hour in sorted(self.hours):
                    for minute in sorted(self.minutes):
                        found = day.replace(hour=hour, minute=minute).timestamp()
                        if found > moment:
                            return found
            day = (day + timedelta(days=1)).replace(hour=0)
        return None

    def _names_day(self, day: datetime) -> bool:
        if day.month not in self.months:
            return False
        by_date, by_weekday = day.day in self.days, (day.weekday() + 1) % 7 in self.weekdays
        return by_date or by_weekday if self.either_day else by_date and by_weekday


def _values(word: str, name: str, low: int, high: int, names: dict[str, int]) -> frozenset[int]:
    found: set[int] = set()
    for part in word.split(","):
        span, _, step_text = part.partition("/")
        step = _number(step_text, name, {}) if "/" in part else 1
        first, last = low, high
        if span not in ("*", "?"):
            begin, _, end = span.partition("-")
            first = _number(begin, name, names)
            last = _number(end, name, names) if "-" in span else (high if "/" in part else first)
        if step < 1 or not low <= first <= last <= high:
            raise BadSchedule(f"{name} out of range: {part}")
        found.update(range(first, last + 1, step))
    return frozenset(found)


def _number(text: str, name: str, names: dict[str, int]) -> int:
    if text.lower() in names:
        return names[text.lower()]
    if not text.isascii() or not text.isdigit() or len(text) > 4:
        raise BadSchedule(f"failed to parse {name}: {text!r}")
    return int(text)
