"""How fast this machine is right now, in a loop that never changes.

Half of it is plain Python (calls, attributes, dictionaries), half is NumPy over columns of five thousand rows: the mix
of a decision. Costs divided by it can be compared between machines, and between a quiet and a busy hour of one machine.
"""

from __future__ import annotations

import time

import numpy as np

__all__ = ["REFERENCE_SECONDS", "calibrate"]

REFERENCE_SECONDS = 0.0047
"""CPU time of one loop on the machine of the published figures, otherwise idle."""

_PYTHON_STEPS = 20_000
_NUMPY_STEPS = 120
_ROWS = 5_000


class _Counter:
    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0

    def add(self, amount: int) -> int:
        self.value += amount
        return self.value


def calibrate(rounds: int = 5) -> float:
    """CPU seconds of the loop: the median of some rounds."""
    return sorted(_once() for _ in range(rounds))[rounds // 2]


def _once() -> float:
    before = time.process_time()
    _python_part()
    _numpy_part()
    return time.process_time() - before


def _python_part() -> int:
    counter, known = _Counter(), {}
    for step in range(_PYTHON_STEPS):
        known[step & 255] = counter.add(step & 3)
    return len(known)


def _numpy_part() -> int:
    used = np.arange(_ROWS, dtype=np.int64) % 977
    total = 0
    for step in range(_NUMPY_STEPS):
        free = 1000 - used - step
        scores = (free * 100.0 / 1000).astype(np.int64)
        total += int(scores.argmax()) + int((scores > 50).sum())
    return total
