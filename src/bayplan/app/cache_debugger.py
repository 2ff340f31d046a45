"""SIGUSR2, as with kube-scheduler: compare the cache with the reflectors, and log cache and queue.

It runs in small slices between which scheduling goes on, so that it may be used under load. Each object is compared
within one slice; what changes meanwhile is not mistaken for a difference. Pods that are assumed and not confirmed yet
count as no difference. Nothing is changed, and no request is sent to the API server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator

import structlog

from bayplan.api.node import Node
from bayplan.api.pod import Pod
from bayplan.app.live import LiveScheduler
from bayplan.cache.check import check_node
from bayplan.cluster.node_info import NodeInfo
from bayplan.framework.queued import QueuedPod
from bayplan.observe.clock import Clock
from bayplan.queue import Place

__all__ = ["CacheDebugger", "differences"]

_log = structlog.get_logger()
_SLICE_SECONDS = 0.01
_MOST_DIFFERENCES = 100
_MOST_PODS = 1000
_MOST_NAMES = 20


class CacheDebugger:
    """One for a process; `start` it from a signal handler, `close` it at the end."""

    def __init__(self, current: Callable[[], LiveScheduler | None], clock: Clock) -> None:
        self._current = current
        self._clock = clock
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        live = self._current()
        if live is None:
            _log.info("there is no cache to look into yet")
        elif self._task is not None and not self._task.done():
            _log.info("the cache is being looked into already")
        else:
            self._task = asyncio.create_task(self._look_into(live), name="cache debugger")

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _look_into(self, live: LiveScheduler) -> None:
        try:
            await self._compare(live)
            await self._in_slices(_dump_nodes(live))
            await self._in_slices(_dump_queue(live))
        except Exception:
            _log.exception("comparing the cache failed; scheduling goes on")

    async def _compare(self, live: LiveScheduler) -> None:
        found: list[str] = []
        await self._in_slices(_collect(differences(live), found))
        facts = {"nodes": len(live.cache.cluster.nodes), "pods": len(live.cache), "assumed": live.cache.assumed_count}
        if not found:
            _log.info("the cache agrees with the API server", **facts)
            return
        _log.error(
            "the cache differs from the API server",
            differences=found[:_MOST_DIFFERENCES],
            count=len(found),
            hint="please report this; a restart reads everything again",
            **facts,
        )

    async def _in_slices(self, steps: Iterable[None]) -> None:
        """Take steps until a slice of time is used up, then let others work."""
        slice_ends = self._clock.monotonic() + _SLICE_SECONDS
        for _ in steps:
            if self._clock.monotonic() >= slice_ends:
                await asyncio.sleep(0)
                slice_ends = self._clock.monotonic() + _SLICE_SECONDS


def _collect(items: Iterable[str | None], found: list[str]) -> Iterator[None]:
    for item in items:
        if item is not None:
            found.append(item)
        yield


# Comparing


def differences(live: LiveScheduler) -> Iterator[str | None]:
    """A sentence for each difference, None for each thing that is as it should be. Others may work in between."""
    cache, reflectors = live.cache, live.watching.reflectors
    nodes, pods = reflectors[Node].objects, reflectors[Pod].objects
    rows = cache.cluster.nodes.row_of
    for name in sorted(nodes.keys() ^ rows.keys()):
        if name in nodes and name not in rows:
            yield f"node {name} is there, and the cache does not know it"
        elif name in rows and name not in nodes:
            yield f"node {name} is gone, and the cache still has it"
    for key in list(pods):
        yield _missed(live, pods.get(key))
    for info in list(cache.pods()):
        known = pods.get(info.key)
        is_known = known is not None and known.uid == info.uid
        is_there = cache.pod(info.uid) is not None and not cache.is_assumed(info.uid)
        yield f"pod {info.key} is gone, and the cache still has it" if is_there and not is_known else None
    for name in list(rows):
        node = cache.cluster.nodes.info(name)
        yield None if node is None else "; ".join(check_node(cache.cluster, node)) or None


def _missed(live: LiveScheduler, pod: Pod | None) -> str | None:
    if pod is None or not pod.spec.node_name:
        return None
    info = live.cache.pod(pod.uid)
    if info is None:
        return f"pod {pod.key} runs on node {pod.spec.node_name}, and the cache does not know it"
    if info.node_name != pod.spec.node_name:
        return f"pod {pod.key} runs on node {pod.spec.node_name}, and the cache has it on {info.node_name}"
    return None


# Dumping


def _dump_nodes(live: LiveScheduler) -> Iterator[None]:
    for name in list(live.cache.cluster.nodes.row_of):
        info = live.cache.cluster.nodes.info(name)
        if info is not None:
            _dump_node(live, info)
        yield


def _dump_node(live: LiveScheduler, info: NodeInfo) -> None:
    resources = info.resources.names
    amounts = zip(resources, info.requested, info.allocatable, strict=False)
    _log.info(
        "cached node",
        node=info.name,
        used={resource: f"{used} of {offered}" for resource, used, offered in amounts if used or offered},
        pods=[pod.key for pod in info.pods.values()],
        assumed=[pod.key for pod in info.pods.values() if live.cache.is_assumed(pod.uid)],
        nominated=[pod.key for pod in live.queue.nominations.nominated_pods(info.name)],
    )


def _dump_queue(live: LiveScheduler) -> Iterator[None]:
    sizes = live.queue.sizes
    _log.info("scheduling queue", **sizes._asdict())
    for place, pods in live.queue.pending_pods().items():
        for queued in pods[:_MOST_PODS]:
            _dump_pod(place, queued)
            yield
        if len(pods) > _MOST_PODS:
            _log.info("and more pods wait there", queue=place.value, more=len(pods) - _MOST_PODS)


def _dump_pod(place: Place, queued: QueuedPod) -> None:
    _log.info(
        "queued pod",
        queue=place.value,
        pod=queued.key,
        priority=queued.priority,
        attempts=queued.attempts,
        since=queued.timestamp,
        rejected_by=sorted(queued.rejectors)[:_MOST_NAMES],
        gated_by=queued.gating_plugin,
        woken_by=queued.last_event,
    )
