"""Noisy neighbours: what plain pods of one namespace cost while another holds hostile objects.

    python -m bench.neighbours [--kinds "host ports" gates] [--nodes 300] [--pods 300] [--rounds 3] [--own-labels]
                               [--versus]

For each kind of `bench.hostile`, in a process of its own: CPU per plain pod and resident memory in a quiet cluster,
with the objects there, and after they are gone. The scheduler is whole and reads its objects as JSON from a server that
answers at once. Costs are medians of rounds; each ratio compares measurements of one process. Fails when a plain pod
costs more than `MOST_CPU` times its quiet cost, when memory grows by more than `MOST_MEMORY` times, beyond what the
objects themselves take, or does not come back: more than `MOST_KEPT` times the Python objects of the quiet cluster are
left, or more than `MOST_LEFT` times its resident memory. What was derived from the last 256 templates stays.
With `--own-labels` every plain pod has a label that no other has, as the pods of a StatefulSet.
With `--versus`, on a real API server and beside kube-scheduler (`bench.versus.neighbours`).
"""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import gc
import json
import logging
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import msgspec
import structlog

from bayplan.api.kinds import KINDS as API_KINDS
from bayplan.app.live import LiveOptions, LiveScheduler
from bayplan.client.transport import JSON, Response, always
from bayplan.config.loading import load_config
from bayplan.config.profiles import resolve_profiles
from bayplan.plugins.intree import default_registry
from bench import hostile

MOST_CPU, MOST_MEMORY, MOST_LEFT, MOST_KEPT = 1.5, 1.5, 1.25, 1.25
_CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    multiPoint:
      enabled: [{name: Coscheduling}, {name: CapacityScheduling}, {name: NodeResourceTopologyMatch}]
      disabled: [{name: PrioritySort}]
    postFilter:
      enabled: [{name: CapacityScheduling}]
      disabled: [{name: "*"}]
