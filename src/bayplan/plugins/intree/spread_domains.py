"""Required topology spread: matching pods per domain of each constraint, and how a dry run moves them."""

from __future__ import annotations

import numpy as np

from bayplan.cluster.row_counts import DomainCounts
from bayplan.plugins.intree.spread_constraints import Constraint
from bayplan.plugins.intree.spread_counts import Inclusion

__all__ = ["CountedDomains", "HardSpread"]


class CountedDomains:
    """Matching pods per domain of one constraint, with the two lowest domains kept as kube-scheduler keeps them.

    After a dry run moved counts, the minimum comes from these two slots alone; that approximation is deliberate.
    """

    __slots__ = ("constraint", "counts", "inclusion", "slots")

    def __init__(self, constraint: Constraint, inclusion: Inclusion, counts: DomainCounts) -> None:
        self.constraint = constraint
        self.inclusion = inclusion
        self.counts = counts
        self.slots: list[list[float]] | None = None

    def copy(self) -> CountedDomains:
        twin = CountedDomains(self.constraint, self.inclusion, self.counts.copy())
        twin.slots = None if self.slots is None else [list(slot) for slot in self.slots]
        return twin

    def minimum(self) -> float:
        if self.inclusion.domains < self.constraint.min_domains:
            return 0.0
        if self.slots is not None:
            return self.slots[0][1]
        if not self.inclusion.domains:
            return float(2**31 - 1)
        counts = self.counts[: self.inclusion.trash]
        if self.inclusion.domains < self.inclusion.trash:
            counts = counts[self.inclusion.registered]
        return float(counts.min())

    def move(self, domain: int, by: int) -> None:
        if self.slots is None:
            self.slots = self._lowest_two()
        self.counts[domain] += by
        _update(self.slots, domain, float(self.counts[domain]))

    def _lowest_two(self) -> list[list[float]]:
        domains = np.flatnonzero(self.inclusion.registered)
        lowest = domains[np.argsort(self.counts[domains], kind="stable")[:2]]
        slots = [[float(domain), float(self.counts[domain])] for domain in lowest]
        return slots + [[-1.0, float(2**31 - 1)]] * (2 - len(slots))


def _update(slots: list[list[float]], domain: int, count: float) -> None:
    if slots[0][0] == domain:
        slots[0][1] = count
    elif slots[1][0] == domain:
        slots[1][1] = count
    elif count < slots[0][1]:
        slots[1], slots[0] = slots[0], [domain, count]
        return
    elif count < slots[1][1]:
        slots[1] = [domain, count]
        return
    if slots[0][1] > slots[1][1]:
        slots[0], slots[1] = slots[1], slots[0]


class HardSpread:
    __slots__ = ("domains",)

    def __init__(self, domains: list[CountedDomains]) -> None:
        self.domains = domains

    def clone(self) -> HardSpread:
        return HardSpread([domain.copy() for domain in self.domains])
