"""alnairhighperformance: keep pods that use GPUs apart."""

from __future__ import annotations

from bayplan.framework import CycleState, NodeInfo, PodInfo
from bayplan.plugins.alnair import Alnair, node_gpu_memory

__all__ = ["AlnairHighPerformance"]

_MOST = 10_000


class AlnairHighPerformance(Alnair):
    """Spread pods that share GPUs over many nodes.

    *What it does*: annotates each pod with `ai.centaurus.io/scheduler-timestamp`, once, before it is bound.
    *Rejects when*: the node has no GPU, or none with as much memory as the pod's limit of `alnair/vgpu-memory`; pods
    without that limit need a GPU node too.
    *Scores by*: 10,000 less the GPU memory that pods on the node hold; the less they hold, the better.
    *Retries on*: a new node, a change of a node's annotations.
    *Arguments*: none.
    *Differs from the original*: as alnaircostsaving; a node whose pods hold more than 10,000 scores lowest (in the
    original the number wrapped round).
    """

    name = "alnairhighperformance"

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return _MOST - node_gpu_memory(node)
