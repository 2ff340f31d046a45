"""Durations as Kubernetes writes them: `15s`, `1m30s`, `100ms`."""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal

__all__ = ["format_duration", "parse_duration"]

_UNITS = {"ns": "0.001", "us": "1", "µs": "1", "μs": "1", "ms": "1000", "s": "1e6", "m": "6e7", "h": "3.6e9"}
_PART = re.compile(r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_LONGEST_MICROSECONDS = Decimal(2**63 // 1000)


def parse_duration(text: str) -> timedelta | None:
    """The duration that the text stands for, to the microsecond; None when it is none."""
    sign, digits = (-1, text[1:]) if text[:1] == "-" else (1, text.removeprefix("+"))
    if digits == "0":
        return timedelta(0)
    parts = _PART.findall(digits)
    if not parts or "".join(number + unit for number, unit in parts) != digits or len(digits) > 100:
        return None
    microseconds = sum((Decimal(number) * Decimal(_UNITS[unit]) for number, unit in parts), Decimal(0))
    if microseconds > _LONGEST_MICROSECONDS:
        return None
    return timedelta(microseconds=sign * int(microseconds))


def format_duration(duration: timedelta) -> str:
    """As Go prints it: the largest unit first, seconds always named (`10m0s`), small ones in their own unit."""
    total = duration // timedelta(microseconds=1)
    sign, total = ("-", -total) if total < 0 else ("", total)
    if total == 0:
        return "0s"
    if total < 1000:
        return f"{sign}{total}µs"
    if total < 1_000_000:
        return f"{sign}{_decimal(total, 1000)}ms"
    minutes, rest = divmod(total, 60_000_000)
    hours, minutes = divmod(minutes, 60)
    head = f"{hours}h{minutes}m" if hours else f"{minutes}m" if minutes else ""
    return f"{sign}{head}{_decimal(rest, 1_000_000)}s"


def _decimal(amount: int, unit: int) -> str:
    whole, fraction = divmod(amount, unit)
    digits = str(fraction).rjust(len(str(unit)) - 1, "0").rstrip("0")
    return f"{whole}.{digits}" if digits else str(whole)
