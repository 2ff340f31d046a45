"""A whole cluster in a test: the embedded API server, simulated nodes and the real scheduler, without a socket.

    async def test_my_plugin_on_a_cluster():
        async with cluster(nodes=3, plugins=[MyPlugin]) as local:
            await local.create(pod("web"))
            assert await local.node_of("web") == "node-2"

Definitions of the custom resources that the plugins watch are installed, so that objects of these types can be created,
patched and deleted like any other:

            pool = LicensePool(metadata=Metadata(name="ide"), spec=LicensePoolSpec(licenses=3))
            await local.create(pool)
            await local.patch(pool, {"spec": {"licenses": 4}})

Faults are ordered on `local.faults`; with a `VirtualClock` waits cost no real time (`await clock.run_for(60)`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import msgspec

from bayplan.api.kinds import kind_named, kind_of
from bayplan.api.meta import KubeObject
from bayplan.apiserver.server.faults import Faults
from bayplan.apiserver.server.inprocess import InProcessTransport
from bayplan.app.live import LiveScheduler
from bayplan.app.settings import resolve_settings
from bayplan.client.errors import api_error
from bayplan.client.transport import JSON, MERGE_PATCH
from bayplan.config.loading import default_config, load_config
from bayplan.deploy.crds import crd_documents
from bayplan.framework.plugin import Plugin
from bayplan.framework.queued import QueuedPod
from bayplan.framework.resources import CustomResource, resource_info
from bayplan.loop.decide import Decision
from bayplan.loop.observer import Observer
from bayplan.observe.clock import Clock
from bayplan.plugins.intree import default_registry
from bayplan.sim.local import CLIENT_ERRORS, LocalCluster, LocalOptions
from bayplan.testing.outcome import ChosenNode, Outcome, outcome_of
from bayplan.testing.tables import verdict_table

__all__ = ["TestCluster", "cluster", "document_of"]

Json = dict[str, Any]
_LOOK_EVERY_SECONDS = 0.01


class TestCluster:
    """What a test does to a cluster. Objects are given as builders make them, or as plain dictionaries."""

    __test__ = False

    def __init__(
        self, local: LocalCluster, watched: Sequence[type[Any]] = (), outcomes: _LastOutcomes | None = None
    ) -> None:
        self.local = local
        self._outcomes = outcomes or _LastOutcomes()
        self.watched = tuple(watched)
        """Custom resource types whose definitions are installed."""
        self._transport: InProcessTransport = local.cluster.in_process_transport(errors=CLIENT_ERRORS)

    @property
    def scheduler(self) -> LiveScheduler:
        return self.local.live

    @property
    def faults(self) -> Faults:
        """Of the calls that this test makes; the scheduler has a transport of its own."""
        return self._transport.faults

    async def request(
        self, method: str, path: str, body: Json | None = None, *, content_type: str | None = None
    ) -> Json:
        """One call to the API server; raises the client's ApiError when it refuses. A PATCH is a merge patch."""
        encoded = None if body is None else msgspec.json.encode(body)
        sent_as = content_type or (MERGE_PATCH if method == "PATCH" else JSON)
        answer = await self._transport.request(method, path, body=encoded, content_type=sent_as)
        if answer.status >= 300:
            raise api_error(answer.status, answer.body, headers=answer.headers)
        return msgspec.json.decode(answer.body, type=Json)

    async def create(self, *items: KubeObject | Json) -> None:
        for item in items:
            document = document_of(item)
            await self.request("POST", self._collection(document), document)

    async def patch(self, item: KubeObject | Json, change: Json, *, subresource: str = "") -> Json:
        """Merge a change into an object, or into its `status`; the object as it is then."""
        path = self._path(item) + (f"/{subresource}" if subresource else "")
        return await self.request("PATCH", path, change)

    async def get(self, item: KubeObject | Json) -> Json:
        """The object of this kind and name as the API server has it."""
        return await self.request("GET", self._path(item))

    async def delete(self, item: KubeObject | Json) -> None:
        await self.request("DELETE", self._path(item))

    def _path(self, item: KubeObject | Json) -> str:
        document = document_of(item)
        return f"{self._collection(document)}/{document['metadata']['name']}"

    def _collection(self, document: Json) -> str:
        watched = {(info.api_version, info.kind): info for info in map(resource_info, self.watched)}
        found = kind_named(document["apiVersion"], document["kind"]) or watched.get(
            (document["apiVersion"], document["kind"])
        )
        if found is None:
            hint = "use `request` with its path"
            raise ValueError(f"`{document['kind']}` is no kind that scheduling reads or a plugin watches; {hint}")
        namespace = document["metadata"].get("namespace") or "default"
        if not found.is_namespaced:
            return found.path
        return found.path.replace(f"/{found.plural}", f"/namespaces/{namespace}/{found.plural}")

    async def pod(self, name: str, namespace: str = "default") -> Json:
        return await self.request("GET", f"/api/v1/namespaces/{namespace}/pods/{name}")

    async def node_of(self, name: str, namespace: str = "default", *, within: float = 5.0) -> str:
        """The node that a pod got; waits for it, and says why if there is none in time."""
        for _ in range(int(within / _LOOK_EVERY_SECONDS)):
            found = await self.pod(name, namespace)
            if found["spec"].get("nodeName"):
                table = partial(self._outcomes.table_of, f"{namespace}/{name}")
                return ChosenNode.of(str(found["spec"]["nodeName"]), table)
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
    """Start a cluster with the scheduler on it. `plugins` are enabled unless `config` (YAML text) mentions them.

    Plugins may be classes, or what `--plugin` takes. The definitions of what they watch are there from the start.
    """
    registry = default_registry()
    names = []
    for plugin in plugins:
        classes = registry.load(plugin) if isinstance(plugin, str) else [registry.add(plugin, replace=True)]
        names += [cls.name for cls in classes]
    settings = resolve_settings(default_config() if config is None else load_config(config), registry, enable=names)
    outcomes = _LastOutcomes()
    watched = settings.watches
    options = LocalOptions(
        nodes=nodes if isinstance(nodes, int) else [document_of(node) for node in nodes],
        objects=[*crd_documents(watched), *(document_of(item) for item in objects)],
        listen=False,
        clock=clock,
        seed=seed,
        observers=[*observers, outcomes],
    )
    async with LocalCluster(settings, options) as local:
        outcomes.attach(local.live)
        yield TestCluster(local, watched, outcomes)


