"""A plugin as its author writes it: `mypy --strict` accepts it without a cast or an ignore."""

from __future__ import annotations

import numpy as np

from bayplan.framework import (
    CounterMetric,
    CustomResource,
    CycleState,
    Depends,
    EventHint,
    GaugeMetric,
    HistogramMetric,
    NodeColumns,
    NodeInfo,
    NotFound,
    Plugin,
    PluginArgs,
    PodInfo,
    PreFilterResult,
    ResourcePart,
    Skip,
    StateKey,
    Status,
    Unschedulable,
    Wait,
    normalize_highest,
)
from bayplan.framework.columns import Int64N
from bayplan.framework.objects import Pod

SEATS: StateKey[int] = StateKey("Seats/free")


class SeatArgs(PluginArgs):
    label: str = "seats"
    wait_seconds: float
    rooms: list[str] = []


class RoomSpec(ResourcePart):
    open: bool = True
    seats: int


class Room(CustomResource, group="seats.example.com", version="v1", plural="rooms"):
    """Required fields after optional ones."""

    spec: RoomSpec


class Seats(Plugin[SeatArgs]):
    """Counts seats, prefers free ones."""

    depends = Depends.NODE
    normalize = normalize_highest
    watches = (Room,)
    refused = CounterMetric("Pods refused.", labels=("room",))
    free = GaugeMetric("Seats that are free.")
    waits = HistogramMetric("Seconds that pods waited.", buckets=(1, 10))

    def setup(self) -> None:
        self._taken: dict[str, int] = {}

    def teardown(self) -> None:
        self._taken.clear()

    def pod_gone(self, pod: PodInfo, node_name: str) -> None:
        self._taken.pop(node_name, None)
        self.refused.labels("a").inc()
        self.free.set(len(self._taken))
        self.waits.observe(self.args.wait_seconds)

    def events_to_register(self) -> list[EventHint] | None:
        return None

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Status | PreFilterResult | None:
        if pod.namespace == "anywhere":
            return Skip()
        return PreFilterResult(frozenset(("a",))) if pod.labels.get("pinned") else None

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        seats = node.labels.get(self.args.label, "0")
        return None if int(seats) > self._taken.get(node.name, 0) else Unschedulable("node(s) had no free seats")

    def score_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Int64N:
        free: Int64N = nodes.allocatable("cpu") - nodes.requested("cpu")
        return np.maximum(free, 0)

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        state.put(SEATS, (state.get(SEATS) or 0) + 1)
        self._taken[node_name] = self._taken.get(node_name, 0) + 1
        return None

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        self._taken.pop(node_name, None)

    def permit(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        return Wait(self.args.wait_seconds)

    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        try:
            found = await self.handle.api.get(Pod, pod.name, pod.namespace)
        except NotFound:
            return Unschedulable("the pod is gone")
        self.log.info("seated", pod=pod.key, known=found is not None, nodes=len(self.handle.nodes()))
        return None


class Bare(Plugin):
    """Without arguments, and without a type in brackets."""

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return len(node.name)


class Nested(Plugin):
    """Arguments in a nested class, as untyped plugins declare them."""

    class Args(PluginArgs):
        zone: str = ""

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return 100 if node.labels.get("zone") == self.args.zone else 0
