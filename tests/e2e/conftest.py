"""Every test here runs against a real kube-apiserver, so every test here carries the `e2e` mark."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.controlplane.fixtures import control_plane, empty_control_plane
from tests.e2e.plain_log import plain_log

__all__ = ["control_plane", "empty_control_plane", "plain_log"]

_HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _HERE in item.path.parents:
            item.add_marker(pytest.mark.e2e)
