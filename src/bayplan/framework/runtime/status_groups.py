"""The distinct numbers of a verdict column, and the rows behind each status.

A column of thousands of nodes holds a handful of statuses, so peeling off one number after the other takes a fraction
of the time of a sort.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bayplan.cluster.axes import BoolN, Rows
from bayplan.framework.status import Status
from bayplan.framework.verdicts import Ids

__all__ = ["distinct", "group_by_status"]

_HANDFUL = 12
_FEW_ROWS = 256
"""Up to so many numbers, a dictionary is quicker than passes over the column."""


def distinct(ids: Ids) -> list[int]:
    """Every number other than 0, each once: by their first places where they are a handful, else in order."""
    if len(ids) <= _FEW_ROWS:
        few = [number for number in dict.fromkeys(ids.tolist()) if number]
        return few if len(few) < _HANDFUL else sorted(few)
    found: list[int] = []
    left = ids != 0
    while len(found) < _HANDFUL:
        if not np.count_nonzero(left):
            return found
        first = int(left.argmax())
        found.append(int(ids[first]))
        left &= ids != found[-1]
    return [number for number in np.unique(ids).tolist() if number]


def group_by_status(rows: Rows, ids: Ids, status: Callable[[int], Status]) -> list[tuple[Status, Rows]]:
    """The rows behind each status, given the number of each row. Two numbers may stand for one status."""
    numbers = distinct(ids)
    if len(numbers) == 1:
        return [(status(numbers[0]), rows)]
    masks: dict[Status, BoolN] = {}
    for number in numbers:
        said, mask = status(number), ids == number
        masks[said] = masks[said] | mask if said in masks else mask
    return [(said, rows[mask]) for said, mask in masks.items()]
