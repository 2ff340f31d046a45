"""The part of an evaluation that node objects alone decide: the first rejection of each node, and weighted scores.

Shapes of one kind share it, so that a new shape finds this half of its evaluation done. It is updated as a whole when a
node object changes, which is rare.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bayplan.cluster.axes import Int64N, Rows
from bayplan.cluster.node_table import NodeTable
from bayplan.cluster.pod_info import PodInfo
from bayplan.framework.promises import Totals
from bayplan.framework.runtime.node_calls import FilterCall, ScoreCall
from bayplan.framework.runtime.remembered.columns import FilterColumn, KeptColumn, ScoreColumn

__all__ = ["NO_NODE", "NodeOnlyEvaluation", "Normalized"]

NO_NODE = 255
"""Rank of a row that holds no node."""


class Normalized:
    """A remembered score that is normalised over the feasible nodes."""

    __slots__ = ("bounds", "call", "column", "contribution", "is_node_only")

    def __init__(self, call: ScoreCall, column: ScoreColumn, *, is_node_only: bool) -> None:
        self.call = call
        self.column = column
        self.is_node_only = is_node_only
        """Whether it depends on node objects alone, so that contributions stand while pods come and go."""
        self.bounds: tuple[int, int] = (0, 0)
        self.contribution: Int64N | None = None
        """Weighted scores by row; None while the column is uniform and its share is the same everywhere."""

    def one(self, row: int) -> int:
        """What a row contributes now."""
        normalizer = self.call.normalizer
        return self.call.weight * normalizer.apply_one(int(self.column.values[row]), self.bounds) if normalizer else 0

    def some(self, rows: Rows | slice) -> Int64N:
        """What some rows contribute now."""
        normalizer = self.call.normalizer
        assert normalizer is not None  # only scores with a known normaliser are kept as Normalized
        return normalizer.apply(self.column.values[rows], self.bounds) * self.call.weight


class NodeOnlyEvaluation:
    """Over filters and scores that depend on node objects and nothing else."""

    __slots__ = (
        "_columns",
        "_dtype",
        "_epochs",
        "_finals",
        "_layout",
        "_position",
        "base",
        "counts",
        "epoch",
        "filters",
        "has_one_final",
        "has_points_read",
        "has_scores",
        "is_suspect",
        "last_rank",
        "most",
        "normalized",
        "rank",
        "scores",
        "table",
    )
    BYTES_PER_ROW = 3
    """Of rank and base, with ordinary weights."""

    def __init__(
        self,
        table: NodeTable,
        *,
        filters: Sequence[tuple[FilterCall, FilterColumn]],
        scores: Sequence[tuple[ScoreCall, ScoreColumn]],
        last_rank: int,
        dtype: Any,
    ) -> None:
        """`last_rank` and `dtype` are those of evaluations, whose other filters and scores depend on pods too."""
        self.last_rank = last_rank
        self.filters = filters
        self.scores = scores
        self.normalized = [(call, column) for call, column in scores if call.normalizer is not None]
        self._finals = [(call.weight, column) for call, column in scores if call.normalizer is None]
        self.has_one_final = len(self._finals) < 2
        """Whether no two scores are added up in `base`."""
        self.has_points_read = False
        """Whether the points of a pod of the kind were read by plugin: those of the next will be, too."""
        self._columns: list[KeptColumn] = [*(column for _, column in filters), *(column for _, column in scores)]
        self.table = table
        self._dtype = dtype
        self.most = int(np.iinfo(dtype).max)
        """The highest total that the arrays hold."""
        self._epochs: list[int] = []
        self._layout = self._position = -1
        self.epoch = 0
        """Grows when more changed than the rows whose node objects did."""
        self.is_suspect = False
        """Whether some score was ever out of range."""
        self.counts: dict[int, int] = {}
        """How many nodes each filter rejects first, by rank, of those that reject any."""

    # Read after `refresh`. Beyond the last row there is no node.
    rank: np.ndarray[tuple[int], np.dtype[np.uint8]]
    base: Totals
    has_scores: bool
    """Whether any node has points in `base`."""

    def refresh(self, pod: PodInfo) -> None:
        """Update to the table, for a pod of its kind."""
        table = self.table
        if self._position == table.node_changes.position and self._layout == table.layout:
            return
        for column in self._columns:
            column.refresh(table, pod)
        epochs = [column.epoch for column in self._columns]
        if epochs != self._epochs or self._layout != table.layout:
            self.epoch += 1
        self._epochs, self._layout, self._position = epochs, table.layout, table.node_changes.position
        self.is_suspect = self.is_suspect or any(column.is_suspect for _, column in self.scores)
        self._rebuild()

    def _rebuild(self) -> None:
        table = self.table
        rejecting = [(call.rank, column) for call, column in self.filters if column.rejects_any]
        self.rank = np.zeros(table.capacity, dtype=np.uint8)
        for number, column in reversed(rejecting):
            self.rank[column.ids != 0] = number
        self.rank[~table.valid] = NO_NODE
        counts = {number: int(np.count_nonzero(self.rank == number)) for number, _ in rejecting}
        self.counts = {number: count for number, count in counts.items() if count}
        self.base = np.zeros(table.capacity, dtype=self._dtype)
        for weight, final in self._finals:
            self.base += (final.values * weight).astype(self._dtype)
        self.has_scores = bool(np.count_nonzero(self.base))
