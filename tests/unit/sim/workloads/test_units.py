"""Times and rates of workload files."""

from __future__ import annotations

import pytest

from bayplan.sim.workloads.units import rate_per_second, seconds_of

SPLIT = "100ms200ms0.3s"
"""Added one after the other, these are 0.6000000000000001: versions of Python differ in how they add floats."""


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90.0), ("2h30m", 9000.0), ("7d", 604_800.0), (1.5, 1.5), (SPLIT, 0.6)]
)
def test_times_are_read(text: str | float, seconds: float) -> None:
    assert seconds_of(text) == seconds


def test_rates_are_read() -> None:
    assert rate_per_second("30/m") == 0.5
