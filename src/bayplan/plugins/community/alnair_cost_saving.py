"""alnaircostsaving: fill the GPUs of one node before starting on the next."""

from __future__ import annotations

from bayplan.framework import CycleState, NodeInfo, PodInfo
from bayplan.plugins.alnair import Alnair, node_gpu_memory, pod_gpu_memory

__all__ = ["AlnairCostSaving"]


class AlnairCostSaving(Alnair):
    """Pack pods that share GPUs onto few nodes.

    *What it does*: annotates each pod with `ai.centaurus.io/scheduler-timestamp`, once, before it is bound; the device
    plugin uses it to tell which pod an allocation is for.
    *Rejects when*: the pod has a limit of `alnair/vgpu-memory` and no GPU of the node has as much, by the node's
    annotations `ai.centaurus.io/physical-gpu-count` and `ai.centaurus.io/virtual-gpu-count`.
    *Scores by*: the GPU memory that pods on the node hold; the more, the better. One container without a limit
    makes it 0.
    *Retries on*: a new node, a change of a node's annotations.
    *Arguments*: none.
    *Differs from the original*: one patch a pod instead of one a node; a node without a readable count is rejected (in
    the original the count wrapped around and everything fitted); the count is also found under `vitual-gpu-count`,
    which is what the device plugin writes.
    """

    name = "alnaircostsaving"

    def _is_concerned(self, pod: PodInfo) -> bool:
        return pod_gpu_memory(pod) > 0

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return node_gpu_memory(node)
