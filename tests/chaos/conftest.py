"""Tests of whole runs; see `cluster_fixtures` for which carry the `e2e` mark."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.cluster_fixtures import (
    cluster,
    control_plane,
    embedded_plane,
    empty_control_plane,
    mark_e2e,
    programs,
)
from tests.e2e.plain_log import plain_log

__all__ = ["cluster", "control_plane", "embedded_plane", "empty_control_plane", "plain_log", "programs"]

_HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    mark_e2e(items, _HERE)
