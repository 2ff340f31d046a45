"""Where a scenario is played: an API server, a user's hands, schedulers that come and go, and a clock.

The embedded world runs on a virtual clock, so that waiting costs nothing; the real one waits. There are no kubelets in
either: a pod that has a node keeps it until somebody deletes it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from bayplan.apiserver.cluster import EmbeddedCluster
from bayplan.app.live import LiveOptions, LiveScheduler
from bayplan.app.watching import served_kinds
from bayplan.client.errors import ConnectionFailed
from bayplan.client.transport import ByteStream, Response, Transport
from bayplan.config.loading import load_config
from bayplan.config.profiles import resolve_profiles
from bayplan.deploy.crds import crd_documents
from bayplan.framework.resources import resource_info
from bayplan.observe.clock import Clock, SystemClock, VirtualClock
from bayplan.plugins.intree import default_registry
from bayplan.sim.local import CLIENT_ERRORS
from tests.e2e.api_session import NO_GRACE, ApiSession, transport_to
from tests.e2e.objects import JsonObject

_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_PLUGINS = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
podInitialBackoffSeconds: 1
podMaxBackoffSeconds: 2
profiles:
- plugins:
    multiPoint:
      enabled: [%(enabled)s]
      disabled: [%(disabled)s]
  pluginConfig: %(args)s
"""


def configuration(*plugins: str, disabled: Sequence[str] = (), args: dict[str, Any] | None = None) -> str:
    """A configuration that enables plugins everywhere, as the chart of the originals does."""
    given = [{"name": name, "args": values} for name, values in (args or {}).items()]
    return _PLUGINS % {
        "enabled": ", ".join(f"{{name: {name}}}" for name in plugins),
        "disabled": ", ".join(f"{{name: {name}}}" for name in disabled),
        "args": given,
    }


