"""Reaching the API server from a test: many requests at a time, errors with what the server said.

It uses Bayplan's own transport, which has its own proof in `test_client.py`; what it does is one request, one answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

import msgspec

from bayplan.client.http_transport import HttpTransport
from bayplan.client.kubeconfig import find_access
from bayplan.observe.clock import SystemClock
from tests.e2e.objects import JsonObject

CLOCK = SystemClock()
_SIDE_BY_SIDE = 24
_COLLECTIONS = {
    "Node": "/api/v1/nodes",
    "Namespace": "/api/v1/namespaces",
    "PersistentVolume": "/api/v1/persistentvolumes",
    "StorageClass": "/apis/storage.k8s.io/v1/storageclasses",
    "PriorityClass": "/apis/scheduling.k8s.io/v1/priorityclasses",
    "Pod": "/api/v1/namespaces/{}/pods",
    "PersistentVolumeClaim": "/api/v1/namespaces/{}/persistentvolumeclaims",
    "PodDisruptionBudget": "/apis/policy/v1/namespaces/{}/poddisruptionbudgets",
    "ResourceSlice": "/apis/resource.k8s.io/v1/resourceslices",
    "DeviceClass": "/apis/resource.k8s.io/v1/deviceclasses",
    "ResourceClaim": "/apis/resource.k8s.io/v1/namespaces/{}/resourceclaims",
    "ResourceClaimTemplate": "/apis/resource.k8s.io/v1/namespaces/{}/resourceclaimtemplates",
}
PODS = "/api/v1/namespaces/default/pods"
NO_GRACE = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}


def transport_to(kubeconfig: Path) -> HttpTransport:
    return HttpTransport(find_access(clock=CLOCK, environment={}, kubeconfig=kubeconfig), draw=random.random)


class ApiSession:
    """One user's requests to one API server."""

    def __init__(self, transport: HttpTransport) -> None:
        self.transport = transport
        self._places = asyncio.Semaphore(_SIDE_BY_SIDE)

    async def call(self, method: str, path: str, body: Any = None, *, allow: Iterable[int] = (), **query: str) -> Any:
        """One request; the decoded answer. A status that is neither 2xx nor in `allow` fails the test."""
        content = None if body is None else msgspec.json.encode(body)
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        async with self._places:
            answer = await self.transport.request(method, path, body=content, query=query, content_type=kind)
        assert answer.status < 300 or answer.status in allow, f"{method} {path}: {answer.status} {answer.body[:400]!r}"
        return msgspec.json.decode(answer.body)

    async def create(self, *items: JsonObject, namespace: str = "default") -> None:
        """Create objects side by side; status of nodes and budgets is kept, as the server allows it on create."""
        paths = [_COLLECTIONS[item["kind"]].format(namespace) for item in items]
        await asyncio.gather(*(self.call("POST", path, item) for path, item in zip(paths, items, strict=True)))

    async def items(self, path: str) -> list[JsonObject]:
        listed: list[JsonObject] = (await self.call("GET", path))["items"]
        return listed

    async def pods(self) -> list[JsonObject]:
        return await self.items("/api/v1/pods")

    async def pod(self, name: str) -> JsonObject:
        found: JsonObject = await self.call("GET", f"{PODS}/{name}")
        return found

    async def delete_pods(self, *names: str) -> None:
        """At once: there is no kubelet that would end a grace period."""
        await asyncio.gather(*(self.call("DELETE", f"{PODS}/{name}", NO_GRACE, allow=[404]) for name in names))

    async def events(self, *, reason: str = "", name: str = "") -> list[JsonObject]:
        found = await self.items("/apis/events.k8s.io/v1/events")
        return [
            event
            for event in found
            if (not reason or event["reason"] == reason) and (not name or event["regarding"]["name"] == name)
        ]


@contextlib.asynccontextmanager
async def api_session(kubeconfig: Path) -> AsyncIterator[ApiSession]:
    transport = transport_to(kubeconfig)
    try:
        yield ApiSession(transport)
    finally:
        await transport.close()
