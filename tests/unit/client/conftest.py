from __future__ import annotations

import pytest

from bayplan.observe.clock import VirtualClock

from .support import Certificates, make_certificates


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture(scope="session")
def certificates() -> Certificates:
    return make_certificates()
