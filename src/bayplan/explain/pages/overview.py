"""The scheduler at a glance: rates, queue sizes, latencies."""

from __future__ import annotations

import msgspec

from bayplan.app.live import LiveScheduler
from bayplan.explain.pages.timeline import Timeline, percentiles
from bayplan.loop.recorder import DecisionRecorder

__all__ = ["Overview", "overview_of"]


class Overview(msgspec.Struct, kw_only=True, rename="camel"):
    time: float
    nodes: int
    pods: int
    """On nodes."""
    queue: dict[str, int]
    in_flight: int
    attempts: int
    bound: int
    failed: int
    arriving_per_second: float
    bound_per_second: float
    p50_ms: float
    """From the start of an attempt to its binding, of the last pods that were bound."""
    p99_ms: float
    used: dict[str, float]
    """By resource, percent of what all nodes offer that pods request."""
    reloads: int
    profiles: list[str]


def overview_of(
    live: LiveScheduler, recorder: DecisionRecorder, timeline: Timeline, *, now: float, reloads: int
) -> Overview:
    sizes, latest = live.queue.sizes, timeline.latest
    p50, p99 = percentiles(recorder.latencies or (0.0,), 0.5, 0.99)
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
        arriving_per_second=latest.arriving if latest is not None else 0.0,
        bound_per_second=latest.bound if latest is not None else 0.0,
        p50_ms=p50 * 1000,
        p99_ms=p99 * 1000,
        used=latest.used if latest is not None else {},
        reloads=reloads,
        profiles=sorted(live.profiles),
    )
