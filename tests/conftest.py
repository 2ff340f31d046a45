"""Settings of all tests: property tests are bounded by examples, not by time, each test starts without a log, and the
processes that tests start end by Ctrl-C."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
import structlog
from hypothesis import HealthCheck, settings

settings.register_profile("any-machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any-machine")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell without job control starts what runs in the background so, and all children would ignore Ctrl-C as well.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def unconfigured_log() -> Iterator[None]:
    """Undo what a test or the code under test configured: half of one configuration with half of another fails."""
    yield
    if structlog.is_configured():
        structlog.reset_defaults()
