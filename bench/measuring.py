"""Running a workload in rounds and keeping the median.

Between two rounds the cluster is put back as it was, so that every round decides the same thing. Objects made before
the measurement are frozen out of the garbage collector, as the scheduler does once it has synced.
"""

from __future__ import annotations

import cProfile
import gc
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from bayplan.app.offline import OfflineScheduler
from bayplan.cluster.pod_info import PodInfo
from bayplan.config.loading import load_config
from bayplan.config.profiles import resolve_profile
from bayplan.framework.points import ExtensionPoint, defines
from bayplan.loop.decide import decide
from bayplan.plugins.intree import default_registry
from bench.calibration import REFERENCE_SECONDS, calibrate
from bench.clusters import full_cluster, make_pod, running_cluster
from bench.workloads import Workload

__all__ = ["Bench", "PodInfoCost", "Result", "offline_scheduler"]

_WARM_UP = 200
_SCHEDULER = "default-scheduler"
_FULL = 5_000
"""The size of cluster that targets are stated for; smaller ones have the same, larger ones a third."""


@dataclass(frozen=True, kw_only=True)
class Result:
    workload: str
    title: str
    nodes: int
    decisions: int
    per_second: float
    """By CPU time."""
    reference_per_second: float
    """By CPU time, as on the reference machine at rest: the calibration loop of the same minute tells how far it is."""
    wall_per_second: float
    p50_us: float
    p99_us: float
    target: int
    calibrated_cost: float
    """CPU time of a thousand decisions, in runs of the calibration loop; comparable between machines."""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class PodInfoCost:
    known_us: float
    new_us: float


@dataclass(frozen=True)
class _Round:
    cpu_seconds: float
    wall_us: np.ndarray[tuple[int], np.dtype[np.float64]]
    calibration_seconds: float


def offline_scheduler(objects: Iterator[Any], plugin: type[Any] | None = None) -> OfflineScheduler:
    """The default profile as the configuration loader gives it, with one plugin more if asked for."""
    registry = default_registry()
    config: dict[str, Any] = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    if plugin is not None:
        registry.add(plugin)
        enabled = {"multiPoint": {"enabled": [{"name": plugin.name, "weight": 1}]}}
        config["profiles"] = [{"schedulerName": _SCHEDULER, "plugins": enabled}]
    loaded = load_config(config)
    return OfflineScheduler([resolve_profile(p, registry) for p in loaded.profiles], registry, objects)


