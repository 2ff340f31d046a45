"""Eviction of victims: condition, deletion and event for each, in tasks beside the scheduling cycle.

The last victim is evicted after all others: once it is terminating, so are they.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from bayplan.api.pod import PodCondition
from bayplan.cluster.changes import NameLog
from bayplan.cluster.pod_info import PodInfo
from bayplan.framework.handle import Handle
from bayplan.framework.plugin import Plugin

__all__ = ["Evictions"]


_AT_ONCE = 32
"""Evictions in flight at a time. With more, bindings would queue behind them at the API server, and so would the
nominations of the preemptors: one that is scheduled again before its nomination is stored does not wait for the victims
on that node, and may evict others."""


class Evictions:
    """The evictions that one plugin started and that have not ended."""

    def __init__(self, plugin: Plugin) -> None:
        self._plugin = plugin
        self._under_way: dict[str, PodInfo | None] = {}
        """uid of the preemptor to its last victim; None until that one is being evicted."""
        self._waiting_on: dict[str, dict[str, str]] = {}
        """Node of a last victim to the preemptors waiting for it: uid to `namespace/name`."""
        self._turns = asyncio.Semaphore(_AT_ONCE)
        self._releases = NameLog()
        self._row_position = -1

    @property
    def _handle(self) -> Handle:
        return self._plugin.handle

    def __contains__(self, uid: str) -> bool:
        """Whether victims of this preemptor are still being evicted."""
        return uid in self._under_way

    def is_waited_for(self, uid: str) -> bool:
        """Whether a preemptor has victims that are not terminating yet, as far as the cluster state shows."""
        if uid not in self._under_way:
            return False
        last = self._under_way[uid]
        if last is None:
            return True
        node = self._handle.cluster.node(last.node_name)
        known = node.pods.get(last.uid) if node is not None else None
        return known is not None and not known.is_terminating

    def releases(self) -> NameLog:
        """`namespace/name` of each preemptor when `is_waited_for` may have become false of it."""
        table = self._handle.cluster.nodes
        changed = table.row_changes.since(self._row_position)
        self._row_position = table.row_changes.position
        if self._waiting_on:
            nodes = None if changed is None else [table.infos[row] for row in set(changed.tolist())]
            # A row without a node held a removed one, whose name is unknown: all preemptors are checked, as few wait.
            names = list(self._waiting_on) if nodes is None or None in nodes else [node.name for node in nodes if node]
            for name in names:
                for uid, key in self._waiting_on.get(name, {}).items():
                    if not self.is_waited_for(uid):
                        self._releases.record(key)
        return self._releases

    def start(self, pod: PodInfo, node_name: str, victims: Sequence[PodInfo]) -> None:
        """Evict the victims that are not terminating already, in a task."""
        staying = [victim for victim in victims if not victim.is_terminating]
        if staying:
            self._under_way[pod.uid] = None
            self._handle.start_task(f"preemption for {pod.key}", self._evict(pod, node_name, staying))

    async def _evict(self, pod: PodInfo, node_name: str, victims: Sequence[PodInfo]) -> None:
        try:
            await self._clear_lower_nominations(pod, node_name)
            *others, last = victims
            await asyncio.gather(*(self._evict_one(pod, node_name, victim) for victim in others))
            self._wait_for(last, pod)
            await self._evict_one(pod, node_name, last)
        except Exception:
            self._end(pod, victims[-1])
            self._handle.activate([pod])
            raise
        self._end(pod, victims[-1])

    def _wait_for(self, last: PodInfo, pod: PodInfo) -> None:
        self._under_way[pod.uid] = last
        self._waiting_on.setdefault(last.node_name, {})[pod.uid] = pod.key
        self._releases.record(pod.key)

    def _end(self, pod: PodInfo, last: PodInfo) -> None:
        self._under_way.pop(pod.uid, None)
        self._releases.record(pod.key)
        waiting = self._waiting_on.get(last.node_name, {})
        waiting.pop(pod.uid, None)
        if not waiting:
            self._waiting_on.pop(last.node_name, None)

    async def _clear_lower_nominations(self, pod: PodInfo, node_name: str) -> None:
        lower = [p for p in self._handle.nominator.nominated_pods(node_name) if p.priority < pod.priority]
        await asyncio.gather(*(self._handle.api.patch_pod_status(other, nominated_node_name="") for other in lower))

    async def _evict_one(self, pod: PodInfo, node_name: str, victim: PodInfo) -> None:
        note = f"Preempted by pod {pod.uid} on node {node_name}"
        waiting = self._handle.waiting_pods.get(victim.uid)
        if waiting is not None and waiting.preempt(self._plugin.name, "preempted"):
            note += " (in kube-scheduler memory)."
        else:
            condition = PodCondition(
                type="DisruptionTarget",
                status="True",
                reason="PreemptionByScheduler",
                message=f"{pod.scheduler_name}: preempting to accommodate a higher priority pod",
            )
            async with self._turns:
                await self._handle.api.patch_pod_status(victim, condition=condition)
                await self._handle.api.delete_pod(victim)
        self._handle.recorder.event(victim, kind="Normal", reason="Preempted", action="Preempting", note=note)
