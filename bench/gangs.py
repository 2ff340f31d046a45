"""What waiting for each other costs: 100 groups of 50 pods on 1,000 nodes, beside 5,000 pods that are on their own.

    python -m bench.gangs [--groups 100] [--size 50] [--nodes 1000] [--rounds 5]

Through the whole loop: the pods are in an embedded API server, a scheduler lists them, and the clock runs from the
moment it may lead until the server has the last binding. Queue, decision, permit, binding, events and what the watch
brings back are all part of it, and so is the server's own work, which is in the same process. Groups and single pods
take turns; the figures are medians by CPU time, and a run in which groups reach less than half the rate of single pods
ends with 1.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import statistics
import sys
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import structlog
import uvloop

from bayplan.apiserver.cluster import EmbeddedCluster
from bayplan.app.live import LiveOptions, LiveScheduler
from bayplan.app.watching import served_kinds
from bayplan.client.transport import ByteStream, Response, Transport
from bayplan.config.loading import load_config
from bayplan.config.profiles import resolve_profiles
from bayplan.deploy.crds import crd_document
from bayplan.framework.queued import QueuedPod
from bayplan.framework.resources import resource_info
from bayplan.loop.observer import Observer
from bayplan.plugins.community.coscheduling.pod_group import POD_GROUP_LABEL, PodGroup
from bayplan.plugins.intree import default_registry
from bayplan.sim.local import CLIENT_ERRORS

_LEAST_SHARE = 0.5
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_PODS = "/api/v1/namespaces/default/pods"
_PLAIN: dict[str, Any] = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
_GANGS = {
    **_PLAIN,
    "profiles": [
        {"plugins": {"multiPoint": {"enabled": [{"name": "Coscheduling"}], "disabled": [{"name": "PrioritySort"}]}}}
    ],
}


@dataclass(frozen=True, kw_only=True)
class Size:
    groups: int
    members: int
    nodes: int

    @property
    def pods(self) -> int:
        return self.groups * self.members


@dataclass(frozen=True, kw_only=True)
class Round:
    cpu_seconds: float
    wall_seconds: float
    writes: Counter[str]
    """What the scheduler asked of the server, by method and kind of thing."""


class _Counting:
    """Counts what a scheduler writes."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.writes: Counter[str] = Counter()

    async def request(self, method: str, path: str, **options: Any) -> Response:
        if method != "GET":
            self.writes[f"{method} {_last_words(path)}"] += 1
        return await self._transport.request(method, path, **options)

    def stream(self, path: str, *, query: Mapping[str, str] | None = None) -> ByteStream:
        return self._transport.stream(path, query=query)

    async def close(self) -> None:
        await self._transport.close()


def _last_words(path: str) -> str:
    words = path.split("/")
    return "/".join(words[i] for i in range(len(words)) if words[i] in ("pods", "binding", "status", "events"))


def _node(number: int) -> dict[str, Any]:
    amounts = {"cpu": "32", "memory": "64Gi", "pods": "110"}
    name = f"node-{number:05}"
    metadata = {"name": name, "labels": {"kubernetes.io/hostname": name}}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": metadata,
        "status": {"allocatable": amounts, "capacity": amounts},
    }


def _pod(name: str, group: str) -> dict[str, Any]:
    container = {"name": "main", "image": "app:1", "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}}}
    labels = {"app": "bench"} | ({POD_GROUP_LABEL: group} if group else {})
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels},
        "spec": {"containers": [container]},
    }


async def _post(transport: Transport, path: str, body: dict[str, Any]) -> None:
    answer = await transport.request("POST", path, body=body)
    if answer.status >= 300:
        raise RuntimeError(f"the server refused {path}: {answer.body[:200]!r}")


async def _fill(transport: Transport, size: Size, *, in_groups: bool) -> None:
    await _post(transport, _CRDS, crd_document(PodGroup))
    info = resource_info(PodGroup)
    for group in range(size.groups if in_groups else 0):
        body = {
            "apiVersion": info.api_version,
            "kind": info.kind,
            "metadata": {"name": f"g{group}"},
            "spec": {"minMember": size.members},
        }
        await _post(transport, f"/apis/{info.api_version}/namespaces/default/{info.plural}", body)
    for number in range(size.pods):
        group = f"g{number % size.groups}" if in_groups else ""
        await _post(transport, _PODS, _pod(f"p{number:05}", group))


