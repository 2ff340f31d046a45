"""The endpoints with delegated authentication, against a real kube-apiserver's TokenReview and SubjectAccessReview."""

from __future__ import annotations

import contextlib
import random
import ssl
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from bayplan.app.authentication import review_with
from bayplan.client.http_transport import HttpTransport
from bayplan.client.kubeconfig import find_access
from bayplan.observe.clock import SystemClock
from bayplan.observe.exposition import render
from bayplan.observe.metrics import MetricsRegistry
from bayplan.observe.process_metrics import register_process
from bayplan.server import AuthenticationOptions, ServerOptions, ServerParts, Serving, serve
from tests.e2e.clusters import Cluster

RBAC = "/apis/rbac.authorization.k8s.io/v1"
SCHEDULER = "system:kube-scheduler"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"


def role() -> dict[str, Any]:
    rules = [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]
    return {"kind": "ClusterRole", "metadata": {"name": "e2e-metrics-reader"}, "rules": rules}


def binding(account: str) -> dict[str, Any]:
    return {
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "e2e-metrics-reader"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "e2e-metrics-reader"},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": "default"}],
    }


@pytest.fixture
def accounts(cluster: Cluster, programs: None) -> Iterator[dict[str, str]]:
    """Two service accounts with tokens, of which the first may read /metrics."""
    made: list[tuple[str, str]] = []

    def create(collection: str, body: dict[str, Any]) -> None:
        status, answer = cluster.admin.request("POST", collection, body)
        assert status == 201, answer
        made.append((collection, body["metadata"]["name"]))

    tokens = {}
    for name in ("e2e-scraper", "e2e-other"):
        create(ACCOUNTS, {"kind": "ServiceAccount", "apiVersion": "v1", "metadata": {"name": name}})
        tokens[name] = cluster.kubectl("create", "token", name).stdout.strip()
    create(f"{RBAC}/clusterroles", {"apiVersion": "rbac.authorization.k8s.io/v1", **role()})
    create(f"{RBAC}/clusterrolebindings", {"apiVersion": "rbac.authorization.k8s.io/v1", **binding("e2e-scraper")})
    yield tokens
    for collection, name in reversed(made):
        cluster.admin.request("DELETE", f"{collection}/{name}")


@contextlib.asynccontextmanager
async def serving(kubeconfig: Path, options: ServerOptions) -> AsyncIterator[Serving]:
    """A server that asks the API server as the scheduler's own user, who may create reviews and little else."""
    registry = MetricsRegistry()
    register_process(registry, started_at=0.0)
    access = find_access(clock=SystemClock(), environment={}, kubeconfig=kubeconfig)
    transport = HttpTransport(access, draw=random.random)
    try:
        parts = ServerParts(metrics=lambda accept: render(registry, accept), review=review_with(transport))
        async with serve(options, parts) as server:
            yield server
    finally:
        await transport.close()


async def get(server: Serving, path: str, *, token: str = "", tls: ssl.SSLContext | None = None) -> tuple[int, str]:
    tls = tls or ssl.create_default_context(cadata=server.certificate.decode())
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with aiohttp.ClientSession() as session, session.get(server.url + path, ssl=tls, headers=headers) as answer:
        return answer.status, await answer.text()


async def test_an_authorised_token_reads_metrics_and_nobody_else_does(
    cluster: Cluster, accounts: dict[str, str]
) -> None:
    async with serving(cluster.kubeconfig_for(SCHEDULER), ServerOptions(port=0)) as server:
        status, text = await get(server, "/metrics", token=accounts["e2e-scraper"])
        assert (status, "process_cpu_seconds_total" in text) == (200, True)

        status, text = await get(server, "/metrics", token=accounts["e2e-other"])
        assert status == 403
        assert "system:serviceaccount:default:e2e-other" in text

        assert (await get(server, "/metrics"))[0] == 401
        assert (await get(server, "/metrics", token="made-up"))[0] == 401
        assert (await get(server, "/metrics", token=accounts["e2e-scraper"][:-6] + "AAAAAA"))[0] == 401
        assert (await get(server, "/configz", token=accounts["e2e-scraper"]))[0] == 403
        assert (await get(server, "/configz", token=cluster.token_for("admin")))[0] == 200
        assert await get(server, "/healthz") == (200, "ok")


async def test_a_client_certificate_of_the_cluster_is_a_user(cluster: Cluster) -> None:
    authentication = AuthenticationOptions(client_ca_file=cluster.ca_file)
    options = ServerOptions(port=0, authentication=authentication)
    async with serving(cluster.kubeconfig_for(SCHEDULER), options) as server:
        tls = ssl.create_default_context(cadata=server.certificate.decode())
        tls.load_cert_chain(cluster.client_cert, cluster.client_key)

        assert (await get(server, "/metrics", tls=tls))[0] == 200
        assert (await get(server, "/metrics"))[0] == 401


async def test_while_the_api_server_may_not_be_asked_nobody_is_let_in(
    cluster: Cluster, accounts: dict[str, str]
) -> None:
    """A user without the right to create reviews: the answer is 503, and probes go on."""
    async with serving(cluster.kubeconfig_for("e2e-powerless"), ServerOptions(port=0)) as server:
        assert (await get(server, "/metrics", token=accounts["e2e-scraper"]))[0] == 503
        assert await get(server, "/livez") == (200, "ok")
