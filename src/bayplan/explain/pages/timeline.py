"""Figures over time: depth of the queue by state, pods a second, latency, and how full the cluster is.

Sampled by a task of its own, whether or not a client reads them, into three rings: a point a second for five minutes,
one in 15 seconds for an hour, one in six minutes for a day. A sample costs some sums over columns.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

import msgspec
import numpy as np

from bayplan.app.live import LiveScheduler
from bayplan.loop.recorder import DecisionRecorder
from bayplan.queue.places import POD_ADD

__all__ = ["EVERY_SECONDS", "SPANS", "Sample", "Timeline", "TimelinePage", "percentiles", "utilisation_of"]

SPANS = {"5m": (1.0, 300), "1h": (15.0, 240), "1d": (360.0, 240)}
"""By name, seconds between two points, and how many are kept."""
EVERY_SECONDS = 1.0


class Sample(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    time: float
    active: int
    backoff: int
    unschedulable: int
    gated: int
    in_flight: int
    arriving: float
    """Pods a second since the point before."""
    bound: float
    failed: float
    p50: float | None
    """Milliseconds from the start of an attempt to its binding; None where no pod was bound since the point before."""
    p99: float | None
    used: dict[str, float]
    """By resource, percent of what all nodes offer."""


class TimelinePage(msgspec.Struct, kw_only=True, rename="camel"):
    """Columns, the oldest point first."""

    span: str
    step_seconds: float
    time: list[float]
    active: list[int]
    backoff: list[int]
    unschedulable: list[int]
    gated: list[int]
    in_flight: list[int]
    arriving: list[float]
    bound: list[float]
    failed: list[float]
    p50: list[float | None]
    p99: list[float | None]
    used: dict[str, list[float | None]]


@dataclass
class _Ring:
    step: float
    samples: deque[Sample]
    last: tuple[float, int, int, int] | None = None
    """(time, arrived, bound, failed) at the last point."""


class Timeline:
    def __init__(self) -> None:
        self._rings = {name: _Ring(step, deque(maxlen=kept)) for name, (step, kept) in SPANS.items()}

    @property
    def latest(self) -> Sample | None:
        samples = self._rings["5m"].samples
        return samples[-1] if samples else None

    def sample(self, live: LiveScheduler, recorder: DecisionRecorder, now: float) -> None:
        """Add a point to each ring whose time has come."""
        arrived = sum(count for (_, cause), count in live.queue.incoming.items() if cause == POD_ADD)
        counters = (now, arrived, recorder.bound_count, recorder.failed_count)
        for ring in self._rings.values():
            if ring.last is None:
                ring.last = counters
            elif now - ring.last[0] >= ring.step - EVERY_SECONDS / 2:
                ring.samples.append(_sample(live, recorder, counters, ring.last))
                ring.last = counters

    def page(self, span: str) -> TimelinePage:
        ring = self._rings[span]
        samples = list(ring.samples)
        resources = sorted({name for sample in samples for name in sample.used})
        columns = {
            name: [getattr(sample, name) for sample in samples] for name in Sample.__struct_fields__ if name != "used"
        }
        used = {name: [sample.used.get(name) for sample in samples] for name in resources}
        return TimelinePage(span=span, step_seconds=ring.step, used=used, **columns)


def _sample(
    live: LiveScheduler,
    recorder: DecisionRecorder,
    counters: tuple[float, int, int, int],
    last: tuple[float, int, int, int],
) -> Sample:
    sizes, passed = live.queue.sizes, max(counters[0] - last[0], 1e-3)
    arriving, bound, failed = (round((new - old) / passed, 2) for new, old in zip(counters[1:], last[1:], strict=True))
    p50, p99 = _latencies(recorder, counters[2] - last[2])
    return Sample(
        time=round(counters[0], 3),
        active=sizes.active,
        backoff=sizes.backoff,
        unschedulable=sizes.unschedulable,
        gated=sizes.gated,
        in_flight=sizes.in_flight,
        arriving=arriving,
        bound=bound,
        failed=failed,
        p50=p50,
        p99=p99,
        used=utilisation_of(live),
    )


def _latencies(recorder: DecisionRecorder, count: int) -> tuple[float | None, float | None]:
    """Of the pods bound since the last point, the newest of them if there are more than the recorder keeps."""
    newest = list(islice(reversed(recorder.latencies), count))
    if not newest:
        return None, None
    p50, p99 = percentiles(newest, 0.5, 0.99)
    return round(p50 * 1000, 3), round(p99 * 1000, 3)


def percentiles(values: Iterable[float], *shares: float) -> list[float]:
    """The values below which such shares of all lie, between two neighbours in proportion.

    As NumPy's, which loads a hundredth of a second's worth of modules when it is first called.
    """
    ordered, found = sorted(values), []
    for share in shares:
        place = share * (len(ordered) - 1)
        low, high = ordered[int(place)], ordered[math.ceil(place)]
        found.append(low + (high - low) * (place % 1))
    return found


def utilisation_of(live: LiveScheduler) -> dict[str, float]:
    """By resource that any node offers, percent of it that pods request; `pods` counts them."""
    table = live.cache.cluster.nodes
    size, found = table.size, {}
    for place, name in enumerate(table.resources.names):
        there = int(table.allocatable[place, :size].sum(dtype=np.float64))
        if there:
            found[name] = round(float(table.requested[place, :size].sum(dtype=np.float64)) * 100 / there, 2)
    allowed = int(table.allowed_pods[:size].sum())
    if allowed:
        found["pods"] = round(int(table.pod_count[:size].sum()) * 100 / allowed, 2)
    return found