class Bench:
    """All workloads on clusters of one size."""

    def __init__(self, nodes: int, *, rounds: int, share: float, tell: Callable[[str], None]) -> None:
        self.nodes = nodes
        self._rounds = rounds
        self._share = share
        self._tell = tell
        self._schedulers: dict[tuple[bool, type[Any] | None], OfflineScheduler] = {}
        self._streams = 0

    def use(self, scheduler: OfflineScheduler) -> None:
        """Measure on a scheduler that somebody else filled."""
        self._schedulers[False, None] = scheduler

    def measure(self, workload: Workload, profiler: cProfile.Profile | None = None) -> Result:
        scheduler = self._scheduler(workload)
        count = self._count(workload)
        rounds = []
        for number in range(self._rounds):
            self._tell(f"{workload.title}, {self.nodes} nodes: round {number + 1} of {self._rounds}")
            rounds.append(self._round(scheduler, workload, count, profiler))
        return self._result(workload, count, rounds)

    def _scheduler(self, workload: Workload) -> OfflineScheduler:
        key = (workload.is_full, workload.plugin)
        if key not in self._schedulers:
            self._tell(f"building a cluster of {self.nodes} nodes")
            self._schedulers.clear()
            objects = full_cluster(self.nodes) if workload.is_full else running_cluster(self.nodes)
            self._schedulers[key] = offline_scheduler(objects, workload.plugin)
            gc.collect()
            gc.freeze()
        return self._schedulers[key]

    def _count(self, workload: Workload) -> int:
        wanted = max(50, int(workload.decisions * self._share))
        return min(wanted, workload.most_pods(self.nodes) - min(_WARM_UP, wanted // 4))

    def _round(
        self, scheduler: OfflineScheduler, workload: Workload, count: int, profiler: cProfile.Profile | None
    ) -> _Round:
        self._streams += 1
        prefix = f"bench{self._streams}"
        warm_up = min(_WARM_UP, count // 4)
        objects = workload.objects(prefix, count + warm_up, self.nodes)
        for item in objects:
            scheduler.cache.put_object(item)
        pods = [scheduler.info(pod) for pod in workload.pods(prefix, count + warm_up, self.nodes)]
        run = _preempt_all if workload.is_full else _reserve_all if workload.is_reserved else _place_all
        placed = list(pods)
        undo: list[PodInfo] = []
        run(scheduler, pods[:warm_up], undo)
        speed = calibrate(3)
        gc.collect()
        if profiler is not None:
            profiler.enable()
        cpu, wall = run(scheduler, pods[warm_up:], undo)
        if profiler is not None:
            profiler.disable()
        self._put_back(scheduler, placed, undo, objects)
        return _Round(cpu, np.array(wall, dtype=np.float64) / 1000, speed)

    def _put_back(
        self, scheduler: OfflineScheduler, placed: list[PodInfo], evicted: list[PodInfo], objects: list[Any]
    ) -> None:
        for pod in placed:
            scheduler.cache.forget(pod.uid)
        for pod in evicted:
            scheduler.cache.add_pod(pod)
        for item in objects:
            scheduler.cache.remove_object(item)

    def _result(self, workload: Workload, count: int, rounds: Sequence[_Round]) -> Result:
        cpu = float(np.median([r.cpu_seconds for r in rounds]))
        return Result(
            workload=workload.name,
            title=workload.title,
            nodes=self.nodes,
            decisions=count,
            per_second=count / cpu,
            reference_per_second=float(
                np.median([count / r.cpu_seconds * r.calibration_seconds / REFERENCE_SECONDS for r in rounds])
            ),
            wall_per_second=count / float(np.median([r.wall_us.sum() for r in rounds])) * 1e6,
            p50_us=float(np.median([np.percentile(r.wall_us, 50) for r in rounds])),
            p99_us=float(np.median([np.percentile(r.wall_us, 99) for r in rounds])),
            target=workload.target if self.nodes <= _FULL else workload.target // 3,
            calibrated_cost=float(np.median([r.cpu_seconds / count * 1000 / r.calibration_seconds for r in rounds])),
        )

    def pod_info_cost(self) -> PodInfoCost:
        """What a pod costs before the first decision about it."""
        cache = next(iter(self._schedulers.values())).cache
        known = [make_pod(f"known-{number}", labels={"app": "known"}) for number in range(2_000)]
        new = [make_pod(f"new-{n}", labels={"app": f"new-{self._streams}-{n}"}) for n in range(2_000)]
        cache.info(known[0])
        return PodInfoCost(known_us=_cost_us(cache.info, known), new_us=_cost_us(cache.info, new))


def _cost_us(action: Callable[[Any], Any], items: Sequence[Any]) -> float:
    before = time.process_time()
    for item in items:
        action(item)
    return (time.process_time() - before) / len(items) * 1e6


def _place_all(scheduler: OfflineScheduler, pods: list[PodInfo], undo: list[PodInfo]) -> tuple[float, list[int]]:
    """Decide and assume, one pod after the other. CPU seconds of all, and the wall time of each."""
    decider, cache, now = scheduler.deciders[_SCHEDULER], scheduler.cache, time.perf_counter_ns
    wall = []
    before = time.process_time()
    for pod in pods:
        start = now()
        decision = decide(decider, pod)
        cache.assume(pod, decision.node_name)
        wall.append(now() - start)
        if not decision.node_name:
            raise RuntimeError(f"the benchmark expects every pod to fit: {decision.message}")
    return time.process_time() - before, wall


def _reserve_all(scheduler: OfflineScheduler, pods: list[PodInfo], undo: list[PodInfo]) -> tuple[float, list[int]]:
    """Decide, assume and reserve. Afterwards, not counted, everything reserved is given back."""
    decider, cache, now = scheduler.deciders[_SCHEDULER], scheduler.cache, time.perf_counter_ns
    plugins = [p for p in scheduler.framework(_SCHEDULER).at(ExtensionPoint.RESERVE) if defines(p, "reserve")]
    wall, reserved = [], []
    before = time.process_time()
    for pod in pods:
        start = now()
        decision = decide(decider, pod)
        cache.assume(pod, decision.node_name)
        refusals = [status for p in plugins if (status := p.reserve(decision.state, pod, decision.node_name))]
        wall.append(now() - start)
        if not decision.node_name or refusals:
            raise RuntimeError(f"the benchmark expects every pod to fit: {decision.message} {refusals}")
        reserved.append((decision.state, pod, decision.node_name))
    cpu = time.process_time() - before
    for plugin in plugins:
        for state, pod, node_name in reserved:
            plugin.unreserve(state, pod, node_name)
    return cpu, wall


def _preempt_all(scheduler: OfflineScheduler, pods: list[PodInfo], undo: list[PodInfo]) -> tuple[float, list[int]]:
    """Decide; the victims then leave and the pod takes their place, which is not counted."""
    decider, cache = scheduler.deciders[_SCHEDULER], scheduler.cache
    wall, cpu = [], 0.0
    for pod in pods:
        before, start = time.process_time(), time.perf_counter_ns()
        decision = decide(decider, pod)
        wall.append(time.perf_counter_ns() - start)
        cpu += time.process_time() - before
        nomination = decision.nomination
        if nomination is None or not nomination.nominated_node_name:
            raise RuntimeError(f"the benchmark expects every pod to find victims: {decision.message}")
        for victim in nomination.victims:
            cache.remove_pod(victim.uid)
            undo.append(victim)
        cache.assume(pod, nomination.nominated_node_name)
    return cpu, wall
