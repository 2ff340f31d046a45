"""Virtual GPUs of nodes and pods, and the timestamp of scheduling: shared by the two Alnair plugins."""

from __future__ import annotations

import re
from collections.abc import Hashable

import numpy as np

from bayplan.framework import (
    MAX_NODE_SCORE,
    ActionType,
    ClusterEvent,
    CycleState,
    Depends,
    EventHint,
    NodeColumns,
    NodeInfo,
    Plugin,
    PodInfo,
    Resource,
    Status,
    Unschedulable,
)
from bayplan.framework.columns import Int64N
from bayplan.framework.objects import value
from bayplan.plugins.timestamps import PATCH_PODS, take_time, write_time

__all__ = ["Alnair", "node_gpu_memory", "pod_gpu_memory"]

_MEMORY = "alnair/vgpu-memory"
_TIMESTAMP = "ai.centaurus.io/scheduler-timestamp"
_PHYSICAL = ("ai.centaurus.io/physical-gpu-count",)
_VIRTUAL = ("ai.centaurus.io/virtual-gpu-count", "ai.centaurus.io/vitual-gpu-count")
"""The device plugin writes the second spelling."""
_COUNT = re.compile(r"\s*([0-9]{1,9})\s*(,.*)?")


class Alnair(Plugin):
    """The common part; the two plugins decide which pods it applies to and which nodes score high."""

    name = "alnair"
    filter_depends = Depends.NODE
    score_depends = Depends.ROW
    permissions = (PATCH_PODS,)
    reasons = ("Node:<name>",)

    def sign(self, pod: PodInfo) -> Hashable:
        return pod_gpu_memory(pod)

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        """Whether some GPU of the node is large enough. Whether it is in use is checked by NodeResourcesFit."""
        if not self._is_concerned(pod):
            return None
        has_room = _count(node, _PHYSICAL) > 0 and _count(node, _VIRTUAL) >= pod_gpu_memory(pod)
        return None if has_room else Unschedulable(f"Node:{node.name}")

    def _is_concerned(self, pod: PodInfo) -> bool:
        return True

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Status | None:
        take_time(self.handle, state)
        return None

    def normalize(self, state: CycleState, pod: PodInfo, scores: Int64N) -> Int64N:
        """The smallest becomes 0, the largest 100; all 100 when they are equal."""
        smallest, largest = (int(scores.min()), int(scores.max())) if len(scores) else (0, 0)
        if smallest == largest:
            return np.full(len(scores), MAX_NODE_SCORE, dtype=np.int64)
        return (scores - smallest) * MAX_NODE_SCORE // (largest - smallest)

    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        return await write_time(self.handle, state, pod, annotation=_TIMESTAMP)

    def events_to_register(self) -> list[EventHint]:
        return [EventHint(ClusterEvent(Resource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_ANNOTATION))]


def pod_gpu_memory(pod: PodInfo) -> int:
    """The GPU memory limits of the pod's containers, summed."""
    return sum(amounts or 0 for amounts in _limits(pod))


def node_gpu_memory(node: NodeInfo) -> int:
    """The GPU memory limits of the pods on a node, summed; 0 if one of their containers has no limit."""
    amounts = [amount for pod in node.pods.values() for amount in _limits(pod)]
    return 0 if None in amounts else sum(amount or 0 for amount in amounts)


def _limits(pod: PodInfo) -> list[int | None]:
    """For each app container its limit of GPU memory, None where it has none."""
    limits = [(c.resources.limits or {}) if c.resources else {} for c in pod.shape.spec.containers or ()]
    return [value(each[_MEMORY]) if _MEMORY in each else None for each in limits]


def _count(node: NodeInfo, annotations: tuple[str, ...]) -> int:
    """The first number of a comma-separated annotation; -1 where there is none."""
    for annotation in annotations:
        found = _COUNT.fullmatch(node.annotations.get(annotation, ""))
        if found:
            return int(found[1])
    return -1
