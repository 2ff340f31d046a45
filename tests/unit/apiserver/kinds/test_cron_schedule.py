"""Schedules: what is one, and the times it names."""

from __future__ import annotations

import pytest

from bayplan.apiserver.kinds.cron_schedule import BadSchedule, Schedule
from bayplan.apiserver.protocol.encoding import parse_timestamp, timestamp


@pytest.mark.parametrize(
    ("schedule", "zone", "after", "expected"),
    [
        ("*/15 * * * *", "", "2026-01-31T12:00:00Z", "2026-01-31T12:15:00Z"),
        ("@hourly", "", "2026-01-31T12:00:00Z", "2026-01-31T13:00:00Z"),
        ("0 0 29 feb *", "", "2026-01-31T12:00:00Z", "2028-02-29T00:00:00Z"),
        ("30 6 * * mon-fri", "", "2026-01-31T12:00:00Z", "2026-02-02T06:30:00Z"),
        ("0 0 1 * sun", "", "2026-01-26T00:00:00Z", "2026-02-01T00:00:00Z"),
        ("0 0 13 * 5", "", "2026-01-31T12:00:00Z", "2026-02-06T00:00:00Z"),
        ("0 9 * * *", "Europe/Berlin", "2026-01-31T12:00:00Z", "2026-02-01T08:00:00Z"),
        ("5-10/5,40 * * * 7", "", "2026-02-01T00:06:00Z", "2026-02-01T00:10:00Z"),
    ],
)
def test_the_next_time_of_a_schedule(schedule: str, zone: str, after: str, expected: str) -> None:
    found = Schedule.parse(schedule).next_after(parse_timestamp(after), zone)

    assert found is not None
    assert timestamp(found) == expected


def test_a_day_that_never_comes_has_no_time() -> None:
    assert Schedule.parse("0 0 31 feb *").next_after(0.0) is None


@pytest.mark.parametrize("text", ["", "* * * *", "60 * * * *", "* * * * mox", "*/0 * * * *", "5-1 * * * *", "@often"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(BadSchedule):
        Schedule.parse(text)
