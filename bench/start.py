"""From the start of a process to its first binding, and from the death of a leader to the next one; side by side.

    python -m bench.start [--nodes 5000] [--pods 50000] [--rounds 3] [--busy 0 4] [--failover] [--all]
    python -m bench.start --nodes 15000 --pods 450000 --waiting 1000 --rounds 2

Nodes with running pods are created once, on one real API server. Then both schedulers take turns: a pod is created,
the process is started, and what counts is the time until a watch shows the pod on a node, and the CPU time of the
process until then. With `--waiting` more pods wait, and what counts as well are the bindings a second from the first
to the last and the most memory that the process held until then. With `--failover` two replicas run, the leader is
killed (SIGKILL), a pod is created at that moment, and the time runs until it is bound; the lease settings are the same
for both schedulers. `--busy` keeps that many processes computing beside it, in another session than the schedulers,
one series of rounds for each number; `--all` measures starts and failovers, each on its own and beside four busy
loops, on one cluster.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from itertools import count
from statistics import median
from typing import Any

import msgspec
from tests.controlplane import ControlPlane, ControlPlaneOptions

from bench.busy import busy_loops
from bench.bytecode import compile_sources
from bench.clusters import make_node
from bench.versus.cluster import BenchCluster
from bench.versus.plan import in_turn
from bench.versus.schedulers import ADMIN, SCHEDULER, SCHEDULERS, Running, started
from bench.versus.usage import cpu_seconds, peak_mib
from bench.versus.watching import PodWatch

Json = dict[str, Any]
_GIVE_UP_SECONDS = 120.0
_LEASE = {"leaseDuration": "3s", "renewDeadline": "2s", "retryPeriod": "500ms", "leaderElect": True}
_WATCHES_PODS = re.compile(r'^bayplan_reflector_connected\{resource="[^"]*pods"\} 1', re.M)
_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler"


@dataclass(frozen=True)
class Timing:
    seconds: float
    cpu_seconds: float = 0.0
    mib: float = 0.0
    """The most memory of the process until the last binding."""
    rate: float = 0.0
    """Bindings a second from the first to the last; 0 where one pod waited."""


@dataclass(frozen=True)
class Series:
    """Rounds of one kind."""

    is_failover: bool
    busy: int


def main() -> int:
    options = _options()
    compile_sources()
    with ControlPlane(ControlPlaneOptions(users={ADMIN[0]: ADMIN[1], SCHEDULER: ()})) as plane:
        asyncio.run(_measure(plane, options))
    return 0


def _print(options: argparse.Namespace, series: Series, timings: dict[str, list[Timing]]) -> None:
    what = "from the death of the leader to the next binding" if series.is_failover else "from the start to a binding"
    print(f"{what}: {options.nodes:,} nodes, {options.pods:,} pods, {series.busy} busy loops")
    for name, found in timings.items():
        seconds, cpu, mib, rate = zip(
            *((one.seconds, one.cpu_seconds, one.mib, one.rate) for one in found), strict=True
        )
        line = f"  {name:<16}{median(seconds):6.2f} s ({', '.join(f'{each:.2f}' for each in seconds)})"
        if not series.is_failover:
            line += f", {median(cpu):.2f} s of CPU, {median(mib):,.0f} MiB"
            line += f", {median(rate):,.0f} bindings/s" if options.waiting > 1 else ""
        print(line, flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--pods", type=int, default=50_000)
    parser.add_argument("--waiting", type=int, default=1, help="pods that wait for the start")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--busy", type=int, nargs="+", default=[0], help="processes that compute beside it")
    parser.add_argument("--failover", action="store_true", help="from the death of the leader to the next binding")
    parser.add_argument("--all", action="store_true", help="starts and failovers, each without and with busy loops")
    parser.add_argument("--scheduler", nargs="+", choices=list(SCHEDULERS), default=list(SCHEDULERS))
    return parser.parse_args()


def _series(options: argparse.Namespace) -> list[Series]:
    if options.all:
        return [Series(is_failover, busy) for is_failover in (False, True) for busy in (0, 4)]
    return [Series(options.failover, busy) for busy in options.busy]


async def _measure(plane: ControlPlane, options: argparse.Namespace) -> None:
    cluster = BenchCluster(plane.token_kubeconfig(plane.token_for(*ADMIN)))
    try:
        await cluster.create(_nodes(options.nodes))
        await cluster.create(_running_pods(options.pods, options.nodes))
        numbers = count()
        for series in _series(options):
            with busy_loops(series.busy):
                timings = await _rounds(plane, cluster, options, series, numbers)
            _print(options, series, timings)
    finally:
        await cluster.close()


async def _rounds(
    plane: ControlPlane, cluster: BenchCluster, options: argparse.Namespace, series: Series, numbers: Iterator[int]
) -> dict[str, list[Timing]]:
    timings: dict[str, list[Timing]] = {name: [] for name in options.scheduler}
    for number in range(options.rounds):
        for name in in_turn(options.scheduler, number):
            pod = f"waiting-{next(numbers)}"
            if series.is_failover:
                took = await _failover(plane, cluster, name, pod)
            else:
                took = await _start(plane, cluster, name, pod, options.waiting)
            timings[name].append(took)
            line = f"round {number + 1}, {name}: {took.seconds:.2f} s, {took.mib:,.0f} MiB, {took.rate:,.0f} bindings/s"
            print(line, file=sys.stderr, flush=True)
    return timings


async def _start(plane: ControlPlane, cluster: BenchCluster, name: str, prefix: str, waiting: int) -> Timing:
    """Pods wait; then the scheduler starts."""
    await cluster.create(_pod(f"{prefix}-{place}") for place in range(waiting))
    process: Running | None = None
    cpu = 0.0

    def first_bound() -> None:
        nonlocal cpu
        cpu = cpu_seconds(process.pid) if process is not None else 0.0

    async with PodWatch(cluster, waiting, prefix=f"{prefix}-", on_first=first_bound) as watch:
        began = time.perf_counter()
        async with started(plane, name, {}) as process:
            # A scheduler may bind before it says that it is ready.
            cpu = cpu_seconds(process.pid) if watch.bound else 0.0
            await _until_bound(watch, process)
            mib = peak_mib(process.pid)
    first, last = min(watch.bound.values()), max(watch.bound.values())
    return Timing(first - began, cpu, mib, (waiting - 1) / (last - first) if waiting > 1 else 0.0)


async def _failover(plane: ControlPlane, cluster: BenchCluster, name: str, pod: str) -> Timing:
    """Two replicas; the one that holds the lease is killed."""
    extra = {"leaderElection": _LEASE}
    await cluster.transport.request("DELETE", _LEASES)
    async with AsyncExitStack() as stack:
        leader = await stack.enter_async_context(started(plane, name, extra))
        first = await stack.enter_async_context(PodWatch(cluster, 1, prefix=f"{pod}-first"))
        await cluster.create([_pod(f"{pod}-first")])
        await _until_bound(first, leader)
        second = await stack.enter_async_context(started(plane, name, extra))
        watch = await stack.enter_async_context(PodWatch(cluster, 1, prefix=f"{pod}-next"))
        await _until_read(second, name)
        began = time.perf_counter()
        os.kill(leader.pid, signal.SIGKILL)
        await cluster.create([_pod(f"{pod}-next")])
        await _until_bound(watch, second)
        return Timing(watch.bound[f"{pod}-next"] - began)


async def _until_read(standby: Running, name: str) -> None:
    """Until a replica that stands by has read the cluster. kube-scheduler says so before it counts as started."""
    deadline = time.perf_counter() + _GIVE_UP_SECONDS
    while name == "bayplan" and not _WATCHES_PODS.search(await asyncio.to_thread(standby.metrics)):
        if time.perf_counter() > deadline or not standby.is_alive():
            raise SystemExit(f"the replica did not read the cluster:\n{standby.log.read_text()[-2000:]}")


async def _until_bound(watch: PodWatch, process: Running) -> None:
    if not await watch.wait(_GIVE_UP_SECONDS, goes_on=process.is_alive):
        raise SystemExit(f"the pod was not bound; the scheduler said:\n{process.log.read_text()[-2000:]}")


def _nodes(number: int) -> Iterator[Json]:
    for place in range(number):
        node: Json = msgspec.to_builtins(make_node(place))
        yield node | {"apiVersion": "v1", "kind": "Node"}


def _running_pods(number: int, nodes: int) -> Iterator[Json]:
    for place in range(number):
        yield _pod(f"running-{place}", app=f"app-{place % 100}", node=f"node-{place % nodes:05d}")


def _pod(name: str, *, app: str = "waiting", node: str = "") -> Json:
    requests = {"cpu": "100m", "memory": "128Mi"}
    container = {"name": "app", "image": "registry.example.com/app:v1", "resources": {"requests": requests}}
    spec = {"containers": [container], **({"nodeName": node} if node else {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": app}}, "spec": spec}


if __name__ == "__main__":
    sys.exit(main())
