"""One run of one workload with one scheduler: a backlog, or pods that arrive at a steady rate."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec
from tests.controlplane import ControlPlane

from bench.busy import busy_loops
from bench.versus.asking import Answers, asking
from bench.versus.cluster import BenchCluster, collection_of
from bench.versus.records import Run
from bench.versus.schedulers import ADMIN, Running, started
from bench.versus.stage import Stage
from bench.versus.usage import CpuSample, machine_seconds, peak_mib, sample
from bench.versus.watching import PodWatch
from bench.versus.workload import Workload

_WARM_UP_PODS = 10
_POINTS = 200


@dataclass(frozen=True, kw_only=True)
class Task:
    """What is to be measured, and for how long at most."""

    session: str
    workload: Workload
    scheduler: str
    nodes: int
    pods: int
    rate: float = 0.0
    """Pods a second that arrive; 0: a backlog."""
    busy: int = 0
    """Processes that compute beside it."""
    is_asked: bool = False
    """Whether a client asks Bayplan questions meanwhile (`bench.versus.asking`)."""
    give_up_seconds: float = 300.0
    profile: Path | None = None
    """Where to write a profile of Bayplan."""

    @property
    def mode(self) -> str:
        beside = [", asked"] if self.is_asked else []
        beside += [f", {self.busy} busy loops"] if self.busy else []
        return "".join([f"arrival {self.rate:g}/s" if self.rate else "backlog", *beside])


class _Meters:
    """CPU of everybody at the first and at the last binding, and of the scheduler when it is over."""

    def __init__(self, plane: ControlPlane) -> None:
        self.pids = {"kube-apiserver": plane.apiserver.pid, "etcd": plane.etcd.pid, "bench": os.getpid()}
        self.first: CpuSample | None = None
        self.last: CpuSample | None = None
        self.peak_mib = self.decision_ms = 0.0
        self.begin = asyncio.Event()
        self._is_first_seen = False

    def know(self, scheduler_pid: int) -> None:
        self.pids["scheduler"] = scheduler_pid
        if self._is_first_seen:
            self.at_first()

    def at_first(self) -> None:
        """A scheduler may bind before it says that it is ready; its CPU is read when its process is known."""
        self._is_first_seen = True
        self.begin.set()
        if "scheduler" in self.pids:
            self.first = self._sample()

    def at_last(self) -> None:
        self.last = self._sample()

    def _sample(self) -> CpuSample:
        # The schedulers are children of this process and are no part of it.
        own = sum(os.times()[:2])
        others = sample({name: pid for name, pid in self.pids.items() if name != "bench"})
        return CpuSample(others.moment, {**others.seconds, "bench": own, "machine": machine_seconds()})

    async def finish(self, running: Running) -> None:
        self.first = self.first or self._sample()
        if self.last is None or "scheduler" not in self.last.seconds:
            self.last = self._sample()
        self.peak_mib = peak_mib(running.pid)
        self.decision_ms = await asyncio.to_thread(running.decision_ms)


async def measure(plane: ControlPlane, stage: Stage, task: Task) -> Run:
    with no_pauses(), busy_loops(task.busy):
        return await (_arrival if task.rate else _backlog)(plane, stage, task)


async def _backlog(plane: ControlPlane, stage: Stage, task: Task) -> Run:
    """The pods are there first; then the scheduler starts."""
    workload, meters = task.workload, _Meters(plane)
    async with stage.run(workload, task.nodes, task.pods, with_pods=True) as begin:
        meters.begin = begin
        watch = PodWatch(stage.cluster, task.pods, on_first=meters.at_first, on_last=meters.at_last)
        async with watch:
            began = time.perf_counter()
            async with started(plane, task.scheduler, task.workload.config, task.profile) as running:
                meters.know(running.pid)
                answers = Answers(running.url, plane.token_for(*ADMIN))
                async with asking(answers, begin) if task.is_asked else contextlib.nullcontext():
                    await _wait(watch, running, task)
                await meters.finish(running)
    created = dict.fromkeys(watch.bound, began)
    return summary(task, watch, meters, began=began, created=created, answers=answers.seconds)


async def _arrival(plane: ControlPlane, stage: Stage, task: Task) -> Run:
    """The scheduler runs and has bound a few pods; then pods arrive at a steady rate."""
    workload, meters, cluster = task.workload, _Meters(plane), stage.cluster
    bodies = [(collection_of(pod), msgspec.json.encode(pod)) for pod in workload.pods(task.nodes, task.pods)]
    async with stage.run(workload, task.nodes, task.pods + _WARM_UP_PODS, with_pods=False) as begin:
        meters.begin = begin
        watch = PodWatch(cluster, task.pods, with_creation=True, on_first=meters.at_first, on_last=meters.at_last)
        async with started(plane, task.scheduler, task.workload.config, task.profile) as running:
            meters.know(running.pid)
            await _warm_up(cluster, running, task)
            async with watch:
                began = time.perf_counter()
                await create_steadily(cluster, bodies, task.rate)
                await _wait(watch, running, task)
            await meters.finish(running)
    return summary(task, watch, meters, began=began, created=watch.created)


async def _wait(watch: PodWatch, running: Running, task: Task) -> None:
    await watch.wait(task.give_up_seconds, goes_on=running.is_alive)
    if not running.is_alive():
        raise RuntimeError(f"{task.scheduler} ended:\n{running.log.read_text(errors='replace')[-2000:]}")


async def _warm_up(cluster: BenchCluster, running: Running, task: Task) -> None:
    pods = task.workload.pods(task.nodes, _WARM_UP_PODS, prefix="warm", start=task.pods)
    async with PodWatch(cluster, _WARM_UP_PODS, prefix="warm-") as watch:
        await cluster.create(pods)
        await _wait(watch, running, task)


async def create_steadily(cluster: BenchCluster, bodies: list[tuple[str, bytes]], rate: float) -> None:
    began = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for i, (path, body) in enumerate(bodies):
            late = began + i / rate - time.perf_counter()
            if late > 0:
                await asyncio.sleep(late)
            group.create_task(cluster.send_new(path, body))


@contextmanager
def no_pauses() -> Iterator[None]:
    """No garbage collection of the bench during a run: it would delay what the watcher sees."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def summary(
    task: Task,
    watch: PodWatch,
    meters: _Meters,
    *,
    began: float,
    created: dict[str, float],
    answers: dict[str, list[float]] | None = None,
) -> Run:
    times = sorted(watch.bound.values())
    waits = sorted(1e3 * (moment - created[pod]) for pod, moment in watch.bound.items() if pod in created)
    first, last = meters.first, meters.last
    assert first is not None
    assert last is not None
    window = last.since(first)
    # A scheduler's process begins with the run, so what it has used at the last binding is all of it.
    life = last.seconds.get("scheduler", 0.0)
    return Run(
        session=task.session,
        workload=task.workload.name,
        scheduler=task.scheduler,
        mode=task.mode,
        nodes=task.nodes,
        pods=task.pods,
        bound=len(times),
        pods_per_second=rate_of(times),
        p50_ms=statistics.median(waits) if waits else 0.0,
        p99_ms=waits[int(0.99 * (len(waits) - 1))] if waits else 0.0,
        cpu_life_per_1000=1000 * life / max(len(times), 1),
        cpu_window=window,
        window_seconds=round(last.moment - first.moment, 3),
        peak_mib=meters.peak_mib,
        decision_ms=meters.decision_ms,
        first_bound_seconds=times[0] - began if times else 0.0,
        timeline=points(times, began),
        created=points(sorted(created.values()), began),
        created_per_second=rate_of(sorted(created.values())) if task.rate else 0.0,
        answers=answers or {},
    )


def rate_of(times: list[float], *, since: float | None = None) -> float:
    """From the first to the last, or all of them from a moment on; 0 when there is no time between them."""
    if since is not None:
        return len(times) / (times[-1] - since) if times else 0.0
    seconds = times[-1] - times[0] if times else 0.0
    return (len(times) - 1) / seconds if seconds else 0.0


def points(times: list[float], began: float) -> list[tuple[float, int]]:
    """(seconds, how many so far): some two hundred points, the first and the last among them."""
    step = max(1, len(times) // _POINTS)
    kept = [i for i in range(len(times)) if i % step == 0 or i == len(times) - 1]
    return [(round(times[i] - began, 3), i + 1) for i in kept]
