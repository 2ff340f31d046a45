from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.config.durations import format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("15s", 15), ("1m30s", 90), ("100ms", 0.1), ("0", 0), ("1.5h", 5400), ("-2s", -2), ("+3s", 3), (".5s", 0.5)],
)
def test_go_durations_are_read(text: str, seconds: float) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "15", "s", "1 s", "1d", "1s2", "--1s", "1m 30s", "9" * 40 + "h", "١s", "."])
def test_anything_else_is_no_duration(text: str) -> None:
    assert parse_duration(text) is None


@pytest.mark.parametrize(
    ("duration", "text"),
    [
        (timedelta(seconds=15), "15s"),
        (timedelta(minutes=10), "10m0s"),
        (timedelta(hours=1, seconds=1), "1h0m1s"),
        (timedelta(milliseconds=100), "100ms"),
        (timedelta(seconds=1.5), "1.5s"),
        (timedelta(microseconds=7), "7µs"),
        (timedelta(0), "0s"),
    ],
)
def test_durations_are_written_as_go_does(duration: timedelta, text: str) -> None:
    assert text == format_duration(duration)


@given(st.timedeltas(min_value=timedelta(days=-1000), max_value=timedelta(days=1000)))
def test_what_is_written_is_read_back(duration: timedelta) -> None:
    assert parse_duration(format_duration(duration)) == duration