class _LastOutcomes(Observer):
    """The last decision about each pod, with the scores of all nodes, for the messages of tests that fail."""

    def __init__(self) -> None:
        self._live: LiveScheduler | None = None
        self._last: dict[str, Outcome] = {}

    def attach(self, live: LiveScheduler) -> None:
        self._live = live
        live.keep_scores(True)

    def decided(self, queued: QueuedPod, decision: Decision, seconds: float) -> None:
        if self._live is not None:
            framework = self._live.profiles[queued.info.scheduler_name].framework
            self._last[queued.key] = outcome_of(queued.info.pod, decision, framework)

    def table_of(self, key: str) -> str:
        outcome = self._last.get(key)
        return verdict_table(outcome) if outcome is not None else f"nothing was decided about pod `{key}`"


def document_of(item: KubeObject | Json) -> Json:
    """An object as the API server takes it."""
    if isinstance(item, dict):
        return item
    header = _header(type(item))
    document: Json = msgspec.to_builtins(item)
    metadata = document.get("metadata", {})
    # What the API server gives out itself must not be sent to it.
    document["metadata"] = {key: value for key, value in metadata.items() if key not in ("uid", "resourceVersion")}
    return header | document


def _header(cls: type[KubeObject]) -> Json:
    if issubclass(cls, CustomResource):
        info = resource_info(cls)
        return {"apiVersion": info.api_version, "kind": info.kind}
    kind = kind_of(cls)
    return {"apiVersion": kind.api_version, "kind": kind.name}


def _message(pod: Json) -> str:
    for condition in pod.get("status", {}).get("conditions", []):
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return str(condition.get("message", ""))
    return ""
