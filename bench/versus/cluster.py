"""The cluster under a benchmark: fast creation and removal of objects."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine, Iterable
from pathlib import Path
from typing import Any

import msgspec

from bayplan.client.http_transport import HttpTransport
from bayplan.client.kubeconfig import find_access
from bayplan.client.transport import MERGE_PATCH, Response
from bayplan.observe.clock import SystemClock

Json = dict[str, Any]
SIDE_BY_SIDE = 48
_NO_GRACE = msgspec.json.encode({"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0})
_COLLECTIONS = {
    "Namespace": "/api/v1/namespaces",
    "DeviceClass": "/apis/resource.k8s.io/v1/deviceclasses",
    "Node": "/api/v1/nodes",
    "PersistentVolume": "/api/v1/persistentvolumes",
    "PersistentVolumeClaim": "/api/v1/namespaces/{}/persistentvolumeclaims",
    "Pod": "/api/v1/namespaces/{}/pods",
    "PodDisruptionBudget": "/apis/policy/v1/namespaces/{}/poddisruptionbudgets",
    "PriorityClass": "/apis/scheduling.k8s.io/v1/priorityclasses",
    "ReplicaSet": "/apis/apps/v1/namespaces/{}/replicasets",
    "ResourceClaim": "/apis/resource.k8s.io/v1/namespaces/{}/resourceclaims",
    "ResourceClaimTemplate": "/apis/resource.k8s.io/v1/namespaces/{}/resourceclaimtemplates",
    "ResourceSlice": "/apis/resource.k8s.io/v1/resourceslices",
    "Service": "/api/v1/namespaces/{}/services",
    "StorageClass": "/apis/storage.k8s.io/v1/storageclasses",
}


class BenchCluster:
    def __init__(self, kubeconfig: Path) -> None:
        self.clock = SystemClock()
        access = find_access(clock=self.clock, environment={}, kubeconfig=kubeconfig)
        self.transport = HttpTransport(access, draw=random.Random(1).random, default_timeout=120.0)

    async def close(self) -> None:
        await self.transport.close()

    async def create(self, objects: Iterable[Json]) -> int:
        """Create objects, many at a time; how many."""
        return await side_by_side(objects, self.create_one)

    async def create_one(self, item: Json) -> None:
        await self.send_new(collection_of(item), msgspec.json.encode(item))

    async def send_new(self, path: str, body: bytes) -> None:
        response = await self.transport.request("POST", path, body=body)
        if response.status not in (200, 201):
            raise RuntimeError(f"creating at {path} was answered {response.status}: {response.body[:300]!r}")

    async def patch(self, path: str, change: Json) -> None:
        body = msgspec.json.encode(change)
        response = await self.transport.request("PATCH", path, body=body, content_type=MERGE_PATCH)
        if response.status >= 300:
            raise RuntimeError(f"changing {path} was answered {response.status}: {response.body[:300]!r}")

    async def delete(self, objects: Iterable[Json]) -> None:
        """Delete objects that may be gone already."""

        async def delete_one(item: Json) -> None:
            path = f"{collection_of(item)}/{item['metadata']['name']}"
            await self._deleted(path, {})

        await side_by_side(objects, delete_one)

    async def delete_all(self, path: str) -> None:
        """Everything of a collection."""
        await self._deleted(path, {})

    async def finish_namespace(self, item: Json) -> None:
        """What a controller does once a deleted namespace is empty."""
        name = item["metadata"]["name"]
        body = msgspec.json.encode({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}, "spec": {}})
        response = await self.transport.request("PUT", f"/api/v1/namespaces/{name}/finalize", body=body)
        if response.status >= 300 and response.status != 404:
            raise RuntimeError(f"ending the namespace {name} was answered {response.status}: {response.body[:300]!r}")

    async def _deleted(self, path: str, query: dict[str, str]) -> Response:
        response = await self.transport.request("DELETE", path, query=query, body=_NO_GRACE, timeout=600)
        if response.status >= 300 and response.status not in (404, 409, 429, 504):
            raise RuntimeError(f"deleting {path} was answered {response.status}: {response.body[:300]!r}")
        return response


def collection_of(item: Json) -> str:
    return _COLLECTIONS[item["kind"]].format(item["metadata"].get("namespace", "default"))


async def side_by_side(items: Iterable[Any], action: Callable[[Any], Coroutine[Any, Any, None]]) -> int:
    """Run an action for each item, 48 at a time; how many. The first error ends all of it."""
    pending, done = iter(items), 0

    async def work() -> None:
        nonlocal done
        for item in pending:
            await action(item)
            done += 1

    async with asyncio.TaskGroup() as group:
        for number in range(SIDE_BY_SIDE):
            group.create_task(work(), name=f"bench {number}")
    return done
