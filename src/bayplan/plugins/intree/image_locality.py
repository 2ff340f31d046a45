"""ImageLocality: prefer nodes that already hold the pod's images."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from bayplan.framework import MAX_NODE_SCORE, CycleState, Depends, NodeColumns, NodeInfo, Plugin, PodInfo
from bayplan.framework.columns import ImageState, Int64N

__all__ = ["ImageLocality"]

_MEBIBYTE = 1024 * 1024
_LEAST_BYTES = 23 * _MEBIBYTE
_MOST_BYTES_PER_CONTAINER = 1000 * _MEBIBYTE


class ImageLocality(Plugin):
    """Weigh the images that a node has by their size and by how many nodes have them.

    *What it does*: adds up the sizes of the pod's images (of init containers, containers and image volumes) that the
    node holds, each scaled down by the share of nodes that hold it, so that a rare image does not draw every pod to
    one node. The size of an image is the one that the first node reported.
    *Rejects when*: never.
    *Scores by*: that sum, from 0 at 23 MiB to 100 at 1000 MiB for each container.
    *Retries on*: nothing; it rejects nothing.
    *Arguments*: none.
    *Differs from kube-scheduler*: nowhere.
    """

    default_weight = 1
    depends = Depends.NODES
    signs_by_kind = True
    is_within_bounds = True

    def sign(self, pod: PodInfo) -> Hashable:
        return (tuple(sorted(pod.shape.images)), _container_count(pod))

    def score_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Int64N:
        scores = np.zeros(len(nodes), dtype=np.int64)
        holdings = self._holdings(pod)
        if sum(worth for worth, _ in holdings if worth > 0) <= _LEAST_BYTES:
            return scores
        for worth, image in holdings:
            scores += nodes.cut(image.held(nodes.table.capacity)) * np.int64(worth)
        most = _most_bytes(pod)
        np.clip(scores, _LEAST_BYTES, most, out=scores)
        scores -= _LEAST_BYTES
        scores *= MAX_NODE_SCORE
        scores //= most - _LEAST_BYTES
        return scores

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        most = _most_bytes(pod)
        total = sum(worth for worth, image in self._holdings(pod) if node.row in image.rows)
        return MAX_NODE_SCORE * (min(max(total, _LEAST_BYTES), most) - _LEAST_BYTES) // (most - _LEAST_BYTES)

    def _holdings(self, pod: PodInfo) -> list[tuple[int, ImageState]]:
        """For each image of the pod that some node has: its weighted size, and the nodes that have it."""
        cluster = self.handle.cluster
        node_count, most = len(cluster.nodes), _most_bytes(pod)
        found = [state for name in pod.shape.images if (state := cluster.images.get(name)) is not None]
        # No image counts for more than the cap on the sum, which also keeps absurd sizes from overflowing a column.
        return [(min(int(float(s.size_bytes) * (len(s.rows) / node_count)), most), s) for s in found]


def _container_count(pod: PodInfo) -> int:
    spec = pod.shape.spec
    return len(spec.init_containers or ()) + len(spec.containers or ())


def _most_bytes(pod: PodInfo) -> int:
    return _MOST_BYTES_PER_CONTAINER * max(_container_count(pod), 1)
