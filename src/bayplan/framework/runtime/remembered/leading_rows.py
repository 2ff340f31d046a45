"""The rows with the highest total, kept from one decision to the next.

Among thousands of nodes that are alike nearly all tie, and finding them is the dearest single step of a decision. Where
few totals changed since the last one, the rows that led still do, but for those.
"""

from __future__ import annotations

from bayplan.cluster.axes import Rows
from bayplan.framework.promises import Totals

__all__ = ["LeadingRows", "best_of"]


class LeadingRows:
    """Call `move` for every total that changes while there are `rows`, or `forget` after changes of many."""

    __slots__ = ("_total", "rows")

    def __init__(self) -> None:
        self.rows: Rows | None = None
        """As of the last `among`; None where they are not known any more."""
        self._total = 0

    def among(self, totals: Totals) -> tuple[int, Rows]:
        """The highest of these totals and the rows that have it, in order; valid until the next change."""
        rows = self.rows
        if rows is None:
            self._total, rows = best_of(totals)
            self.rows = rows
        return self._total, rows

    def forget(self) -> None:
        self.rows = None

    def move(self, row: int, was: int, now: int) -> None:
        """The total of a row changed."""
        rows = self.rows
        if was == now or rows is None:
            return
        if now >= self._total or (was == self._total and len(rows) == 1):
            self.rows = None
        elif was == self._total:
            place = int(rows.searchsorted(row))
            rows[place:-1] = rows[place + 1 :]
            self.rows = rows[:-1]


def best_of(totals: Totals) -> tuple[int, Rows]:
    """The highest of some totals and the places that have it."""
    highest = totals[totals.argmax()]
    # The method takes a third of the time of `np.flatnonzero`.
    return int(highest), (totals == highest).nonzero()[0]
