"""The scheduler at a glance: rates, queue sizes, latencies, and how full every node is."""

from __future__ import annotations

from collections import deque

import msgspec
import numpy as np

from bayplan.app.live import LiveScheduler
from bayplan.cluster.axes import Int64N
from bayplan.cluster.resources import CPU, MEMORY
from bayplan.explain.explaining_nodes import ZONE_LABEL
from bayplan.loop.record import DecisionRecord
from bayplan.loop.recorder import DecisionRecorder
from bayplan.observe.clock import Clock
from bayplan.queue.places import POD_ADD

__all__ = ["Heat", "Overview", "Rates", "RecentDecision", "heat_of", "latest_of", "overview_of"]

_EVERY_SECONDS = 1.0
_SAMPLES = 120
_RECENT = 15


class RecentDecision(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    number: int
    time: float
    pod: str
    outcome: str
    node: str = ""
    seconds: float = 0.0
    message: str = ""


class Overview(msgspec.Struct, kw_only=True, rename="camel"):
    time: float
    nodes: int
    pods: int
    queue: dict[str, int]
    in_flight: int
    attempts: int
    bound: int
    failed: int
    arriving_per_second: float
    bound_per_second: float
    p50_ms: float
    p99_ms: float
    history: list[tuple[float, float, float]]
    """(time, pods arriving a second, pods bound a second), oldest first."""
    recent: list[RecentDecision]
    reloads: int
    profiles: list[str]


class Rates:
    """Counters into rates: a sample a second, as long as somebody asks."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last: tuple[float, int, int] | None = None
        self.history: deque[tuple[float, float, float]] = deque(maxlen=_SAMPLES)

    def sample(self, arrived: int, bound: int) -> None:
        now = self._clock.now()
        if self._last is None:
            self._last = (now, arrived, bound)
            return
        passed = now - self._last[0]
        if passed < _EVERY_SECONDS * 0.9:
            return
        # Whoever asks again after a long pause gets the average of the pause.
        self.history.append((now, (arrived - self._last[1]) / passed, (bound - self._last[2]) / passed))
        self._last = (now, arrived, bound)

    @property
    def latest(self) -> tuple[float, float]:
        return self.history[-1][1:] if self.history else (0.0, 0.0)


def overview_of(live: LiveScheduler, recorder: DecisionRecorder, rates: Rates, *, now: float, reloads: int) -> Overview:
    sizes, queue = live.queue.sizes, live.queue
    arrived = sum(count for (_, cause), count in queue.incoming.items() if cause == POD_ADD)
    rates.sample(arrived, recorder.bound_count)
    latencies = np.array(recorder.latencies or (0.0,), dtype=np.float64)
    return Overview(
        time=now,
        nodes=len(live.cache.cluster.nodes),
        pods=len(live.cache),
        queue={
            "active": sizes.active,
            "backoff": sizes.backoff,
            "unschedulable": sizes.unschedulable,
            "gated": sizes.gated,
        },
        in_flight=sizes.in_flight,
        attempts=recorder.count,
        bound=recorder.bound_count,
        failed=recorder.failed_count,
        arriving_per_second=rates.latest[0],
        bound_per_second=rates.latest[1],
        p50_ms=float(np.percentile(latencies, 50)) * 1000,
        p99_ms=float(np.percentile(latencies, 99)) * 1000,
        history=list(rates.history),
        recent=latest_of(recorder.latest(_RECENT)),
        reloads=reloads,
        profiles=sorted(live.profiles),
    )


def latest_of(records: list[DecisionRecord]) -> list[RecentDecision]:
    return [
        RecentDecision(
            number=record.number,
            time=record.time,
            pod=record.pod,
            outcome=record.outcome,
            node=record.node or record.nominated,
            seconds=record.outcome_seconds,
            message=record.message,
        )
        for record in records
    ]


class Heat(msgspec.Struct, kw_only=True, rename="camel"):
    """Columns over all nodes, one entry a node. Fills are percent; -1 where a node offers nothing of it."""

    names: list[str]
    zones: list[str]
    cpu: list[int]
    memory: list[int]
    gpu: list[int]
    pods: list[int]
    unschedulable: list[bool]


def heat_of(live: LiveScheduler) -> Heat:
    table = live.cache.cluster.nodes
    rows = np.flatnonzero(table.valid[: table.size])
    infos = [table.at(row) for row in rows.tolist()]
    order = sorted(range(len(infos)), key=lambda i: (infos[i].labels.get(ZONE_LABEL, ""), infos[i].name))
    rows, infos = rows[order], [infos[i] for i in order]
    gpus = [place for place, name in enumerate(table.resources.names) if "gpu" in name]
    gpu_used = sum((table.requested[place][rows] for place in gpus), np.zeros(len(rows), dtype=np.int64))
    gpu_there = sum((table.allocatable[place][rows] for place in gpus), np.zeros(len(rows), dtype=np.int64))
    return Heat(
        names=[info.name for info in infos],
        zones=[info.labels.get(ZONE_LABEL, "") for info in infos],
        cpu=_percent(table.requested[CPU][rows], table.allocatable[CPU][rows]),
        memory=_percent(table.requested[MEMORY][rows], table.allocatable[MEMORY][rows]),
        gpu=_percent(gpu_used, gpu_there),
        pods=_percent(table.pod_count[rows], table.allowed_pods[rows]),
        unschedulable=[bool(flag) for flag in table.unschedulable[rows]],
    )


def _percent(used: Int64N, there: Int64N) -> list[int]:
    filled = np.where(there > 0, used * 100 // np.maximum(there, 1), -1)
    result: list[int] = filled.tolist()
    return result
