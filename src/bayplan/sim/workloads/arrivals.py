"""Times of arrival, lazily and in order, with the durations that a file of times states."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from itertools import count, islice, repeat
from pathlib import Path
from random import Random

from bayplan.api.decode import InputError
from bayplan.apiserver.kinds.cron_schedule import BadSchedule, Schedule
from bayplan.sim.workloads.model import Arrivals
from bayplan.sim.workloads.units import MOST_PODS, rate_per_second, seconds_of

__all__ = ["Arrival", "arrival_times", "check_arrivals", "read_times"]

Arrival = tuple[float, float | None]
"""A time, and how long the pod runs where that is stated with it."""


def check_arrivals(given: Arrivals, *, folder: Path) -> None:
    """Raises ValueError for what types cannot say."""
    forms = [form for form in (given.at, given.rate, given.poisson, given.cron, given.times) if form is not None]
    if len(forms) != 1:
        raise ValueError("state one of at, rate, poisson, cron and times")
    if given.count is not None and not 0 <= given.count <= MOST_PODS:
        raise ValueError(f"count is {given.count}, expected 0 to {MOST_PODS}")
    limits = [name for name, value in (("start", given.start != "0s"), ("until", given.until is not None)) if value]
    if limits and (given.at is not None or (given.times is not None and "start" in limits)):
        raise ValueError(f"`{limits[0]}` is without effect: {'at' if given.at is not None else 'times'} says when")
    seconds_of(given.start)
    if given.until is not None:
        seconds_of(given.until)
    if given.at is not None:
        seconds_of(given.at)
    elif given.cron is not None:
        _check_cron(given.cron)
    elif given.times is not None:
        read_times(folder / given.times)
    else:
        rate_per_second(given.rate or given.poisson or "")


def _check_cron(text: str) -> None:
    if "TZ=" in text:
        raise ValueError("cron: a schedule is in UTC; leave `TZ=` out and write its hours in UTC")
    try:
        schedule = Schedule.parse(text)
    except BadSchedule as error:
        raise ValueError(f"cron: {error}") from error
    if schedule.next_after(0.0) is None:
        raise ValueError(f"cron: `{text}` never comes: there is no such day")


def arrival_times(given: Arrivals, dice: Random, *, start: float, end: float | None, folder: Path) -> Iterator[Arrival]:
    """The arrivals in seconds since the start, which is `start` on the wall clock, up to the end."""
    own_end = None if given.until is None else seconds_of(given.until)
    last = min((limit for limit in (end, own_end) if limit is not None), default=None)
    if given.at is not None:
        yield from repeat((seconds_of(given.at), None), 1 if given.count is None else given.count)
        return
    if given.count is None and last is None and given.times is None:
        raise InputError("the workload never ends\nhint: state `count` or `until` of its arrivals, or --until")
    if given.count is None and last is not None and (text := given.rate or given.poisson) is not None:
        wanted = rate_per_second(text) * (last - seconds_of(given.start))
        if wanted > MOST_PODS:
            raise InputError(f"`{text}` until then are {wanted:,.0f} pods, expected {MOST_PODS:,} or less")
    for arrival in islice(_endless(given, dice, start=start, folder=folder), given.count):
        if last is not None and arrival[0] > last:
            return
        yield arrival


def _endless(given: Arrivals, dice: Random, *, start: float, folder: Path) -> Iterator[Arrival]:
    first = seconds_of(given.start)
    if given.times is not None:
        yield from read_times(folder / given.times)
    elif given.cron is not None:
        schedule = Schedule.parse(given.cron)
        moment = schedule.next_after(start + first - 1.0)
        while moment is not None:
            yield moment - start, None
            moment = schedule.next_after(moment)
    elif given.poisson is not None:
        mean, time = 1.0 / rate_per_second(given.poisson), first
        while True:
            # To the millisecond: processors may differ in the last digits of a logarithm.
            time = round(time + dice.expovariate(1.0) * mean, 3)
            yield time, None
    else:
        step = 1.0 / rate_per_second(given.rate or "1/s")
        for number in count():
            yield round(first + number * step, 6), None


def read_times(path: Path) -> list[Arrival]:
    """The arrivals of a CSV file, sorted. Raises InputError with the line of a problem."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"not UTF-8 text (byte {error.start})", source=str(path)) from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", source=str(path)) from error
    reader = csv.DictReader(io.StringIO(text))
    found = []
    try:
        names = list(reader.fieldnames or ())
        _check_columns(names, path)
        for row in reader:
            if None in row or None in row.values():
                raise InputError(f"expected {len(names)} values", source=f"{path}:{reader.line_num}")
            found.append((_seconds(row, "time", path, reader.line_num), _duration(row, path, reader.line_num)))
    except csv.Error as error:
        raise InputError(f"no CSV: {error}", source=f"{path}:{reader.reader.line_num}") from error
    return sorted(found, key=lambda arrival: arrival[0])


def _check_columns(names: Sequence[str], path: Path) -> None:
    said = [] if "time" in names else ["column `time` is missing"]
    said += [f"column `{name}` is unknown" for name in names if name not in ("time", "duration")]
    said += [f"column `{name}` is there twice" for name in dict.fromkeys(names) if names.count(name) > 1]
    if said:
        raise InputError("; ".join(said), source=f"{path}:1")


def _duration(row: dict[str, str], path: Path, line: int) -> float | None:
    return _seconds(row, "duration", path, line) if row.get("duration") else None


def _seconds(row: dict[str, str], column: str, path: Path, line: int) -> float:
    text = row.get(column) or ""
    try:
        return seconds_of(float(text))
    except ValueError:
        message = f"{column} is `{text:.40}`, expected seconds of 0 or more"
        raise InputError(message, source=f"{path}:{line}") from None
