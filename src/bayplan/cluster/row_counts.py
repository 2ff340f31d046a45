"""Counts by row, and their sums by topology value, moved one pod at a time.

Counting pods per zone needs the same sums again and again, with one pod more each time. A sum is computed once from all
rows and from then on follows every change; it is dropped when the values of the rows change.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bayplan.cluster.axes import Int32N, Rows

__all__ = ["DomainCounts", "DomainSums", "RowCounts"]

DomainCounts = npt.NDArray[np.float64]
"""By value id, with one place more at the end for rows that do not count; that one is always 0. Floats, because that is
what NumPy's weighted bincount gives; always whole."""

_MOST_SUMS = 4


class DomainSums:
    """The sums for one assignment of rows to values."""

    __slots__ = ("_counts", "bins", "shown", "total", "trash")

    def __init__(self, bins: Rows, trash: int, rows: Int32N) -> None:
        self.bins = bins
        self.trash = trash
        weights = rows[: len(bins)].astype(np.float64)
        self._counts: DomainCounts = np.bincount(bins, weights=weights, minlength=trash + 1).astype(np.float64)
        self._counts[trash] = 0.0
        self.total = int(self._counts.sum())
        """All of them together."""
        self.shown = self._counts.view()
        """Read-only and alive: it changes with the next pod."""
        self.shown.flags.writeable = False

    def move(self, row: int, by: int) -> None:
        if row < len(self.bins):
            domain = self.bins.item(row)
            if domain != self.trash:
                self._counts[domain] += by
                self.total += by


class RowCounts:
    """`rows[row]` pods on each row."""

    __slots__ = ("_sums", "rows")

    def __init__(self, capacity: int) -> None:
        self.rows: Int32N = np.zeros(capacity, dtype=np.int32)
        self._sums: list[DomainSums] = []

    def by_domain(self, bins: Rows, trash: int) -> DomainSums:
        """Sums by value, given each row's value id (`trash` for rows that do not count). Pass the very same `bins`
        array again to be answered at once."""
        for sums in self._sums:
            if sums.bins is bins:
                return sums
        if len(self._sums) >= _MOST_SUMS:
            del self._sums[0]
        self._sums.append(DomainSums(bins, trash, self.rows))
        return self._sums[-1]

    def sums(self) -> list[tuple[Rows, int, DomainCounts]]:
        """(bins, trash, sums by value) of everything that is kept up to date here."""
        return [(kept.bins, kept.trash, kept.shown) for kept in self._sums]

    # Written by the cache alone, by way of the indexes.

    def move(self, row: int, by: int) -> None:
        self.rows[row] += by
        for sums in self._sums:
            sums.move(row, by)

    def grow(self, capacity: int) -> None:
        more = np.zeros(capacity - len(self.rows), dtype=np.int32)
        self.rows = np.concatenate([self.rows, more])
