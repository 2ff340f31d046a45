"""Scores that are worked out together, because they read the same columns.

Half the price of a score over thousands of nodes is reading the columns and dividing by them. Two plugins that look at
the same ones may offer to add up both scores in one pass; the engine then keeps one column for the sum. Each plugin can
still be asked by itself, and is, wherever its own share is to be seen. A plugin makes the offer by defining

    join_scores(scores) -> JointScore | None     `scores`: the plugins of the profile that score, with their weights

Nothing but time depends on it: with remembering off, no scores are joined.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Protocol

import numpy as np

from bayplan.cluster.node_columns import NodeColumns
from bayplan.cluster.node_info import NodeInfo
from bayplan.cluster.pod_info import PodInfo

__all__ = ["JointScore", "Totals"]

Totals = np.ndarray[tuple[int], np.dtype[Any]]
"""As wide as weights make it: int16, or more."""


class JointScore(Protocol):
    """The weighted sum of the scores of some plugins.

    All of `members` must depend on a node's row at most, be within 0 to 100 as they are, and not be normalised.
    """

    @property
    def members(self) -> tuple[str, ...]:
        """Names of the plugins. The sum counts for pods about which each of them has a say."""

    def sign(self, pod: PodInfo) -> Hashable:
        """What of the pod the sum depends on."""

    def totals(self, pod: PodInfo, nodes: NodeColumns, out: Totals) -> bool:
        """Write the sum of each position; False, and nothing written, where the plugins must be asked one by one."""

    def total(self, pod: PodInfo, node: NodeInfo) -> int | None:
        """The sum for one node; None where the plugins must be asked one by one."""
