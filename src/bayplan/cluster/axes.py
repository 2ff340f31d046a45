"""The letters of the axes, once: N nodes (rows), R resources, D domains (values of a topology key)."""

from __future__ import annotations

from typing import NewType

import numpy as np
import numpy.typing as npt

__all__ = ["ABSENT", "BoolN", "FloatRN", "Int32N", "Int64N", "Int64RN", "NodeRow", "Rows"]

NodeRow = NewType("NodeRow", int)
"""The place of a node in every column. Rows of deleted nodes are used again."""

Int64N = npt.NDArray[np.int64]
Int32N = npt.NDArray[np.int32]
BoolN = npt.NDArray[np.bool_]
Int64RN = npt.NDArray[np.int64]
FloatRN = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]

ABSENT = -1
"""The value id of a node that lacks the label."""
