"""Fixtures for tests marked `e2e`: one control plane for the whole run, emptied for each test that asks.

Import them in a conftest. Where nothing can run because Go is absent, tests are skipped with one sentence that says so;
where the programs are merely not built yet, tests fail and name the command, so that nothing is skipped by neglect.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.controlplane.cluster import ControlPlane
from tests.controlplane.programs import missing_programs, skip_reason


@pytest.fixture(scope="session")
def control_plane() -> Iterator[ControlPlane]:
    """etcd and kube-apiserver for the whole run; tests that change cluster-wide things clean up after themselves."""
    require_programs()
    with ControlPlane() as cluster:
        yield cluster


@pytest.fixture
def empty_control_plane(control_plane: ControlPlane) -> ControlPlane:
    """The same control plane, running and without pods, nodes, volumes, CRDs or namespaces of earlier tests."""
    control_plane.start_etcd()
    control_plane.start_apiserver()
    control_plane.clear()
    return control_plane


def require_programs() -> None:
    """Skip where Go is absent, fail where only the build is; for tests that start a control plane of their own."""
    reason = skip_reason()
    if reason is not None:
        pytest.skip(reason)
    missing = missing_programs()
    if missing:
        pytest.fail(f"e2e needs {', '.join(missing)}; hint: run `make controlplane`", pytrace=False)
