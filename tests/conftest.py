"""Settings of all tests: property tests are bounded by examples, not by time, and each test starts without a log."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import structlog
from hypothesis import HealthCheck, settings

settings.register_profile("any-machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any-machine")


@pytest.fixture(autouse=True)
def unconfigured_log() -> Iterator[None]:
    """Undo what a test or the code under test configured: half of one configuration with half of another fails."""
    yield
    if structlog.is_configured():
        structlog.reset_defaults()
