"""Verdict columns: the verdicts of one plugin on every node, as small numbers with one Status each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from bayplan.cluster.axes import BoolN
from bayplan.framework.status import SUCCESS, Status

__all__ = ["Ids", "StatusTable", "Verdicts", "no_rejections"]

Ids = npt.NDArray[np.integer[Any]]
"""Of any width."""


@lru_cache(maxsize=4)
def no_rejections(length: int) -> Ids:
    """A column that lets every node pass; read-only, because all that ask for it share it."""
    ids: Ids = np.zeros(length, dtype=np.int32)
    ids.flags.writeable = False
    return ids


class Verdicts:
    """`ids[position]` is 0 where the node passes, otherwise a number that `status` turns into a Status."""

    __slots__ = ("accepts_all", "ids", "status")

    def __init__(self, ids: Ids, status: Callable[[int], Status], *, accepts_all: bool = False) -> None:
        self.ids = ids
        self.status = status
        self.accepts_all = accepts_all
        """Whether every node passes, known without reading `ids`."""

    @classmethod
    def reject(cls, mask: BoolN, status: Status) -> Verdicts:
        """Rejected with one status where the mask is set, passed elsewhere."""
        return cls(mask.astype(np.int32), (SUCCESS, status).__getitem__)

    @classmethod
    def of(cls, ids: npt.NDArray[np.integer], statuses: Sequence[Status]) -> Verdicts:
        """Numbers into a list of statuses; place 0 stands for passing."""
        return cls(ids.astype(np.int32, copy=False), statuses.__getitem__)

    @classmethod
    def accept(cls, length: int) -> Verdicts:
        return cls(no_rejections(length), (SUCCESS,).__getitem__, accepts_all=True)


class StatusTable:
    """Numbers statuses as they come up; how one-node answers become a column."""

    __slots__ = ("_ids", "_statuses")

    def __init__(self) -> None:
        self._statuses: list[Status] = [SUCCESS]
        self._ids: dict[Status, int] = {SUCCESS: 0}

    def __len__(self) -> int:
        return len(self._statuses)

    def number(self, status: Status | None) -> int:
        if status is None or status.is_success:
            return 0
        number = self._ids.get(status)
        if number is None:
            number = self._ids[status] = len(self._statuses)
            self._statuses.append(status)
        return number

    def status(self, number: int) -> Status:
        return self._statuses[number]
