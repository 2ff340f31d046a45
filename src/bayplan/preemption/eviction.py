"""Eviction of victims: condition, deletion and event for each, in tasks beside the scheduling cycle.

The last victim is evicted after all others: once it is terminating, so are they.

A victim counts in the cluster state until the watch reports that it is gone, which may be long after it was evicted.
Until then it is known here as leaving: it is not evicted again, its preemptor evicts no other pod, and whatever counts
what is in use can count without it. Plugins of other profiles, and those that a reload puts in place, know it too.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from bayplan.api.pod import PodCondition
from bayplan.cluster.changes import NameLog
from bayplan.cluster.node_info import NodeInfo
from bayplan.cluster.pod_info import PodInfo
from bayplan.framework.handle import Handle
from bayplan.framework.plugin import Plugin

__all__ = ["Evictions", "kept_nomination"]


_AT_ONCE = 32
"""Evictions in flight at a time. With more, bindings would queue behind them at the API server, and so would the
nominations of the preemptors: one that is scheduled again before its nomination is stored does not wait for the victims
on that node, and may evict others."""
_FEW_VICTIMS = 64


@dataclass
class EvictionsUnderWay:
    """What is known of evictions that have not ended, of all profiles and over reloads (`Handle.lasting`)."""

    last_victims: dict[str, PodInfo | None] = field(default_factory=dict)
    """uid of the preemptor to its last victim; None until that one is being evicted."""
    waiting_on: dict[str, dict[str, str]] = field(default_factory=dict)
    """Node of a last victim to the preemptors waiting for it: uid to `namespace/name`."""
    victims: dict[str, list[PodInfo]] = field(default_factory=dict)
    """uid of a preemptor to its victims that were there when last looked."""
    leaving: dict[str, PodInfo] = field(default_factory=dict)
    """By uid, victims that were there when last looked."""
    rejected: dict[str, PodInfo] = field(default_factory=dict)
    """By uid, those of them that were held at Permit: they lose this place and may get another one."""
    turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE))
    releases: NameLog = field(default_factory=NameLog)
    row_position: int = -1
    remember_up_to: int = _FEW_VICTIMS


class Evictions:
    """Evicts for one plugin, knowing what the others evict."""

    def __init__(self, plugin: Plugin) -> None:
        self._plugin = plugin

    @cached_property
    def _known(self) -> EvictionsUnderWay:
        return self._handle.lasting.get(EvictionsUnderWay)

    @property
    def _handle(self) -> Handle:
        return self._plugin.handle

    def nominated_node(self, pod: PodInfo) -> NodeInfo | None:
        """The node that a preemptor is nominated to. Its status may not show it yet, or not any more while victims are
        still there."""
        cluster = self._handle.cluster
        if pod.nominated_node_name:
            return cluster.node(pod.nominated_node_name)
        row = self._handle.dry_run.nominated_rows(self._handle.nominator).row_of(pod)
        if row is not None:
            return cluster.nodes.at(row)
        victims = self._victims_left(pod.uid)
        return cluster.node(victims[0].node_name) if victims else None

    def is_awaited_on(self, node: NodeInfo, pod: PodInfo) -> bool:
        """Whether victims of this preemptor are still on the node."""
        return any(victim.node_name == node.name for victim in self._victims_left(pod.uid))

    def _victims_left(self, uid: str) -> list[PodInfo]:
        left = [victim for victim in self._known.victims.pop(uid, ()) if self._is_there(victim)]
        if left:
            self._known.victims[uid] = left
        return left

    def evicted(self) -> Collection[PodInfo]:
        """The victims that are there and are being evicted, or were."""
        if not all(map(self._is_there, self._known.leaving.values())):
            self._forget_gone()
        return self._known.leaving.values()

    def is_evicted(self, pod: PodInfo) -> bool:
        """Whether the pod is a victim that is there and is being evicted, or was."""
        victim = self._known.leaving.get(pod.uid)
        return victim is not None and victim.node_name == pod.node_name and self._is_there(victim)

    def is_leaving(self, pod: PodInfo) -> bool:
        """Whether the pod is terminating, as far as the cluster state shows, or is evicted."""
        return pod.is_terminating or self.is_evicted(pod)

    def _is_there(self, victim: PodInfo) -> bool:
        node = self._handle.cluster.node(victim.node_name)
        found = node.pods.get(victim.uid) if node is not None else None
        if self._known.rejected.get(victim.uid) is victim:
            return found is victim
        return found is not None

    def _forget_gone(self) -> None:
        """Drop what is known of victims that are gone, of all preemptors at times, since some never ask again."""
        self._known.leaving = {uid: victim for uid, victim in self._known.leaving.items() if self._is_there(victim)}
        for uid in list(self._known.victims):
            self._victims_left(uid)
        self._known.rejected = {uid: pod for uid, pod in self._known.rejected.items() if uid in self._known.leaving}
        self._known.remember_up_to = 2 * len(self._known.leaving) + _FEW_VICTIMS

    def is_waited_for(self, uid: str) -> bool:
        """Whether a preemptor has victims that are not terminating yet, as far as the cluster state shows."""
        if uid not in self._known.last_victims:
            return False
        last = self._known.last_victims[uid]
        if last is None:
            return True
        node = self._handle.cluster.node(last.node_name)
        known = node.pods.get(last.uid) if node is not None else None
        return known is not None and not known.is_terminating

    def releases(self) -> NameLog:
        """`namespace/name` of each preemptor when `is_waited_for` may have become false of it."""
        table = self._handle.cluster.nodes
        changed = table.row_changes.since(self._known.row_position)
        self._known.row_position = table.row_changes.position
        if self._known.waiting_on:
            nodes = None if changed is None else [table.infos[row] for row in set(changed.tolist())]
            # A row without a node held a removed one, whose name is unknown: all preemptors are checked, as few wait.
            names = (
                list(self._known.waiting_on)
                if nodes is None or None in nodes
                else [node.name for node in nodes if node]
            )
            for name in names:
                for uid, key in self._known.waiting_on.get(name, {}).items():
                    if not self.is_waited_for(uid):
                        self._known.releases.record(key)
        return self._known.releases

    def start(self, pod: PodInfo, node_name: str, victims: Sequence[PodInfo]) -> None:
        """Evict the victims that are not leaving already, in a task."""
        staying = [victim for victim in victims if not self.is_leaving(victim)]
        if len(self._known.leaving) >= self._known.remember_up_to:
            self._forget_gone()
        if staying:
            work = self._evict(pod, node_name, staying)
            self._handle.start_task(f"preemption for {pod.key}", work)
            if inspect.getcoroutinestate(work) == inspect.CORO_CLOSED:
                # Where nothing is carried out, as for an explanation, no pod leaves.
                return
            self._known.leaving.update((victim.uid, victim) for victim in staying)
            self._known.last_victims[pod.uid] = None
        self._known.victims[pod.uid] = [victim for victim in victims if victim.uid in self._known.leaving]

    async def _evict(self, pod: PodInfo, node_name: str, victims: Sequence[PodInfo]) -> None:
        *others, last = victims
        to_go = {victim.uid for victim in victims}
        try:
            await self._clear_lower_nominations(pod, node_name)
            await self._evict_all(pod, node_name, others, to_go)
            self._wait_for(last, pod)
            await self._evict_all(pod, node_name, [last], to_go)
        except Exception:
            self._keep(pod, to_go)
            self._end(pod, last)
            self._handle.activate([pod])
            raise
        self._end(pod, last)

    async def _evict_all(self, pod: PodInfo, node_name: str, victims: Sequence[PodInfo], to_go: set[str]) -> None:
        """All are tried before the first failure is raised, so that the outcome of each is known."""
        evictions = (self._evict_one(pod, node_name, victim) for victim in victims)
        failures = []
        for victim, result in zip(victims, await asyncio.gather(*evictions, return_exceptions=True), strict=True):
            if isinstance(result, BaseException):
                failures.append(result)
            else:
                to_go.discard(victim.uid)
        if failures:
            raise failures[0]

    def _keep(self, pod: PodInfo, staying: Collection[str]) -> None:
        """Victims that could not be evicted may be chosen again."""
        for uid in staying:
            self._known.leaving.pop(uid, None)
        self._known.victims[pod.uid] = [
            victim for victim in self._known.victims.get(pod.uid, ()) if victim.uid not in staying
        ]

    def _wait_for(self, last: PodInfo, pod: PodInfo) -> None:
        self._known.last_victims[pod.uid] = last
        self._known.waiting_on.setdefault(last.node_name, {})[pod.uid] = pod.key
        self._known.releases.record(pod.key)

    def _end(self, pod: PodInfo, last: PodInfo) -> None:
        self._known.last_victims.pop(pod.uid, None)
        self._known.releases.record(pod.key)
        waiting = self._known.waiting_on.get(last.node_name, {})
        waiting.pop(pod.uid, None)
        if not waiting:
            self._known.waiting_on.pop(last.node_name, None)

    async def _clear_lower_nominations(self, pod: PodInfo, node_name: str) -> None:
        lower = [p for p in self._handle.nominator.nominated_pods(node_name) if p.priority < pod.priority]
        await asyncio.gather(*(self._handle.api.patch_pod_status(other, nominated_node_name="") for other in lower))

    async def _evict_one(self, pod: PodInfo, node_name: str, victim: PodInfo) -> None:
        """Evict the victim from where it is. One that was held at Permit may have lost that place in the meantime, and
        have another one."""
        if not self._is_there(victim):
            return
        note = f"Preempted by pod {pod.uid} on node {node_name}"
        waiting = self._handle.waiting_pods.get(victim.uid)
        if waiting is not None and waiting.preempt(self._plugin.name, "preempted"):
            self._known.rejected[victim.uid] = victim
            note += " (in kube-scheduler memory)."
        else:
            condition = PodCondition(
                type="DisruptionTarget",
                status="True",
                reason="PreemptionByScheduler",
                message=f"{pod.scheduler_name}: preempting to accommodate a higher priority pod",
            )
            async with self._known.turns:
                await self._handle.api.patch_pod_status(victim, condition=condition)
                await self._handle.api.delete_pod(victim)
        self._handle.recorder.event(victim, kind="Normal", reason="Preempted", action="Preempting", note=note)


def kept_nomination(pod: PodInfo, node: NodeInfo) -> str | None:
    """What a preemptor that waits for pods to leave a node answers: stay nominated to it, said anew where the status of
    the pod does not say it."""
    return None if pod.nominated_node_name else node.name
