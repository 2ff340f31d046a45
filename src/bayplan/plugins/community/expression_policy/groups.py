"""Groups of nodes that expressions cannot tell apart, so that one evaluation answers for all of a group.

Expressions mostly read a label or two, of which five thousand nodes have a handful of values. Where they read more than
columns hold (a name, annotations, amounts), every node is a group of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from bayplan.framework import NodeColumns, NodeInfo
from bayplan.framework.columns import Int64N

__all__ = ["Groups"]


class Groups(NamedTuple):
    """What expressions read of nodes, as columns."""

    labels: tuple[str, ...]
    """Keys of labels."""
    columns: tuple[str, ...]
    """Other fields that have a column."""
    is_single: bool
    """Whether they read something that has no column."""

    @classmethod
    def of(cls, paths: Iterable[tuple[str, ...]]) -> Groups:
        """The groups for the paths from `node` to what is read."""
        labels, columns, is_single = set(), set(), False
        for path in paths:
            match path:
                case ("labels", key, *_):
                    labels.add(key)
                case (field, *_) if field in _COLUMNS:
                    columns.add(field)
                case _:
                    is_single = True
        return cls(tuple(sorted(labels)), tuple(sorted(columns)), is_single)

    def answers(self, nodes: NodeColumns, answer: Callable[[NodeInfo], int]) -> Int64N:
        """The answer for each position, worked out once for each group; 0 for rows that hold no node."""
        answers = np.zeros(len(nodes), np.int64)
        held = np.flatnonzero(nodes.valid)
        if self.is_single or len(held) == 0:
            answers[held] = [answer(nodes.info(position)) for position in held.tolist()]
            return answers
        _, first, group = np.unique(self._codes(nodes)[held], return_index=True, return_inverse=True)
        found = [answer(nodes.info(position)) for position in held[first].tolist()]
        answers[held] = np.array(found, np.int64)[group]
        return answers

    def _codes(self, nodes: NodeColumns) -> Int64N:
        """A number for each position, the same for nodes of one group."""
        codes = np.zeros(len(nodes), np.int64)
        for column in self._read(nodes):
            # Renumbered column by column, so that the product of their sizes cannot overflow.
            _, dense = np.unique(codes * (int(column.max()) + 2) + column + 1, return_inverse=True)
            codes = dense.astype(np.int64)
        return codes

    def _read(self, nodes: NodeColumns) -> Iterable[Int64N]:
        for key in self.labels:
            yield nodes.label_values(key).astype(np.int64)
        for field in self.columns:
            yield _COLUMNS[field](nodes)


_COLUMNS: dict[str, Callable[[NodeColumns], Int64N]] = {
    "pods": lambda nodes: nodes.pod_count,
    "taints": lambda nodes: nodes.taint_set.astype(np.int64),
    "unschedulable": lambda nodes: nodes.unschedulable.astype(np.int64),
}
