"""NodeResourcesAllocatable: prefer small nodes, or large ones, whatever runs on them."""

from __future__ import annotations

from collections.abc import Hashable

import msgspec
import numpy as np

from bayplan.framework import (
    MAX_NODE_SCORE,
    CycleState,
    Depends,
    NodeColumns,
    NodeInfo,
    Normalizer,
    Plugin,
    PluginArgs,
    PodInfo,
)
from bayplan.framework.columns import Int64N, is_counted

__all__ = ["NodeResourcesAllocatable", "ResourceWeight", "normalize_whole_range"]

_MODES = ("Least", "Most")
_LARGEST = int(np.iinfo(np.int64).max)


class _WholeRange(Normalizer):
    """The smallest raw score becomes 0 and the largest 100, in whole numbers; all 0 when they are equal."""

    takes_negative = True

    def apply(self, scores: Int64N, bounds: tuple[int, int]) -> Int64N:
        lowest, highest = bounds
        if lowest == highest:
            return np.zeros(len(scores), dtype=np.int64)
        above = scores - lowest
        if highest - lowest > _LARGEST // MAX_NODE_SCORE:
            above = above.astype(object)
        return np.asarray(above * MAX_NODE_SCORE // (highest - lowest), dtype=np.int64)


normalize_whole_range = _WholeRange()


class ResourceWeight(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """A resource and its share of the score."""

    name: str
    weight: int


def _default_resources() -> list[ResourceWeight]:
    """A byte counts little beside a thousandth of a cpu."""
    return [ResourceWeight("cpu", 1 << 20), ResourceWeight("memory", 1)]


class NodeResourcesAllocatable(Plugin):
    """Scores nodes by their size: the weighted mean of what they offer of some resources.

    *What it does*: reads allocatable amounts only, not the pod and not the pods on the node. cpu counts in
    thousandths, memory and storage in bytes, extended resources one by one; anything else, and what a node
    lacks, counts 0.
    *Rejects when*: never.
    *Scores by*: mode Least prefers the smallest node, Most the largest; the others lie in between in proportion. Nodes
    that are all the same size score 0.
    *Retries on*: nothing.
    *Arguments*: mode (`Least` or `Most`), resources (names with weights; cpu 1048576 and memory 1). Of a resource that
    is named twice, the last weight counts.
    *Differs from the original*: weights and amounts whose product passes 63 bits are computed exactly (the original's
    sum overflows, and the order of the nodes with it).
    """

    depends = Depends.NODE
    normalize = normalize_whole_range

    class Args(PluginArgs):
        resources: list[ResourceWeight] = msgspec.field(default_factory=_default_resources)
        mode: str = "Least"

        def validate(self) -> list[str]:
            problems = [
                f"resources[{i}].weight: resource weight of {r.name} should be a positive value, got :{r.weight}"
                for i, r in enumerate(self.resources)
                if r.weight <= 0
            ]
            if self.mode not in _MODES:
                problems.append(f"mode: invalid support ModeType; allowed are `Least` and `Most`, found `{self.mode}`")
            return problems

    def setup(self) -> None:
        weights = {r.name: r.weight for r in self.args.resources or _default_resources()}
        self._weights = {name: weight for name, weight in weights.items() if is_counted(name)}
        self._total_weight = sum(weights.values())
        self._sign = 1 if self.args.mode == "Most" else -1

    def sign(self, pod: PodInfo) -> Hashable:
        """Nothing of the pod is read: one column serves all pods."""
        return ()

    def score_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Int64N:
        kind = np.int64 if nodes.table.largest_amount * self._total_weight <= _LARGEST else object
        total = np.zeros(len(nodes), dtype=kind)
        for name, weight in self._weights.items():
            total += nodes.allocatable(name).astype(kind, copy=False) * weight
        # Amounts are not negative, so flooring before the sign is truncating after it, as Go's division does.
        return np.asarray(total // self._total_weight, dtype=np.int64) * self._sign

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        total = sum(node.allocatable_of(name) * weight for name, weight in self._weights.items())
        return total // self._total_weight * self._sign