class Lifeline:
    """A transport that can be cut."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._is_cut = False

    def cut(self) -> None:
        self._is_cut = True

    async def request(self, method: str, path: str, **options: Any) -> Response:
        if self._is_cut:
            raise ConnectionFailed("the line is cut", may_have_been_processed=False)
        return await self._transport.request(method, path, **options)

    def stream(self, path: str, *, query: Mapping[str, str] | None = None) -> ByteStream:
        return self._transport.stream(path, query=query)

    async def close(self) -> None:
        await self._transport.close()


class World:
    def __init__(self, transport: Transport, clock: Clock, connect: Callable[[], Transport]) -> None:
        self.transport = transport
        self.clock = clock
        self.connect = connect
        """A connection of its own, for a scheduler."""
        self._lifelines: dict[asyncio.Task[None], Lifeline] = {}
        self.api = ApiSession(transport)  # type: ignore[arg-type]  # it uses `request` alone

    async def install(self, *kinds: type[Any]) -> None:
        """Create the definitions of custom resources and wait until they are served."""
        for document in crd_documents(kinds):
            await self.api.call("POST", _CRDS, document, allow=[409])
        for path in [resource_info(kind).path for kind in kinds]:
            await self.until(partial(self._is_served, path), what=f"{path} served")
            await self._clear(path)

    async def _is_served(self, path: str) -> bool:
        return (await self.transport.request("GET", path)).status == 200

    async def _clear(self, path: str) -> None:
        """Objects of an earlier scenario go."""
        root, _, plural = path.rpartition("/")
        for metadata in [item["metadata"] for item in await self.api.items(path)]:
            middle = f"namespaces/{metadata['namespace']}/" if "namespace" in metadata else ""
            await self.api.call("DELETE", f"{root}/{middle}{plural}/{metadata['name']}")

    async def put(self, kind: type[Any], name: str, spec: JsonObject, *, namespace: str = "default") -> None:
        """Create a custom resource."""
        info = resource_info(kind)
        metadata = {"name": name} | ({"namespace": namespace} if info.is_namespaced else {})
        body = {"apiVersion": info.api_version, "kind": info.kind, "metadata": metadata, **spec}
        await self.api.call("POST", self.path_of(kind, namespace), body)

    @staticmethod
    def path_of(kind: type[Any], namespace: str = "default") -> str:
        info = resource_info(kind)
        middle = f"namespaces/{namespace}/" if info.is_namespaced else ""
        return f"/apis/{info.api_version}/{middle}{info.plural}"

    async def pods(self) -> dict[str, JsonObject]:
        """By `namespace/name`."""
        return {f"{p['metadata']['namespace']}/{p['metadata']['name']}": p for p in await self.api.pods()}

    async def bound(self) -> dict[str, str]:
        """`namespace/name` to node, of those that have one."""
        return {key: pod["spec"]["nodeName"] for key, pod in (await self.pods()).items() if pod["spec"].get("nodeName")}

    async def message(self, key: str) -> str:
        """Why the pod waits, as anybody can read it."""
        conditions = (await self.pods())[key]["status"].get("conditions") or []
        return "".join(c.get("message", "") for c in conditions if c["type"] == "PodScheduled")

    async def delete(self, *keys: str) -> None:
        """Pods by `namespace/name`, at once."""
        paths = [f"/api/v1/namespaces/{key.replace('/', '/pods/')}" for key in keys]
        await asyncio.gather(*(self.api.call("DELETE", path, NO_GRACE, allow=[404]) for path in paths))

    async def run(self, key: str) -> None:
        """As a kubelet does when the containers run."""
        await self._set_phase(key, "Running")

    async def finish(self, key: str) -> None:
        """As a kubelet does when the containers ended well."""
        await self._set_phase(key, "Succeeded")

    async def _set_phase(self, key: str, phase: str) -> None:
        path = f"/api/v1/namespaces/{key.replace('/', '/pods/')}/status"
        await self.api.call("PATCH", path, {"status": {"phase": phase}})

    async def wait(self, seconds: float) -> None:
        """Let time pass."""
        if isinstance(self.clock, VirtualClock):
            await self.clock.run_for(seconds)
        else:
            await asyncio.sleep(seconds)

    async def until(
        self, holds: Callable[[], Awaitable[bool]], *, what: str, seconds: float = 60.0, step: float = 0.25
    ) -> None:
        """Let time pass, a step at a time where the clock is virtual, until something holds."""
        step = step if isinstance(self.clock, VirtualClock) else 0.05
        deadline = self.clock.monotonic() + seconds
        while not await holds():
            if self.clock.monotonic() >= deadline:
                raise AssertionError(f"not within {seconds:g}s: {what}; pods are {await self._outlook()}")
            await self.wait(step)

    async def _outlook(self) -> dict[str, str]:
        """The node of each pod, or why it has none."""
        bound = await self.bound()
        return {key: bound.get(key) or await self.message(key) for key in await self.pods()}

    async def until_bound(self, count: int, *, seconds: float = 60.0) -> None:
        async def enough() -> bool:
            return len(await self.bound()) >= count

        await self.until(enough, what=f"{count} pods bound", seconds=seconds)

    @contextlib.asynccontextmanager
    async def scheduling(self, config: str, *, seed: int = 0) -> AsyncIterator[LiveScheduler]:
        """A scheduler while the block lasts."""
        live, task = await self.start_scheduler(config, seed=seed)
        try:
            yield live
            assert not task.done(), "the scheduler ended by itself"
        finally:
            await self.end(task)

    async def start_scheduler(
        self, config: str, *, seed: int = 0, may_lead: asyncio.Event | None = None
    ) -> tuple[LiveScheduler, asyncio.Task[None]]:
        """With `may_lead`, a replica that stands by until then, while another one leads."""
        registry, loaded = default_registry(), load_config(config)
        options = LiveOptions(clock=self.clock, seed=seed, drain_seconds=5.0)
        if may_lead is not None:
            options = replace(options, wait_to_lead=partial(_wait_for, may_lead), others_led_until=self.clock.monotonic)
        transport = Lifeline(self.connect())
        live = LiveScheduler(
            transport,
            loaded,
            resolve_profiles(loaded, registry),
            registry,
            await served_kinds(transport),
            options,
        )
        task = asyncio.create_task(live.run(), name="scheduler")
        self._lifelines[task] = transport

        async def is_ready() -> bool:
            return live.is_ready.is_set() or task.done()

        await self.until(is_ready, what="scheduler ready")
        return live, task

    async def kill(self, task: asyncio.Task[None]) -> None:
        """End a scheduler as a lost machine does: from now on nothing that it writes arrives."""
        self._lifelines[task].cut()
        await self.end(task)

    async def end(self, task: asyncio.Task[None]) -> None:
        task.cancel()

        async def is_over() -> bool:
            return task.done()

        await self.until(is_over, what="scheduler ended")
        await asyncio.gather(task, return_exceptions=True)


async def _wait_for(event: asyncio.Event) -> None:
    await event.wait()


@contextlib.asynccontextmanager
async def embedded_world(nodes: Sequence[JsonObject] = ()) -> AsyncIterator[World]:
    clock = VirtualClock()
    cluster = EmbeddedCluster(nodes=list(nodes), listen=False, clock=clock, seed=0, simulate=False)
    await cluster.start()

    def connect() -> Any:
        return cluster.in_process_transport(errors=CLIENT_ERRORS)

    try:
        yield World(connect(), clock, connect)
    finally:
        await cluster.stop()


@contextlib.asynccontextmanager
async def real_world(kubeconfig: Path) -> AsyncIterator[World]:
    opened: list[Any] = []

    def connect() -> Any:
        opened.append(transport_to(kubeconfig))
        return opened[-1]

    try:
        yield World(connect(), SystemClock(), connect)
    finally:
        for transport in opened:
            await transport.close()
