"""The fixture `cluster`: a test that asks for it runs on the real control plane and on the embedded server.

On the embedded server, what is quick and needs no program of Go's runs in `make test`; the rest carries the mark `e2e`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.controlplane.fixtures import control_plane, empty_control_plane, require_programs
from tests.e2e.clusters import Cluster, EmbeddedPlane

__all__ = ["cluster", "control_plane", "embedded_plane", "empty_control_plane", "mark_e2e", "programs"]

REAL, EMBEDDED = "kube-apiserver", "embedded"


@pytest.fixture(scope="session")
def embedded_plane() -> Iterator[EmbeddedPlane]:
    """One process for the whole run; its log must be empty of errors at the end."""
    with EmbeddedPlane() as plane:
        yield plane
        assert "ERROR" not in plane.log, plane.log


@pytest.fixture(params=[REAL, EMBEDDED])
def cluster(request: pytest.FixtureRequest) -> Cluster:
    """A control plane without pods, nodes, volumes, CRDs or namespaces of earlier tests."""
    if request.param == REAL:
        real: Cluster = request.getfixturevalue("empty_control_plane")
        return real
    plane: EmbeddedPlane = request.getfixturevalue("embedded_plane")
    plane.start_apiserver()
    plane.clear()
    return plane


@pytest.fixture
def programs() -> None:
    """For tests that run kubectl or kube-scheduler, whichever server they run against."""
    require_programs()


def mark_e2e(items: Iterable[pytest.Item], folder: Path) -> None:
    for item in items:
        if folder in item.path.parents and not _is_for_make_test(item):
            item.add_marker(pytest.mark.e2e)


def _is_for_make_test(item: pytest.Item) -> bool:
    if not isinstance(item, pytest.Function) or item.get_closest_marker("slow") is not None:
        return False
    is_embedded = hasattr(item, "callspec") and item.callspec.params.get("cluster") == EMBEDDED
    return is_embedded and "programs" not in item.fixturenames
