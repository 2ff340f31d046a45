"""The order in which pods are evicted: each after those that its replacement has to be near.

A replacement that finds no place is tried again after the moves of others. Those that find none even then are evicted
together, because some need each other: while one of them is on a cordoned node, the replacement of another has no place
beside it. Nothing here decides where a pod goes; `bayplan.plan.moves` has the scheduler do that.
"""

from __future__ import annotations

from collections.abc import Sequence

from bayplan.cluster.pod_info import PodInfo
from bayplan.plan.moves import MovableCluster, Move, Stuck

__all__ = ["move_pods"]


def move_pods(
    cluster: MovableCluster, pods: Sequence[PodInfo], *, force: bool = False, all_or_none: bool = False
) -> tuple[list[Move], list[Stuck]]:
    """Move pods in an order that works. A pod that is stuck stays where it is.

    With `all_or_none`, the first pod that can never be moved ends the search.
    """
    search = _Search(cluster, ends_early=all_or_none)
    left = list[PodInfo]()
    for pod in pods:
        objection = cluster.objection(pod, force=force)
        if objection:
            search.note_stuck(pod, objection)
        else:
            left.append(pod)
    before = len(left) + 1
    while 0 < len(left) < before and not search.is_over():
        before = len(left)
        left = search.move_together(search.move_singly(left))
    return search.moves, [search.stuck[pod.uid] for pod in pods if pod.uid in search.stuck]


class _Search:
    def __init__(self, cluster: MovableCluster, *, ends_early: bool) -> None:
        self._cluster = cluster
        self._ends_early = ends_early
        self._is_over = False
        self.moves: list[Move] = []
        self.stuck: dict[str, Stuck] = {}
        """By uid."""

    def is_over(self) -> bool:
        """Whether a pod can never be moved, and the others do not count without it."""
        return self._is_over

    def note_stuck(self, pod: PodInfo, reason: str, *, for_good: bool = True) -> None:
        self.stuck[pod.uid] = Stuck(pod=pod.key, node=pod.node_name, reason=reason)
        self._is_over |= for_good and self._ends_early

    def move_singly(self, pods: list[PodInfo]) -> list[PodInfo]:
        """Those that are left, and that the moves of others may still help."""
        has_changed = True
        while has_changed and not self.is_over():
            again, has_changed = list[PodInfo](), False
            for pod in pods:
                attempt = self._cluster.evict([pod])
                if attempt.moves:
                    self._note_moves([pod], attempt.moves)
                    has_changed |= bool(again)
                    continue
                self.note_stuck(pod, attempt.reason, for_good=attempt.is_hopeless)
                if self.is_over():
                    return []
                if not attempt.is_hopeless:
                    again.append(pod)
            pods = again
        return pods

    def move_together(self, pods: list[PodInfo]) -> list[PodInfo]:
        """Those that are left once as many as can be were evicted together."""
        group = pods
        while len(group) > 1:
            attempt = self._cluster.evict(group)
            if attempt.moves:
                self._note_moves(group, attempt.moves)
                return [pod for pod in pods if pod.uid in self.stuck]
            group = [pod for pod in group if pod.key in attempt.placed]
        return pods

    def _note_moves(self, pods: Sequence[PodInfo], moves: Sequence[Move]) -> None:
        self.moves += moves
        for pod in pods:
            self.stuck.pop(pod.uid, None)
