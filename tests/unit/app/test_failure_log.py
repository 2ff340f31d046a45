"""Failures of plugins in the log."""

from __future__ import annotations

from structlog.testing import capture_logs

from bayplan.app.failure_log import FailureLog


def test_a_failure_comes_once_with_its_traceback_and_then_by_how_often() -> None:
    failures = FailureLog()
    with capture_logs() as log:
        for _ in range(1_234):
            failures.write("Mine", "filter", NameError("same"))
        failures.write("Mine", "filter", NameError("other"))
        failures.forget()
        failures.write("Mine", "filter", NameError("same"))

    assert [(line["event"], line.get("times", 1), "exc_info" in line) for line in log] == [
        ("plugin failed", 1, True),
        ("plugin failed again", 10, False),
        ("plugin failed again", 100, False),
        ("plugin failed again", 1000, False),
        ("plugin failed", 1, True),
        ("plugin failed", 1, True),
    ]


def test_failures_that_are_all_different_take_no_memory() -> None:
    failures = FailureLog()
    for number in range(1_000):
        failures.write("Mine", "score", ValueError(str(number)))

    assert len(failures._times) <= 256
