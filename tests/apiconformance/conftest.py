"""The two servers the suite is run against, and a namespace of its own for each test."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.apiconformance.client import ApiClient, unique
from tests.apiconformance.embedded import EmbeddedThread
from tests.controlplane.fixtures import control_plane

__all__ = ["control_plane"]

SERVERS = ["embedded", pytest.param("real", marks=pytest.mark.e2e)]


@pytest.fixture(scope="session", params=SERVERS)
def api(request: pytest.FixtureRequest) -> Iterator[ApiClient]:
    """A client with all rights."""
    if request.param == "embedded":
        embedded = EmbeddedThread()
        embedded.start()
        client = embedded.client()
        yield client
        client.close()
        embedded.stop()
        return
    real: Any = request.getfixturevalue("control_plane")
    authority = real.ca_file.read_text()
    client = ApiClient(real.url, authority, certificate=(str(real.client_cert), str(real.client_key)))
    yield client
    client.close()


@pytest.fixture
def stranger(api: ApiClient) -> Iterator[ApiClient]:
    """A client nobody knows."""
    client = api.with_token("nonsense")
    yield client
    client.close()


@pytest.fixture
def namespace(api: ApiClient) -> Iterator[str]:
    """A fresh namespace with a default service account, as the controllers of a full cluster would leave it."""
    name = unique("conformance")
    api.create("/api/v1/namespaces", {"metadata": {"name": name}})
    account = {"metadata": {"name": "default"}}
    assert api.post(f"/api/v1/namespaces/{name}/serviceaccounts", account).status in (201, 409)
    yield name
    api.delete(f"/api/v1/namespaces/{name}")


@pytest.fixture
def pods(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/pods"


@pytest.fixture
def config_maps(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps"


@pytest.fixture
def deployments(namespace: str) -> str:
    return f"/apis/apps/v1/namespaces/{namespace}/deployments"


@pytest.fixture
def node_name(api: ApiClient) -> Iterator[str]:
    """The name of a node that is removed after the test, should the test create it."""
    name = unique("node")
    yield name
    api.delete(f"/api/v1/nodes/{name}")
