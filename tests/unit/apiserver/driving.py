"""Driving a cluster in tests: short ways to create, read, bind and let time pass."""

from __future__ import annotations

from typing import Any

from bayplan.apiserver.cluster import EmbeddedCluster
from bayplan.apiserver.protocol.encoding import Json
from bayplan.observe.clock import VirtualClock

PODS = "/api/v1/namespaces/default/pods"


class Driver:
    """One administrator with time in hand."""

    def __init__(self, cluster: EmbeddedCluster, clock: VirtualClock) -> None:
        self.cluster = cluster
        self.clock = clock
        self.transport = cluster.in_process_transport()

    async def call(self, method: str, path: str, body: Json | None = None, **query: str) -> Json:
        response = await self.transport.request(method, path, body=body, query=query or None)
        assert response.status < 300, response.body
        return response.json()

    async def create(self, path: str, body: Json) -> Json:
        return await self.call("POST", path, body)

    async def get(self, path: str) -> Json:
        return await self.call("GET", path)

    async def items(self, path: str, **query: str) -> list[Json]:
        return list((await self.call("GET", path, **query))["items"])

    async def patch(self, path: str, body: Json) -> Json:
        kind = "application/merge-patch+json"
        response = await self.transport.request("PATCH", path, body=body, content_type=kind)
        assert response.status < 300, response.body
        return response.json()

    async def exists(self, path: str) -> bool:
        return (await self.transport.request("GET", path)).status == 200

    async def bind(self, name: str, node: str) -> None:
        body = {"metadata": {"name": name}, "target": {"kind": "Node", "name": node}}
        await self.create(f"{PODS}/{name}/binding", body)

    async def bind_pending(self) -> int:
        """Stand in for a scheduler: put every pending pod somewhere, daemons where they belong."""
        nodes = [node["metadata"]["name"] for node in await self.items("/api/v1/nodes")]
        pending = await self.items("/api/v1/pods", fieldSelector="spec.nodeName=,status.phase=Pending")
        for index, pod in enumerate(pending):
            await self.bind(pod["metadata"]["name"], _wanted_node(pod) or nodes[index % len(nodes)])
        return len(pending)

    async def wait(self, seconds: float) -> None:
        await self.clock.run_for(seconds)

    async def settle(self, rounds: int = 6) -> None:
        """Let controllers, a stand-in scheduler and kubelets work until they are done."""
        for _ in range(rounds):
            await self.wait(1.0)
            await self.bind_pending()
        await self.wait(1.0)


def _wanted_node(pod: Json) -> str:
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    for term in required.get("nodeSelectorTerms") or ():
        for field in term.get("matchFields") or ():
            return str(field["values"][0])
    return ""


def pod(name: str, *, annotations: Json | None = None, labels: Json | None = None, **spec: Any) -> Json:
    metadata: Json = {"name": name, "annotations": annotations or {}, "labels": labels or {}}
    container: Json = {"name": "main", "image": "example/app:1"}
    if "requests" in spec:
        container["resources"] = {"requests": spec.pop("requests")}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container], **spec}}


def template(labels: Json, **annotations: str) -> Json:
    return {
        "metadata": {"labels": labels, "annotations": annotations},
        "spec": {"containers": [{"name": "main", "image": "example/app:1"}]},
    }


def workload(kind: str, name: str, **spec: Any) -> Json:
    labels = {"app": name}
    body = {"selector": {"matchLabels": labels}, "template": template(labels), **spec}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": body}