async def run_round(size: Size, *, in_groups: bool) -> Round:
    """One cluster, one scheduler, until every pod has its node."""
    nodes = [_node(number) for number in range(size.nodes)]
    cluster = EmbeddedCluster(nodes=nodes, listen=False, simulate=False, seed=0)
    await cluster.start()
    try:
        hands: Any = cluster.in_process_transport(errors=CLIENT_ERRORS)
        await _fill(hands, size, in_groups=in_groups)
        counting = _Counting(cluster.in_process_transport(errors=CLIENT_ERRORS))
        return await _schedule(counting, size, in_groups=in_groups)
    finally:
        await cluster.stop()


class _Watchman(Observer):
    """Told of every binding; rings when all are there."""

    def __init__(self, wanted: int) -> None:
        self._wanted = wanted
        self.is_done = asyncio.Event()

    def bound(self, queued: QueuedPod, node_name: str, seconds: float) -> None:
        self._wanted -= 1
        if self._wanted <= 0:
            self.is_done.set()


async def _schedule(transport: _Counting, size: Size, *, in_groups: bool) -> Round:
    registry, config = default_registry(), load_config(_GANGS if in_groups else _PLAIN)
    profiles = resolve_profiles(config, registry)
    may_lead, has_synced, watchman = asyncio.Event(), asyncio.Event(), _Watchman(size.pods)

    async def wait_to_lead() -> None:
        has_synced.set()
        await may_lead.wait()

    options = LiveOptions(observers=[watchman], wait_to_lead=wait_to_lead)
    live = LiveScheduler(transport, config, profiles, registry, await served_kinds(transport), options)
    running = asyncio.create_task(live.run(), name="scheduler")
    try:
        await asyncio.wait_for(has_synced.wait(), 60)
        gc.collect()
        cpu, wall = time.process_time(), time.perf_counter()
        may_lead.set()
        await asyncio.wait_for(watchman.is_done.wait(), 300)
        return Round(
            cpu_seconds=time.process_time() - cpu,
            wall_seconds=time.perf_counter() - wall,
            writes=Counter(transport.writes),
        )
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def main() -> int:
    options = _options()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    size = Size(groups=options.groups, members=options.size, nodes=options.nodes)
    rounds: dict[bool, list[Round]] = {True: [], False: []}
    for number in range(options.rounds):
        # The order changes from round to round, so that a machine that slows down harms both alike.
        for in_groups in (number % 2 == 0, number % 2 == 1):
            gc.collect()
            done = uvloop.run(run_round(size, in_groups=in_groups))
            rounds[in_groups].append(done)
            print(_line(size, done, in_groups=in_groups), flush=True)
    return _tell(size, rounds)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", type=int, default=100)
    parser.add_argument("--size", type=int, default=50)
    parser.add_argument("--nodes", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=5)
    return parser.parse_args()


def _line(size: Size, done: Round, *, in_groups: bool) -> str:
    rates = f"{size.pods / done.cpu_seconds:8.0f} pods/s by CPU {size.pods / done.wall_seconds:8.0f} by wall"
    writes = ", ".join(f"{count} {what}" for what, count in sorted(done.writes.items()))
    return f"{'groups' if in_groups else 'single':<8}{rates}   {writes}"


def _tell(size: Size, rounds: Mapping[bool, list[Round]]) -> int:
    groups, single = (statistics.median(each.cpu_seconds for each in rounds[kind]) for kind in (True, False))
    pairs = [one.cpu_seconds / other.cpu_seconds for one, other in zip(rounds[False], rounds[True], strict=True)]
    share = single / groups
    print(
        f"{size.groups} groups of {size.members} on {size.nodes} nodes: {size.pods / groups:.0f} pods/s, single pods "
        f"{size.pods / single:.0f}; {share:.2f} of the rate (by round {min(pairs):.2f} to {max(pairs):.2f})"
    )
    return 0 if share >= _LEAST_SHARE else 1


if __name__ == "__main__":
    sys.exit(main())
