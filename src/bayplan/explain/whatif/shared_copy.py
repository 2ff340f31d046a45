"""The copy of a running cluster that questions share, because they come in groups.

A copy is taken again when the cluster has changed, so that nothing is suggested about what is gone. Where copying takes
long it is used for some seconds more, unless nodes or pending pods came or went.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from bayplan.api.pod import Pod
from bayplan.app.frameworks import watched_resources
from bayplan.app.live import LiveScheduler
from bayplan.app.settings import Settings
from bayplan.cluster.state import ClusterState
from bayplan.explain.whatif.cluster_copy import ClusterCopy, ClusterObjects, objects_of_cluster
from bayplan.explain.whatif.placing import created
from bayplan.observe.time_slices import Work, in_slices

__all__ = ["SharedCopy", "objects_of_live"]

T = TypeVar("T")
_KEPT_TIMES = 10
"""For so many times as long as it took to make, a copy is used although the cluster has changed."""
_MOST_KEPT_SECONDS = 5.0


@dataclass(frozen=True)
class _Kept:
    copy: ClusterCopy
    made_at: float
    seconds: float
    """For how long it is used although the cluster has changed."""


class SharedCopy:
    def __init__(self) -> None:
        self._kept: _Kept | None = None
        self._lock = asyncio.Lock()

    def forget(self) -> None:
        """Of another scheduler than the one that is at work now."""
        self._kept = None

    async def ask(self, live: LiveScheduler, settings: Settings, question: Callable[[ClusterCopy], Work[T]]) -> T:
        """One question at a time changes the copy, and leaves it as it was."""
        clock, turns = live.options.clock, live.turns
        async with self._lock:
            await turns.take()
            if self._kept is None or not _is_fresh(self._kept, live):
                began = clock.monotonic()
                build = ClusterCopy.build(objects_of_live(live), settings.profiles, settings.registry)
                copy, made_at = await in_slices(build, turns), clock.monotonic()
                self._kept = _Kept(copy, made_at, min(_KEPT_TIMES * (made_at - began), _MOST_KEPT_SECONDS))
            return await in_slices(question(self._kept.copy), turns)


def _is_fresh(kept: _Kept, live: LiveScheduler) -> bool:
    unchanged = kept.copy.generation == live.cache.cluster.generation
    same_nodes = _nodes(kept.copy.cache.cluster) == _nodes(live.cache.cluster)
    same_pods = kept.copy.waiting.keys() == {pod.key for pod, _ in _waiting(live)}
    return same_nodes and same_pods and (unchanged or live.options.clock.monotonic() - kept.made_at < kept.seconds)


def _nodes(cluster: ClusterState) -> set[str]:
    return {node.name for node in cluster.nodes.infos if node is not None}


def objects_of_live(live: LiveScheduler, others: Sequence[Pod] = ()) -> ClusterObjects:
    """`others` are pods that wait for schedulers which are none of ours."""
    waiting = [*_waiting(live), *((pod, created(pod)) for pod in others)]
    nominations = {
        pod.key: node
        for node in live.queue.nominations.nominated_nodes()
        for pod in live.queue.nominations.nominated_pods(node)
    }
    more = watched_resources([profile.framework for profile in live.profiles.values()])
    entered = {pod.key: since for pod, since in waiting}
    return objects_of_cluster(live.cache, [pod for pod, _ in waiting], nominations, entered=entered, more_kinds=more)


def _waiting(live: LiveScheduler) -> list[tuple[Pod, float]]:
    """The pods of the queue, with the times since which they wait. Those that are being deleted are not tried."""
    pending = live.queue.pending_pods()
    queued = [each for pods in pending.values() for each in pods]
    return [(each.info.pod, each.timestamp) for each in queued if not each.info.is_terminating]
