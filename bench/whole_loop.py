"""A whole scheduler against an API server that costs next to nothing: pods come in as JSON, bindings go out.

For measuring what one part of the scheduler costs beside all the others. `InstantServer` fulfils the transport: it
holds lists that were encoded before, answers every write with success at once, and tells the watch of pods what was
bound. It checks nothing; conformance is the business of `bayplan.apiserver`.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

import msgspec

from bayplan.api.kinds import kind_of
from bayplan.api.node import Node
from bayplan.api.pod import Pod
from bayplan.app.live import LiveOptions, LiveScheduler
from bayplan.app.metrics import SchedulerMetrics
from bayplan.client.transport import JSON, Response, always
from bayplan.config.loading import default_config
from bayplan.config.profiles import resolve_profiles
from bayplan.framework.queued import QueuedPod
from bayplan.loop.decide import Decision
from bayplan.loop.observer import Observer
from bayplan.loop.recorder import DecisionRecorder
from bayplan.observe.clock import SystemClock
from bayplan.observe.metrics import MetricsRegistry
from bayplan.plugins.intree import default_registry
from bench.clusters import running_cluster
from bench.workloads import Workload

__all__ = ["InstantServer", "measure_whole_loop"]

_BLOCK = 50
_BLOCKS = 240
_CREATED = Response(201, {}, b"{}")


class InstantServer:
    """Fulfils `bayplan.client.transport.Transport`."""

    def __init__(self, nodes: int) -> None:
        items: dict[str, list[Node | Pod]] = {kind_of(Node).path: [], kind_of(Pod).path: []}
        for item in running_cluster(nodes):
            items[kind_of(type(item)).path].append(item)
        head = {"apiVersion": "v1", "metadata": {"resourceVersion": "1"}}
        self._lists = {path: msgspec.json.encode(head | {"items": found}) for path, found in items.items()}
        self._changes: asyncio.Queue[bytes] = asyncio.Queue()
        self._unbound: dict[str, bytes] = {}

    def create(self, pods: list[tuple[str, bytes]]) -> None:
        """(name, event): tell the watch of pods."""
        self._unbound.update(pods)
        self._changes.put_nowait(b"".join(event for _, event in pods))

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = JSON,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
        may_send: Callable[[], bool] = always,
    ) -> Response:
        if path.endswith("/binding") and body is not None:
            name = path.split("/")[-2]
            node = msgspec.json.decode(body)["target"]["name"].encode()
            event = self._unbound.pop(name).replace(b'"ADDED"', b'"MODIFIED"', 1)
            self._changes.put_nowait(event.replace(b'"spec":{', b'"spec":{"nodeName":"' + node + b'",', 1))
        return _CREATED if method != "GET" else Response(200, {}, self._lists[path])

    @asynccontextmanager
    async def stream(self, path: str, *, query: Mapping[str, str] | None = None) -> AsyncIterator[AsyncIterator[bytes]]:
        yield self._pieces(path)

    async def _pieces(self, path: str) -> AsyncIterator[bytes]:
        if path != kind_of(Pod).path:
            await asyncio.Event().wait()
        while True:
            yield await self._changes.get()

    async def close(self) -> None:
        """Nothing is open."""


def _event(what: str, item: Node | Pod) -> bytes:
    kind = kind_of(type(item))
    head = {"kind": kind.name, "apiVersion": kind.api_version}
    return msgspec.json.encode({"type": what, "object": head | msgspec.to_builtins(item)}) + b"\n"


class _Switched(DecisionRecorder):
    """A record that can be turned off while the scheduler runs; counts bindings either way."""

    is_on = False
    bindings = 0

    def decided(self, queued: QueuedPod, decision: Decision, seconds: float) -> None:
        if self.is_on:
            super().decided(queued, decision, seconds)

    def bound(self, queued: QueuedPod, node_name: str, seconds: float) -> None:
        self.bindings += 1
        if self.is_on:
            super().bound(queued, node_name, seconds)


async def measure_whole_loop(workload: Workload, nodes: int, tell: Callable[[bool, float], None]) -> DecisionRecorder:
    """Tell the CPU seconds a pod of each block, with the record and without."""
    clock, registry = SystemClock(), default_registry()
    server, recorder = InstantServer(nodes), _Switched(SystemClock())
    observers: list[Observer] = [SchedulerMetrics(MetricsRegistry(), clock), recorder]
    config = default_config()
    options = LiveOptions(observers=observers, clock=clock)
    kinds = [kind_of(Node), kind_of(Pod)]
    live = LiveScheduler(server, config, resolve_profiles(config, registry), registry, kinds, options)
    recorder.cluster = live.cache.cluster
    pods = [(pod.name, _event("ADDED", pod)) for pod in workload.pods("whole", _BLOCK * _BLOCKS, nodes)]
    running = asyncio.create_task(live.run())
    await live.is_ready.wait()
    gc.collect()
    gc.freeze()
    for number in range(_BLOCKS):
        recorder.is_on = bool(number % 2)
        seconds = await _run_block(server, recorder, pods[number * _BLOCK : (number + 1) * _BLOCK])
        if number >= 2:
            tell(recorder.is_on, seconds / _BLOCK)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    return recorder


async def _run_block(server: InstantServer, recorder: _Switched, block: list[tuple[str, bytes]]) -> float:
    wanted = recorder.bindings + len(block)
    began = time.process_time()
    server.create(block)
    while recorder.bindings < wanted:  # noqa: ASYNC110 - turns of the loop are what is measured
        await asyncio.sleep(0)
    for _ in range(20):
        await asyncio.sleep(0)  # the watch hears of the last bindings
    return time.process_time() - began
