"""The cluster under a benchmark: fast creation and removal of objects, a watcher that times bindings, raw bindings."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from bayplan.client.http_transport import HttpTransport
from bayplan.client.kubeconfig import find_access
from bayplan.client.writer import Writer
from bayplan.observe.clock import SystemClock

Json = dict[str, Any]
_SIDE_BY_SIDE = 48
_PATHS = {
    "Node": "/api/v1/nodes",
    "Pod": "/api/v1/namespaces/default/pods",
    "Service": "/api/v1/namespaces/default/services",
}


class _Meta(msgspec.Struct, rename="camel"):
    name: str = ""
    resource_version: str = ""


class _Spec(msgspec.Struct, rename="camel"):
    node_name: str = ""


class _Pod(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)
    spec: _Spec = msgspec.field(default_factory=_Spec)


class _Event(msgspec.Struct):
    type: str
    object: _Pod


_EVENT = msgspec.json.Decoder(_Event)


class BenchCluster:
    def __init__(self, kubeconfig: Path) -> None:
        self.clock = SystemClock()
        access = find_access(clock=self.clock, environment={}, kubeconfig=kubeconfig)
        self.transport = HttpTransport(access, draw=random.Random(1).random, default_timeout=120.0)

    async def close(self) -> None:
        await self.transport.close()

    async def create(self, objects: Iterable[Json]) -> int:
        """Create objects, many at a time; how many."""
        pending = iter(objects)
        made = 0

        async def work() -> None:
            nonlocal made
            for item in pending:
                body = msgspec.json.encode(item)
                response = await self.transport.request("POST", _PATHS[item["kind"]], body=body)
                if response.status not in (200, 201):
                    raise RuntimeError(f"creating {item['metadata']}: {response.status} {response.body[:300]!r}")
                made += 1

        await asyncio.gather(*(work() for _ in range(_SIDE_BY_SIDE)))
        return made

    async def delete_pods(self) -> None:
        path = "/api/v1/namespaces/default/pods"
        body = msgspec.json.encode({"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0})
        await self.transport.request("DELETE", path, body=body, timeout=600)
        while True:
            response = await self.transport.request("GET", path, query={"limit": "1"})
            if not msgspec.json.decode(response.body).get("items"):
                break
            await asyncio.sleep(0.1)
        await self.transport.request("DELETE", "/apis/events.k8s.io/v1/namespaces/default/events", timeout=600)

    async def delete_objects(self, objects: Iterable[Json]) -> None:
        for item in objects:
            await self.transport.request("DELETE", f"{_PATHS[item['kind']]}/{item['metadata']['name']}")

    async def raw_binding_rate(self, count: int, nodes: int, template: Json) -> float:
        """Bindings a second that a bare client gets out of the API server, with 48 requests in flight."""
        header = {"apiVersion": "v1", "kind": "Pod"}
        metadata = [{"name": f"raw-{i:06}", "namespace": "default"} for i in range(count)]
        pods = [header | template | {"metadata": each} for each in metadata]
        await self.create(pods)
        writer = Writer(self.transport, clock=self.clock, draw=random.Random(2).random, max_in_flight=_SIDE_BY_SIDE)
        names = iter(enumerate(pod["metadata"]["name"] for pod in pods))

        async def work() -> None:
            for i, name in names:
                await writer.bind("default", name, uid="", node=f"node-{i % nodes:05}")

        began = time.perf_counter()
        await asyncio.gather(*(work() for _ in range(_SIDE_BY_SIDE)))
        seconds = time.perf_counter() - began
        await self.delete_pods()
        return count / seconds


class BindingWatch:
    """When each pod got its node, as a watcher sees it."""

    def __init__(self, cluster: BenchCluster, expected: int) -> None:
        self._cluster = cluster
        self._expected = expected
        self.bound: dict[str, float] = {}
        self.created: dict[str, float] = {}
        self.all_bound = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> BindingWatch:
        path = "/api/v1/namespaces/default/pods"
        listed = await self._cluster.transport.request("GET", path, query={"limit": "1"})
        version = msgspec.json.decode(listed.body)["metadata"]["resourceVersion"]
        self._task = asyncio.create_task(self._follow(path, version))
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _follow(self, path: str, version: str) -> None:
        query = {"watch": "true", "resourceVersion": version, "timeoutSeconds": "3000"}
        async with self._cluster.transport.stream(path, query=query) as chunks:
            rest = b""
            async for chunk in chunks:
                lines = (rest + chunk).split(b"\n")
                rest = lines.pop()
                now = time.perf_counter()
                for line in lines:
                    self._take(line, now)

    def _take(self, line: bytes, now: float) -> None:
        pod = _EVENT.decode(line).object
        name = pod.metadata.name
        if not name.startswith("pod-"):
            return
        self.created.setdefault(name, now)
        if pod.spec.node_name and name not in self.bound:
            self.bound[name] = now
            if len(self.bound) >= self._expected:
                self.all_bound.set()