"""
_MIB = 1 << 20


class Server:
    """Holds objects by path as JSON, answers everything at once, and tells the watches. Fulfils `Transport`."""

    def __init__(self) -> None:
        self._objects: dict[str, dict[str, bytes]] = defaultdict(dict)
        self._queues: dict[str, asyncio.Queue[bytes]] = defaultdict(asyncio.Queue)
        self._version = 1
        self.bound = 0

    def put(self, path: str, item: hostile.Json) -> str:
        """Add or replace an object; its key."""
        key = f"{item['metadata'].get('namespace', '')}/{item['metadata']['name']}"
        what = b"MODIFIED" if key in self._objects[path] else b"ADDED"
        self._version += 1
        item["metadata"]["resourceVersion"] = str(self._version)
        self._objects[path][key] = raw = msgspec.json.encode(item)
        self._tell(path, what, raw)
        return key

    def drop(self, path: str, key: str) -> None:
        self._tell(path, b"DELETED", self._objects[path].pop(key))

    def _tell(self, path: str, what: bytes, raw: bytes) -> None:
        self._queues[path].put_nowait(b'{"type":"%s","object":%s}\n' % (what, raw))

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
            binding = msgspec.json.decode(body)
            metadata = binding["metadata"]
            item = msgspec.json.decode(self._objects[hostile.PODS][f"{metadata['namespace']}/{metadata['name']}"])
            item["spec"]["nodeName"] = binding["target"]["name"]
            self.put(hostile.PODS, item)
            self.bound += metadata["namespace"] == "plain"
        if method != "GET":
            return Response(201, {}, b"{}")
        items = b",".join(self._objects[path].values())
        page = b'{"metadata":{"resourceVersion":"%d"},"items":[%s]}' % (self._version, items)
        return Response(200, {}, page)

    @asynccontextmanager
    async def stream(self, path: str, *, query: Mapping[str, str] | None = None) -> AsyncIterator[AsyncIterator[bytes]]:
        yield self._pieces(path)

    async def _pieces(self, path: str) -> AsyncIterator[bytes]:
        while True:
            yield await self._queues[path].get()

    async def close(self) -> None:
        """Nothing is open."""


class Stage:
    """A whole scheduler on the server, with nodes."""

    def __init__(self, nodes: int, options: LiveOptions | None = None, *, own_labels: bool = False) -> None:
        structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
        self.server = Server()
        for number in range(nodes):
            self.server.put(hostile.NODES, hostile.node(f"node-{number:04}"))
        config, registry = load_config(_CONFIG), default_registry()
        profiles = resolve_profiles(config, registry)
        self.live = LiveScheduler(self.server, config, profiles, registry, API_KINDS, options or LiveOptions())
        self._serial = 0
        self._own_labels = own_labels

    async def cost_of_plain_pods(
        self, count: int, rounds: int, clock: Callable[[], float] = time.process_time
    ) -> float:
        """Of one pod by a clock, CPU seconds as a rule: the median of rounds; the pods are gone afterwards."""
        costs = []
        for _ in range(rounds):
            pods = [self._plain() for _ in range(count)]
            before, wanted = clock(), self.server.bound + count
            keys = [self.server.put(hostile.PODS, pod) for pod in pods]
            await self._until(partial(self._has_bound, wanted))
            costs.append((clock() - before) / count)
            for key in keys:
                self.server.drop(hostile.PODS, key)
            await self.quiet()
        return statistics.median(costs)

    def _has_bound(self, wanted: int) -> bool:
        return self.server.bound >= wanted

    def _plain(self) -> hostile.Json:
        self._serial += 1
        labels = {"app": "plain"}
        if self._own_labels:
            labels["apps.kubernetes.io/pod-index"] = str(self._serial)
        return hostile.pod(f"plain-{self._serial}", namespace="plain", metadata={"labels": labels})

    async def _until(self, is_true: Callable[[], bool]) -> None:
        async with asyncio.timeout(300):
            while not is_true():  # noqa: ASYNC110  # counted by the server
                await asyncio.sleep(0.002)

    async def add(self, objects: hostile.Objects) -> dict[tuple[str, str], int]:
        """Until they are digested; the bytes of each by path and key."""
        sizes: dict[tuple[str, str], int] = {}
        for number, (path, item) in enumerate(objects):
            sizes[path, self.server.put(path, item)] = len(json.dumps(item))
            if number % 100 == 0:
                await asyncio.sleep(0)
        await self.quiet()
        return sizes

    async def remove(self, sizes: dict[tuple[str, str], int]) -> None:
        while sizes:
            self.server.drop(*sizes.popitem()[0])
        await self.quiet()

    async def quiet(self) -> None:
        """Until all that was told is digested and nothing is being scheduled."""
        await self._until(lambda: all(queue.empty() for queue in self.server._queues.values()))
        await self._until(lambda: not self.live.queue.sizes.active and not len(self.live.tasks))


def resident_bytes() -> int:
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


async def measure(kind: str, *, nodes: int, pods: int, rounds: int, own_labels: bool = False) -> dict[str, float]:
    stage = Stage(nodes, own_labels=own_labels)
    running = asyncio.create_task(stage.live.run())
    await stage.live.is_ready.wait()
    cost = partial(stage.cost_of_plain_pods, pods, rounds)
    await cost()
    quiet_cpu, quiet_memory = await cost(), resident_bytes()
    quiet_objects = sys.getallocatedblocks()
    sizes = await stage.add(hostile.KINDS[kind]())
    size = sum(sizes.values())
    hostile_cpu, hostile_memory = await cost(), resident_bytes()
    await stage.remove(sizes)
    after_cpu = await cost()
    left, kept = resident_bytes(), sys.getallocatedblocks()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    return {
        "quiet_us": quiet_cpu * 1e6,
        "cpu": hostile_cpu / quiet_cpu,
        "cpu_after": after_cpu / quiet_cpu,
        "quiet_mib": quiet_memory / _MIB,
        "objects_mib": size / _MIB,
        "memory": hostile_memory / quiet_memory,
        "left": left / quiet_memory,
        "kept": kept / quiet_objects,
    }


def problems(kind: str, found: Mapping[str, float]) -> list[str]:
    """The server of this process holds the objects as well, so that what they take as JSON is left out."""
    own = 1 + found["objects_mib"] / found["quiet_mib"]
    checks = {"cpu": MOST_CPU, "cpu_after": MOST_CPU, "memory": MOST_MEMORY * own, "left": MOST_LEFT, "kept": MOST_KEPT}
    return [f"{kind}: {name} {found[name]:.2f} > {most:.2f}" for name, most in checks.items() if found[name] > most]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", nargs="*", default=list(hostile.KINDS), choices=hostile.KINDS, metavar="KIND")
    parser.add_argument("--nodes", type=int, default=300)
    parser.add_argument("--pods", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--own-labels", action="store_true", help="a label of its own for every plain pod")
    parser.add_argument("--one", action="store_true", help="measure in this process and print JSON")
    parser.add_argument("--versus", action="store_true", help="on a real API server, beside kube-scheduler")
    options = parser.parse_args()
    if options.versus:
        from bench.versus.neighbours import main as side_by_side

        return side_by_side(options)
    numbers = {"nodes": options.nodes, "pods": options.pods, "rounds": options.rounds}
    if options.one:
        print(json.dumps(asyncio.run(measure(options.kinds[0], **numbers, own_labels=options.own_labels))))
        return 0
    wrong: list[str] = []
    print(f"{'':34} quiet µs   cpu  after |  quiet MiB  memory  after  objects kept")
    for kind in options.kinds:
        flags = [f"--{name}={value}" for name, value in numbers.items()]
        flags += ["--own-labels"] if options.own_labels else []
        command = [sys.executable, "-m", "bench.neighbours", "--one", *flags, "--kinds", kind]
        found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        wrong += problems(kind, found)
        cpu = f"{found['quiet_us']:8.0f} {found['cpu']:5.2f} {found['cpu_after']:6.2f}"
        memory = f"{found['quiet_mib']:10.0f} {found['memory']:7.2f} {found['left']:6.2f} {found['kept']:13.2f}"
        print(f"{kind:34} {cpu} | {memory}", flush=True)
    print(*wrong, sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
