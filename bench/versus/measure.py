"""One run of one workload with one scheduler: a backlog, or pods that arrive at a steady rate."""

from __future__ import annotations

import asyncio
import statistics
import time
from dataclasses import asdict, dataclass
from typing import Any

from tests.controlplane import ControlPlane

from bench.versus.cluster import BenchCluster, BindingWatch
from bench.versus.schedulers import SCHEDULERS
from bench.versus.workload import Workload

_GIVE_UP_SECONDS = 300.0


@dataclass(frozen=True, kw_only=True)
class Run:
    workload: str
    scheduler: str
    mode: str
    nodes: int
    pods: int
    bound: int
    pods_per_second: float
    """From the first to the last binding, as a watcher sees them."""
    p50_ms: float
    p99_ms: float
    """From creation to binding; in backlog mode counted from the start of the scheduler."""
    cpu_seconds_per_1000: float
    peak_mib: float
    decision_ms: float
    timeline: list[tuple[float, int]]
    """(seconds, bound so far), for the plot."""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


async def backlog(plane: ControlPlane, cluster: BenchCluster, workload: Workload, name: str, nodes: int) -> Run:
    """The pods are there first; then the scheduler starts."""
    await cluster.create(workload.objects)
    await cluster.create(workload.initial_pods(nodes))
    await cluster.create(workload.pods())
    async with BindingWatch(cluster, workload.count) as watch:
        began = time.perf_counter()
        with SCHEDULERS[name](plane, workload.config) as process:
            await _wait(watch)
            usage = await asyncio.to_thread(process.usage)
    run = _run(workload, name, "backlog", nodes, watch, usage, dict.fromkeys(watch.bound, began))
    await cluster.delete_pods()
    await cluster.delete_objects(workload.objects)
    return run


async def arrival(
    plane: ControlPlane, cluster: BenchCluster, workload: Workload, name: str, nodes: int, rate: float
) -> Run:
    """The scheduler runs; pods arrive at a steady rate."""
    await cluster.create(workload.objects)
    await cluster.create(workload.initial_pods(nodes))
    async with BindingWatch(cluster, workload.count) as watch:
        with SCHEDULERS[name](plane, workload.config) as process:
            await asyncio.sleep(4)
            began = time.perf_counter()
            tasks = []
            for i, pod in enumerate(workload.pods()):
                await asyncio.sleep(max(0.0, began + i / rate - time.perf_counter()))
                tasks.append(asyncio.create_task(cluster.create([pod])))
            await asyncio.gather(*tasks)
            await _wait(watch)
            usage = await asyncio.to_thread(process.usage)
    run = _run(workload, name, f"arrival {rate:g}/s", nodes, watch, usage, watch.created)
    await cluster.delete_pods()
    await cluster.delete_objects(workload.objects)
    return run


async def _wait(watch: BindingWatch) -> None:
    try:
        async with asyncio.timeout(_GIVE_UP_SECONDS):
            await watch.all_bound.wait()
    except TimeoutError:
        return


def _run(
    workload: Workload, name: str, mode: str, nodes: int, watch: BindingWatch, usage: Any, since: dict[str, float]
) -> Run:
    times = sorted(watch.bound.values())
    seconds = times[-1] - times[0] if len(times) > 1 else 0.0
    waits = sorted(1e3 * (moment - since[pod]) for pod, moment in watch.bound.items() if pod in since)
    step = max(1, len(times) // 200)
    return Run(
        workload=workload.name,
        scheduler=name,
        mode=mode,
        nodes=nodes,
        pods=workload.count,
        bound=len(times),
        pods_per_second=(len(times) - 1) / seconds if seconds else 0.0,
        p50_ms=statistics.median(waits) if waits else 0.0,
        p99_ms=waits[int(0.99 * (len(waits) - 1))] if waits else 0.0,
        cpu_seconds_per_1000=1000 * usage.cpu_seconds / max(len(times), 1),
        peak_mib=usage.peak_mib,
        decision_ms=usage.decision_ms,
        timeline=[(round(moment - times[0], 3), i + 1) for i, moment in enumerate(times) if i % step == 0],
    )
