"""Scores of the policies for columns of nodes: whole numbers from 0 to 100, the larger the better.

As Weng et al. describe the baselines of their evaluation (USENIX ATC'23, and its published simulator). `cpu` is free
milli-cpu, `free` the free thousandths by device, both before the pod is placed.
"""

from __future__ import annotations

import numpy as np

from bayplan.framework.columns import Int64N
from bayplan.plugins.community.gpu_share.devices import WHOLE, Devices, GpuRequest

__all__ = ["LARGEST_CPU", "LARGEST_GPU", "best_fit", "clustering", "dot_product", "packing"]

LARGEST_CPU = 128_000
LARGEST_GPU = 8 * WHOLE
"""What amounts are divided by: the largest node of the published evaluation."""


def best_fit(cpu: Int64N, free: Devices, cpu_wanted: int, request: GpuRequest) -> Int64N:
    """The less is left on the node, the better."""
    left_cpu = (cpu - cpu_wanted) / LARGEST_CPU
    left_gpu = (free.sum(axis=0) - request.total) / LARGEST_GPU
    return _bounded(100.0 * (1.0 - 0.5 * left_cpu - 0.5 * left_gpu))


def dot_product(cpu: Int64N, free: Devices, cpu_wanted: int, request: GpuRequest) -> Int64N:
    """The less the pod points the way in which the node is free, the better."""
    along_cpu = (cpu / LARGEST_CPU) * (cpu_wanted / LARGEST_CPU)
    along_gpu = (free.sum(axis=0) / LARGEST_GPU) * (request.total / LARGEST_GPU)
    return _bounded(100.0 * (1.0 - (along_cpu + along_gpu) / 2.0))


def packing(free: Devices, device_count: Int64N, request: GpuRequest) -> Int64N:
    """Devices in use first, then as few idle devices of nodes in use as possible, then idle nodes."""
    if not request.devices:
        return np.zeros(free.shape[1], dtype=np.int64)
    idle = (free == WHOLE).sum(axis=0)
    in_use = np.where((free < WHOLE) & (free >= request.milli), free, 2 * WHOLE)
    room = np.sort(in_use, axis=0)[: request.devices]
    opened = (room > WHOLE).sum(axis=0)
    joins = np.maximum(100 - room.sum(axis=0) * 100 // WHOLE // 10, 50)
    opens = np.maximum(50 - opened, 33)
    scores: Int64N = np.where(idle == device_count, np.maximum(33 - idle, 0), np.where(opened == 0, joins, opens))
    return scores


def clustering(free: Devices, kinds: Int64N, kind: int, request: GpuRequest) -> Int64N:
    """Nodes that hold this kind of request alone, then among others, then empty nodes, then those that hold others."""
    if not request.devices:
        return np.zeros(free.shape[1], dtype=np.int64)
    class_score = np.select([kinds == kind, (kinds & kind) != 0, kinds == 0], [75, 50, 25], default=0)
    scores: Int64N = class_score + 25 * (LARGEST_GPU - np.minimum(free.sum(axis=0), LARGEST_GPU)) // LARGEST_GPU
    return scores


def _bounded(scores: np.ndarray[tuple[int], np.dtype[np.float64]]) -> Int64N:
    return np.clip(scores, 0.0, 100.0).astype(np.int64)
