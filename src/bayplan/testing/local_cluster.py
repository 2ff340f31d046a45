"""A whole cluster in a test: the embedded API server, simulated nodes and the real scheduler, without a socket.

    async def test_my_plugin_on_a_cluster():
        async with cluster(nodes=3, plugins=[MyPlugin]) as local:
            await local.create(pod("web"))
            assert await local.node_of("web") == "node-2"

Faults are ordered on `local.faults`; with a `VirtualClock` waits cost no real time (`await clock.run_for(60)`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from bayplan.api.kinds import kind_named, kind_of
from bayplan.api.meta import KubeObject
from bayplan.apiserver.server.faults import Faults
from bayplan.apiserver.server.inprocess import InProcessTransport
from bayplan.app.live import LiveScheduler
from bayplan.app.settings import resolve_settings
from bayplan.client.errors import api_error
from bayplan.config.loading import default_config, load_config
from bayplan.framework.plugin import Plugin
from bayplan.loop.observer import Observer
from bayplan.observe.clock import Clock
from bayplan.plugins.intree import default_registry
from bayplan.sim.local import CLIENT_ERRORS, LocalCluster, LocalOptions

__all__ = ["TestCluster", "cluster"]

Json = dict[str, Any]
_LOOK_EVERY_SECONDS = 0.01


class TestCluster:
    """What a test does to a cluster. Objects are given as builders make them, or as plain dictionaries."""

    __test__ = False

    def __init__(self, local: LocalCluster) -> None:
        self.local = local
        self._transport: InProcessTransport = local.cluster.in_process_transport(errors=CLIENT_ERRORS)

    @property
    def scheduler(self) -> LiveScheduler:
        return self.local.live

    @property
    def faults(self) -> Faults:
        """Of the calls that this test makes; the scheduler has a transport of its own."""
        return self._transport.faults

    async def request(self, method: str, path: str, body: Json | None = None) -> Json:
        """One call to the API server; raises the client's ApiError when it refuses."""
        encoded = None if body is None else msgspec.json.encode(body)
        answer = await self._transport.request(method, path, body=encoded)
        if answer.status >= 300:
            raise api_error(answer.status, answer.body, headers=answer.headers)
        return msgspec.json.decode(answer.body, type=Json)

    async def create(self, *items: KubeObject | Json) -> None:
        for item in items:
            document = _document(item)
            await self.request("POST", _collection(document), document)

    async def delete(self, item: KubeObject | Json) -> None:
        document = _document(item)
        await self.request("DELETE", f"{_collection(document)}/{document['metadata']['name']}")

    async def pod(self, name: str, namespace: str = "default") -> Json:
        return await self.request("GET", f"/api/v1/namespaces/{namespace}/pods/{name}")

    async def node_of(self, name: str, namespace: str = "default", *, within: float = 5.0) -> str:
        """The node that a pod got; waits for it, and says why if there is none in time."""
        for _ in range(int(within / _LOOK_EVERY_SECONDS)):
            found = await self.pod(name, namespace)
            if found["spec"].get("nodeName"):
                return str(found["spec"]["nodeName"])
            await asyncio.sleep(_LOOK_EVERY_SECONDS)
        raise AssertionError(f"pod `{namespace}/{name}` got no node within {within:g} s: {_message(found)}")

    async def pending_message(self, name: str, namespace: str = "default", *, within: float = 5.0) -> str:
        """Why a pod waits, once the scheduler has written it."""
        for _ in range(int(within / _LOOK_EVERY_SECONDS)):
            message = _message(await self.pod(name, namespace))
            if message:
                return message
            await asyncio.sleep(_LOOK_EVERY_SECONDS)
        raise AssertionError(f"nothing was said about pod `{namespace}/{name}` within {within:g} s")


@asynccontextmanager
async def cluster(
    *,
    nodes: int | Iterable[KubeObject | Json] = 3,
    objects: Iterable[KubeObject | Json] = (),
    config: str | None = None,
    plugins: Sequence[type[Plugin] | str] = (),
    clock: Clock | None = None,
    seed: int = 0,
    observers: Sequence[Observer] = (),
) -> AsyncIterator[TestCluster]:
    """Start a cluster with the scheduler on it. `plugins` are enabled unless `config` (YAML text) mentions them."""
    registry = default_registry()
    names = []
    for plugin in plugins:
        classes = registry.load(plugin) if isinstance(plugin, str) else [registry.add(plugin, replace=True)]
        names += [cls.name for cls in classes]
    settings = resolve_settings(default_config() if config is None else load_config(config), registry, enable=names)
    options = LocalOptions(
        nodes=nodes if isinstance(nodes, int) else [_document(node) for node in nodes],
        objects=[_document(item) for item in objects],
        listen=False,
        clock=clock,
        seed=seed,
        observers=observers,
    )
    async with LocalCluster(settings, options) as local:
        yield TestCluster(local)


def _document(item: KubeObject | Json) -> Json:
    if isinstance(item, dict):
        return item
    kind = kind_of(type(item))
    document: Json = msgspec.to_builtins(item)
    metadata = document.get("metadata", {})
    # What the API server gives out itself must not be sent to it.
    document["metadata"] = {key: value for key, value in metadata.items() if key not in ("uid", "resourceVersion")}
    return {"apiVersion": kind.api_version, "kind": kind.name} | document


def _collection(document: Json) -> str:
    kind = kind_named(document["apiVersion"], document["kind"])
    if kind is None:
        raise ValueError(f"`{document['kind']}` is not a kind that scheduling reads; use `request` with its path")
    namespace = document["metadata"].get("namespace") or "default"
    if not kind.is_namespaced:
        return kind.path
    return kind.path.replace(f"/{kind.plural}", f"/namespaces/{namespace}/{kind.plural}")


def _message(pod: Json) -> str:
    for condition in pod.get("status", {}).get("conditions", []):
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return str(condition.get("message", ""))
    return ""
