"""Durations and timestamps: exact to the nanosecond, bounded as those of protocol buffers and Go are."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from decimal import Decimal
from zoneinfo import ZoneInfo

from bayplan.cel import types
from bayplan.cel.errors import EvaluationError
from bayplan.cel.values import INT_MAX, INT_MIN, Special, Value, no_overload

__all__ = ["SECOND", "Duration", "Timestamp", "parse_duration", "parse_timestamp", "zone"]

SECOND = 1_000_000_000
_EARLIEST, _LATEST = -62135596800, 253402300799
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
_FARTHEST = 10**10
"""Minutes that an offset may have; no calendar reaches that far."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Duration(Special):
    """A span of time in nanoseconds, within 64 bits."""

    __slots__ = ("nanoseconds",)
    type = types.DURATION
    reflected_name = "types.Duration"

    def __init__(self, nanoseconds: int) -> None:
        if not INT_MIN <= nanoseconds <= INT_MAX:
            raise EvaluationError("integer overflow")
        self.nanoseconds = nanoseconds

    def equals(self, other: Value) -> bool:
        return isinstance(other, Duration) and other.nanoseconds == self.nanoseconds

    def order(self, other: Value) -> int:
        if not isinstance(other, Duration):
            raise no_overload()
        return (self.nanoseconds > other.nanoseconds) - (self.nanoseconds < other.nanoseconds)

    @property
    def is_zero(self) -> bool:
        return self.nanoseconds == 0

    def whole(self, unit: int) -> int:
        """The number of whole units, rounded towards zero."""
        return abs(self.nanoseconds) // unit * (1 if self.nanoseconds >= 0 else -1)

    def text(self) -> str:
        """Seconds with as many digits as a double needs."""
        seconds = self.whole(SECOND) + (self.nanoseconds - self.whole(SECOND) * SECOND) / 1e9
        return f"{Decimal(repr(float(seconds))).normalize():f}s" if seconds else "0s"

    def __str__(self) -> str:
        return self.text()


class Timestamp(Special):
    """A moment in nanoseconds since 1970, from year 1 to 9999, and the offset it was written with."""

    __slots__ = ("nanoseconds", "offset_seconds")
    type = types.TIMESTAMP
    reflected_name = "types.Timestamp"

    def __init__(self, nanoseconds: int, offset_seconds: int = 0) -> None:
        if not _EARLIEST <= nanoseconds // SECOND <= _LATEST:
            raise EvaluationError("timestamp overflow")
        self.nanoseconds = nanoseconds
        self.offset_seconds = offset_seconds

    def equals(self, other: Value) -> bool:
        return isinstance(other, Timestamp) and other.nanoseconds == self.nanoseconds

    def order(self, other: Value) -> int:
        if not isinstance(other, Timestamp):
            raise no_overload()
        return (self.nanoseconds > other.nanoseconds) - (self.nanoseconds < other.nanoseconds)

    @property
    def is_zero(self) -> bool:
        return self.nanoseconds == _EARLIEST * SECOND

    def shifted(self, nanoseconds: int) -> Timestamp:
        return Timestamp(self.nanoseconds + nanoseconds, self.offset_seconds)

    def since(self, other: Timestamp) -> Duration:
        return Duration(self.nanoseconds - other.nanoseconds)

    def local(self, place: tzinfo | timedelta) -> datetime:
        """The calendar of a place, to the second."""
        moment = _EPOCH + timedelta(seconds=self.nanoseconds // SECOND)
        try:
            return moment + place if isinstance(place, timedelta) else moment.astimezone(place)
        except OverflowError:
            raise EvaluationError("timestamp overflow") from None

    def text(self) -> str:
        """RFC 3339 with the digits of the fraction that are needed."""
        moment = self.local(timedelta(seconds=self.offset_seconds))
        fraction = f"{self.nanoseconds % SECOND:09d}".rstrip("0")
        sign = "-" if self.offset_seconds < 0 else "+"
        minutes = abs(self.offset_seconds) // 60
        offset = f"{sign}{minutes // 60:02d}:{minutes % 60:02d}" if self.offset_seconds else "Z"
        return f"{moment:%Y-%m-%dT%H:%M:%S}".rjust(19, "0") + (f".{fraction}" if fraction else "") + offset

    def __str__(self) -> str:
        return self.text()


_UNITS = {"ns": 1, "us": 1000, "µs": 1000, "μs": 1000, "ms": 10**6, "s": SECOND, "m": 60 * SECOND, "h": 3600 * SECOND}
_AMOUNT = re.compile(r"([0-9]*)(?:\.([0-9]*))?([^0-9.]+)")


def parse_duration(text: str) -> Duration | None:
    """`1h30m`, `-1.5s`, `0`; nothing for what is no duration."""
    negative = text[:1] == "-"
    rest = text[1:] if text[:1] in ("-", "+") else text
    if rest == "0":
        return Duration(0)
    if not rest or len(rest) > 1000:
        return None
    total, position = 0, 0
    while position < len(rest):
        amount = _AMOUNT.match(rest, position)
        if amount is None or not (amount[1] or amount[2]) or amount[3] not in _UNITS:
            return None
        unit = _UNITS[amount[3]]
        total += int(amount[1] or "0") * unit
        if amount[2]:
            total += int(int(amount[2]) * (unit / 10 ** len(amount[2])))
        if total > INT_MAX + 1:
            return None
        position = amount.end()
    if total > INT_MAX and not (negative and total == INT_MAX + 1):
        return None
    return Duration(-total if negative else total)


_TIMESTAMP = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{1,2}):([0-9]{2}):([0-9]{2})(?:[.,]([0-9]+))?(?:Z|([+-])([0-9]{2}):([0-9]{2}))"
)


def parse_timestamp(text: str) -> Timestamp | None:
    """RFC 3339; nothing for what is no timestamp. Raises for moments before year 1."""
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        return None
    *numbers, fraction, sign, hours, minutes = match.groups()
    year, month, day, hour, minute, second = map(int, numbers)
    if sign is not None and (int(hours) > 24 or int(minutes) > 60):
        return None
    try:
        moment = datetime(year or 4, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None
    if year == 0:
        raise EvaluationError("timestamp overflow")
    offset = 0 if sign is None else (int(hours) * 3600 + int(minutes) * 60) * (-1 if sign == "-" else 1)
    elapsed = moment - _EPOCH
    seconds = elapsed.days * 86400 + elapsed.seconds - offset
    return Timestamp(seconds * SECOND + int((fraction or "0")[:9].ljust(9, "0")), offset)


def zone(name: str) -> tzinfo | timedelta:
    """A time zone by its name in the database, or the offset that a name such as `-08:00` stands for."""
    if ":" not in name:
        return _named_zone(name)
    hours, _, minutes = name.partition(":")
    for part in (hours, minutes):
        if _WHOLE.fullmatch(part) is None:
            raise EvaluationError(f'strconv.Atoi: parsing "{part}": invalid syntax')
    east = int(hours) * 60 + (-int(minutes) if name[0] == "-" else int(minutes))
    return timedelta(minutes=max(min(east, _FARTHEST), -_FARTHEST))


def _named_zone(name: str) -> tzinfo:
    if name in ("", "UTC"):
        return UTC
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):
        raise EvaluationError(f"unknown time zone {name}") from None
