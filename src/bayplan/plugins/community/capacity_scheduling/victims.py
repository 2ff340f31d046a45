"""Victims on a node when quotas count: the procedure of preemption with quotas beside the filters."""

from __future__ import annotations

from collections.abc import Collection

from bayplan.framework import NodeInfo, PodInfo, Status, Unschedulable
from bayplan.plugins.community.capacity_scheduling.quotas import Amounts, QuotaBook
from bayplan.preemption.budgets import Budgets
from bayplan.preemption.candidates import importance
from bayplan.preemption.node_trial import NodeTrial

__all__ = ["QuotaTrial", "find_quota_victims", "potential_victims"]

_EXCEEDED = Unschedulable("global quota max exceeded")


def potential_victims(
    book: QuotaBook, pod: PodInfo, claimed: Amounts, node: NodeInfo, leaving: Collection[str]
) -> list[PodInfo]:
    """The pods of the node that this one may evict, and those that leave anyway, which the book does not count; it is
    changed as if all had left.

    Of namespaces that lend, the least important pods come first, and none once the namespace is within its minimum.
    """
    pods = sorted(node.pods.values(), key=importance, reverse=True)
    if pod.namespace not in book:
        return [other for other in pods if other.namespace not in book and other.priority < pod.priority]
    victims = []
    is_borrowing = book.is_over_min(pod.namespace, claimed)
    for other in pods:
        if other.namespace not in book:
            continue
        if other.uid in leaving:
            victims.append(other)
            continue
        if is_borrowing:
            may_go = other.namespace == pod.namespace and other.priority < pod.priority
        else:
            may_go = other.namespace != pod.namespace and book.is_over_min(other.namespace)
        if may_go:
            book.remove(other)
            victims.append(other)
    return victims


class QuotaTrial:
    """A dry run on one node, with the book that belongs to it."""

    def __init__(
        self,
        room: NodeTrial,
        book: QuotaBook,
        pod: PodInfo,
        with_nominated: Amounts,
        of_all: Amounts,
        leaving: Collection[str],
    ) -> None:
        self.room = room
        self.book = book
        self._namespace = pod.namespace
        self._with_nominated = with_nominated
        self._of_all = of_all
        self._leaving = leaving

    def keeps_quota(self) -> bool:
        book, namespace = self.book, self._namespace
        if namespace not in book:
            return True
        return not book.is_over_max(namespace, self._with_nominated) and not book.is_total_over_min(self._of_all)

    def reprieves(self, victim: PodInfo) -> bool:
        """Whether a victim is reprieved: added again, the pod still fits and no quota is exceeded. Otherwise it is
        removed."""
        counts = victim.uid not in self._leaving
        self.room.add(victim)
        if counts:
            self.book.add(victim)
        if self.room.check() is None and self.keeps_quota():
            return True
        self.room.remove(victim)
        if counts:
            self.book.remove(victim)
        return False


def find_quota_victims(
    trial: QuotaTrial, victims: list[PodInfo], budgets: Budgets
) -> tuple[list[PodInfo], int] | Status:
    """The victims that remain after reprieve, and how many of them break a budget. The book is without them."""
    for victim in victims:
        trial.room.remove(victim)
    status = trial.room.check()
    if status is not None:
        return status
    if not trial.keeps_quota():
        return _EXCEEDED
    violating, others = budgets.split(sorted(victims, key=importance))
    broken = [victim for victim in violating if not trial.reprieves(victim)]
    left = broken + [victim for victim in others if not trial.reprieves(victim)]
    return sorted(left, key=importance), len(broken)
