"""Durations and timestamps."""

from __future__ import annotations

from datetime import timedelta

import pytest

from bayplan.cel.errors import EvaluationError
from bayplan.cel.times import SECOND, Duration, Timestamp, parse_duration, parse_timestamp, zone


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [("1h30m", 5400 * SECOND), ("-1.5ms", -1_500_000), ("0", 0), (".5s", SECOND // 2), ("1us", 1000), ("+2ns", 2)],
)
def test_durations_are_read(text: str, nanoseconds: int) -> None:
    duration = parse_duration(text)

    assert duration is not None
    assert duration.nanoseconds == nanoseconds


@pytest.mark.parametrize("text", ["", "1", "1d", "h", "1.s.", "1h-1m", "9999999999h"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    assert parse_duration(text) is None


def test_durations_are_spelled_in_seconds() -> None:
    assert [Duration(each).text() for each in (0, 5400 * SECOND, -1_500_000)] == ["0s", "5400s", "-0.0015s"]


def test_durations_stay_within_64_bits() -> None:
    with pytest.raises(EvaluationError, match="integer overflow"):
        Duration(2**63)


@pytest.mark.parametrize(
    ("text", "spelled"),
    [
        ("2020-01-01T00:00:00Z", "2020-01-01T00:00:00Z"),
        ("2009-02-13T23:31:30.500+02:00", "2009-02-13T23:31:30.5+02:00"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
    ],
)
def test_timestamps_are_read_and_keep_their_offset(text: str, spelled: str) -> None:
    moment = parse_timestamp(text)

    assert moment is not None
    assert moment.text() == spelled


@pytest.mark.parametrize(
    "text", ["", "2020-01-01", "2020-13-01T00:00:00Z", "2020-01-01T25:00:00Z", "2020-01-01T00:00:00"]
)
def test_what_is_no_timestamp_is_refused(text: str) -> None:
    assert parse_timestamp(text) is None


def test_timestamps_are_bounded() -> None:
    with pytest.raises(EvaluationError, match="timestamp overflow"):
        Timestamp(253402300800 * SECOND)


def test_zones_have_names_or_offsets() -> None:
    moment = Timestamp(0)

    assert moment.local(zone("America/New_York")).hour == 19
    assert zone("-03:30") == timedelta(hours=-3, minutes=-30)
    with pytest.raises(EvaluationError, match="unknown time zone x"):
        zone("x")
    with pytest.raises(EvaluationError, match="invalid syntax"):
        zone("1:x")
    with pytest.raises(EvaluationError, match="timestamp overflow"):
        moment.local(zone("999999999999:00"))
