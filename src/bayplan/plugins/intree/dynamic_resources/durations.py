"""Durations in the arguments of the plugin, as Go writes them: `10s`, `1h2m3.5s`."""

from __future__ import annotations

import re

__all__ = ["duration_problems", "seconds"]

_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)"
_DURATION = re.compile(rf"[+-]?(?:0|(?:{_PART})+)", re.ASCII)


def duration_problems(field: str, text: str, *, at_least: float) -> list[str]:
    found = seconds(text)
    if found is None:
        return [f"{field}: `{text}` is not a duration; write a number with a unit, such as `10s` or `1m30s`"]
    return [] if found >= at_least else [f"{field}: `{text}` is too short; it must be at least {at_least:g}s"]


def seconds(text: str) -> float | None:
    """A duration as Go writes it."""
    if not _DURATION.fullmatch(text):
        return None
    total = sum(float(number) * _SECONDS[unit] for number, unit in re.findall(_PART, text))
    return -total if text.startswith("-") else total
