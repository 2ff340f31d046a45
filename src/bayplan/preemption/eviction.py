"""Eviction of victims: condition, deletion and event for each, in tasks beside the scheduling cycle.

The last victim is evicted after all others: once it is terminating, so are they.

A victim counts in the cluster state until the watch tells that it is gone, which may be long after it was evicted.
Until then it is known here as leaving: it is not evicted again, its preemptor evicts no other pod, and whatever counts
what is in use can count without it.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Collection, Sequence

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


class Evictions:
    """The evictions that one plugin started and that have not ended."""

    def __init__(self, plugin: Plugin) -> None:
        self._plugin = plugin
        self._under_way: dict[str, PodInfo | None] = {}
        """uid of the preemptor to its last victim; None until that one is being evicted."""
        self._waiting_on: dict[str, dict[str, str]] = {}
        """Node of a last victim to the preemptors waiting for it: uid to `namespace/name`."""
        self._victims: dict[str, list[PodInfo]] = {}
        """uid of a preemptor to its victims that were there when last looked."""
        self._leaving: dict[str, PodInfo] = {}
        """By uid, victims that were there when last looked."""
        self._turns = asyncio.Semaphore(_AT_ONCE)
        self._releases = NameLog()
        self._row_position = -1
        self._remember_up_to = _FEW_VICTIMS

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
        left = [victim for victim in self._victims.pop(uid, ()) if self._is_there(victim)]
        if left:
            self._victims[uid] = left
        return left

    def evicted(self) -> Collection[PodInfo]:
        """The victims that are there and are being evicted, or were."""
        if not all(map(self._is_there, self._leaving.values())):
            self._forget_gone()
        return self._leaving.values()

    def is_evicted(self, pod: PodInfo) -> bool:
        """Whether the pod is a victim that is there and is being evicted, or was."""
        return pod.uid in self._leaving

    def is_leaving(self, pod: PodInfo) -> bool:
        """Whether the pod is terminating, as far as the cluster state shows, or is evicted."""
        return pod.is_terminating or pod.uid in self._leaving

    def _is_there(self, victim: PodInfo) -> bool:
        node = self._handle.cluster.node(victim.node_name)
        return node is not None and victim.uid in node.pods

    def _forget_gone(self) -> None:
        """Drop what is known of victims that are gone, of all preemptors at times, since some never ask again."""
        self._leaving = {uid: victim for uid, victim in self._leaving.items() if self._is_there(victim)}
        for uid in list(self._victims):
            self._victims_left(uid)
        self._remember_up_to = 2 * len(self._leaving) + _FEW_VICTIMS

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
        """Evict the victims that are not leaving already, in a task."""
        staying = [victim for victim in victims if not self.is_leaving(victim)]
        if len(self._leaving) >= self._remember_up_to:
            self._forget_gone()
        if staying:
            work = self._evict(pod, node_name, staying)
            self._handle.start_task(f"preemption for {pod.key}", work)
            if inspect.getcoroutinestate(work) == inspect.CORO_CLOSED:
                # Where nothing is carried out, as for an explanation, no pod leaves.
                return
            self._leaving.update((victim.uid, victim) for victim in staying)
            self._under_way[pod.uid] = None
        self._victims[pod.uid] = [victim for victim in victims if victim.uid in self._leaving]

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
            self._leaving.pop(uid, None)
        self._victims[pod.uid] = [victim for victim in self._victims.get(pod.uid, ()) if victim.uid not in staying]

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


def kept_nomination(pod: PodInfo, node: NodeInfo) -> str | None:
    """What a preemptor that waits for pods to leave a node answers: stay nominated to it, said anew where the status of
    the pod does not say it."""
    return None if pod.nominated_node_name else node.name
