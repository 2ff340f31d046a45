"""The parts of a controller manager and of kubelets that moving pods needs: there are none beside a bare API server.

Pods with a node become ready, a ReplicaSet that has too few pods gets another, and the status of budgets follows.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from tests.e2e.api_session import PODS, ApiSession, transport_to
from tests.e2e.objects import JsonObject

_BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
_SETS = "/apis/apps/v1/namespaces/default/replicasets"
_READY = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}


class ReplicaController:
    """For ReplicaSets and budgets of the default namespace that were made by `replica_set` and `budget`."""

    def __init__(self, api: ApiSession) -> None:
        self._api = api
        self._made = 100
        self.created: list[str] = []
        """Names of pods that replaced others, in order."""

    async def run(self) -> None:
        while True:
            pods = await self._api.items(PODS)
            for pod in pods:
                if pod["spec"].get("nodeName") and not _is_ready(pod):
                    await self._api.call("PATCH", f"{PODS}/{pod['metadata']['name']}/status", _READY, allow=[404])
            for each in await self._api.items(_SETS):
                await self._replace(each, pods)
            for each in await self._api.items(_BUDGETS):
                await self._count(each, await self._api.items(PODS))
            await asyncio.sleep(0.02)

    async def _replace(self, owner: JsonObject, pods: list[JsonObject]) -> None:
        own = [pod for pod in pods if _covers(owner, pod)]
        for _ in range(owner["spec"]["replicas"] - len(own)):
            self._made += 1
            name = f"{owner['metadata']['name']}-{self._made}"
            self.created.append(name)
            await self._api.call("POST", PODS, owned_pod(name, owner))

    async def _count(self, budget: JsonObject, pods: list[JsonObject]) -> None:
        own = [pod for pod in pods if _covers(budget, pod)]
        healthy = sum(map(_is_ready, own))
        desired = len(own) - budget["spec"]["maxUnavailable"]
        status = {
            "disruptionsAllowed": max(healthy - desired, 0),
            "currentHealthy": healthy,
            "desiredHealthy": desired,
            "expectedPods": len(own),
            "observedGeneration": budget["metadata"]["generation"],
            "disruptedPods": None,
        }
        await self._api.call("PATCH", f"{_BUDGETS}/{budget['metadata']['name']}/status", {"status": status})


def _is_ready(pod: JsonObject) -> bool:
    conditions = pod["status"].get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _covers(item: JsonObject, pod: JsonObject) -> bool:
    wanted = item["spec"]["selector"]["matchLabels"].items()
    return wanted <= (pod["metadata"].get("labels") or {}).items() and "deletionTimestamp" not in pod["metadata"]


def replica_set(name: str, *, replicas: int, cpu: str) -> JsonObject:
    container = {"name": "main", "image": "example.test/app:1", "resources": {"requests": {"cpu": cpu}}}
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 0, "automountServiceAccountToken": False},
    }
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": name}, "spec": spec}


def owned_pod(name: str, owner: JsonObject, *, node_name: str = "") -> JsonObject:
    """A pod of a ReplicaSet as the API server returned it."""
    reference = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
    }
    template = owner["spec"]["template"]
    metadata = {"name": name, "labels": template["metadata"]["labels"], "ownerReferences": [reference]}
    spec = {**template["spec"], **({"nodeName": node_name} if node_name else {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def budget(name: str, *, max_unavailable: int) -> JsonObject:
    spec = {"maxUnavailable": max_unavailable, "selector": {"matchLabels": {"app": name}}}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name}, "spec": spec}


async def place(api: ApiSession, owner: JsonObject, *node_names: str) -> None:
    """Create a ReplicaSet with a pod on each of these nodes."""
    made = await api.call("POST", _SETS, owner)
    for number, node_name in enumerate(node_names):
        await api.call("POST", PODS, owned_pod(f"{owner['metadata']['name']}-{number}", made, node_name=node_name))


@contextlib.asynccontextmanager
async def keeping_replicas(kubeconfig: Path) -> AsyncIterator[ReplicaController]:
    transport = transport_to(kubeconfig)
    controller = ReplicaController(ApiSession(transport))
    task = asyncio.create_task(controller.run())
    try:
        yield controller
        assert not task.done(), task.exception()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await transport.close()
