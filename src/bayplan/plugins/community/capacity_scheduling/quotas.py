"""Quotas and their use in one cycle: a book that a dry run may copy and change.

Amounts are by name of resource; pods themselves count under `PODS`. A resource that no quota guarantees is not lent or
borrowed; of one that some quota guarantees, a quota that does not name it guarantees none. A maximum that is not stated
is no limit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from bayplan.framework import PodInfo
from bayplan.framework.columns import NamespaceUsage, is_counted
from bayplan.framework.objects import Amounts, Quantity, to_amounts
from bayplan.plugins.community.capacity_scheduling.elastic_quota import ElasticQuota

__all__ = ["PODS", "Amounts", "Quota", "QuotaBook", "QuotaReader", "Quotas", "amounts_of", "summed"]

PODS = "pods"


class Quota(NamedTuple):
    namespace: str
    guaranteed: Amounts
    most: Amounts


class Quotas(dict[str, Quota]):
    """By namespace, with what they guarantee together."""

    def __init__(self, quotas: Mapping[str, Quota], guaranteed: Amounts) -> None:
        super().__init__(quotas)
        self.guaranteed = guaranteed
        self.namespaces = frozenset(quotas)


class QuotaReader:
    """Reads the quotas of a cluster; an object that did not change is neither read nor added up again."""

    def __init__(self) -> None:
        self._read: dict[str, tuple[ElasticQuota, Quota]] = {}
        self._counted: dict[str, Quota] = {}
        self._guaranteed: Amounts = {}
        self._guarantors: Counter[str] = Counter()
        """How many quotas guarantee a resource."""

    def read(self, items: Iterable[ElasticQuota]) -> Quotas:
        """Of several in one namespace the first by name counts."""
        self._read = {item.key: (item, self._quota(item)) for item in items}
        quotas: dict[str, Quota] = {}
        for _, (item, quota) in sorted(self._read.items()):
            quotas.setdefault(item.namespace, quota)
        for namespace in self._counted.keys() | quotas.keys():
            before, now = self._counted.get(namespace), quotas.get(namespace)
            if before is not now:
                self._count(before, -1)
                self._count(now, 1)
        self._counted = quotas
        return Quotas(quotas, dict(self._guaranteed))

    def _count(self, quota: Quota | None, sign: int) -> None:
        for name, amount in quota.guaranteed.items() if quota is not None else ():
            self._guarantors[name] += sign
            self._guaranteed[name] = self._guaranteed.get(name, 0) + sign * amount
            if not self._guarantors[name]:
                del self._guarantors[name], self._guaranteed[name]

    def _quota(self, item: ElasticQuota) -> Quota:
        known = self._read.get(item.key)
        if known is not None and known[0] is item:
            return known[1]
        return Quota(item.namespace, _limits(item.spec.min), _limits(item.spec.max))


def _limits(quantities: Mapping[str, Quantity] | None) -> Amounts:
    return {name: amount for name, amount in to_amounts(quantities).items() if name == PODS or is_counted(name)}


def amounts_of(pod: PodInfo) -> Amounts:
    """The amounts that the pod counts for."""
    return pod.shape.counted | {PODS: 1}


def summed(first: Amounts, second: Amounts) -> Amounts:
    return first | {name: first.get(name, 0) + amount for name, amount in second.items()}


class QuotaBook:
    """Use by namespace, read when first asked for: most pods ask about one namespace or none. `add` and `remove` change
    it; `clone` gives a dry run a book of its own."""

    def __init__(
        self,
        quotas: Quotas,
        usage: NamespaceUsage,
        noted: Mapping[str, Amounts] | None = None,
        moved: Mapping[str, int] | None = None,
    ) -> None:
        self.quotas = quotas
        self._usage = usage
        self._moved: Amounts = dict(moved or {})
        """How much more, or less, all quotas together use than the pods of the cluster."""
        self._noted: dict[str, Amounts] = {name: dict(amounts) for name, amounts in (noted or {}).items()}
        self._guaranteed = quotas.guaranteed

    def clone(self) -> QuotaBook:
        return QuotaBook(self.quotas, self._usage, self._noted, self._moved)

    def _used(self, namespace: str) -> Amounts:
        noted = self._noted.get(namespace)
        if noted is None:
            found = self._usage.of(namespace)
            noted = self._noted[namespace] = dict(found.amounts) | {PODS: found.pod_count}
        return noted

    def _everywhere(self, name: str) -> int:
        """What all quotas together use of a resource."""
        found = self._usage.together(self.quotas.namespaces)
        return (found.pod_count if name == PODS else found.amounts.get(name, 0)) + self._moved.get(name, 0)

    def __contains__(self, namespace: str) -> bool:
        return namespace in self.quotas

    def add(self, pod: PodInfo) -> None:
        self._count(pod, 1)

    def remove(self, pod: PodInfo) -> None:
        self._count(pod, -1)

    def _count(self, pod: PodInfo, sign: int) -> None:
        if pod.namespace in self.quotas:
            used = self._used(pod.namespace)
            for name, amount in amounts_of(pod).items():
                used[name] = used.get(name, 0) + sign * amount
                self._moved[name] = self._moved.get(name, 0) + sign * amount

    def is_over_max(self, namespace: str, more: Amounts) -> bool:
        """Whether the additional amounts would exceed the namespace's maximum in one of their resources."""
        used, most = self._used(namespace), self.quotas[namespace].most
        return any(name in most and used.get(name, 0) + amount > most[name] for name, amount in more.items())

    def room_for(self, namespace: str, more: Amounts) -> tuple[Amounts, Amounts]:
        """What the namespace's minimum and maximum would have to be at least for the additional amounts."""
        used, quota = self._used(namespace), self.quotas[namespace]
        wanted = {name: used.get(name, 0) + amount for name, amount in more.items()}
        most = {name: amount for name, amount in wanted.items() if amount > quota.most.get(name, amount)}
        least: Amounts = {}
        for name, amount in more.items():
            everything = self._everywhere(name) + amount
            if everything > self._guaranteed.get(name, everything):
                least[name] = quota.guaranteed.get(name, 0) + everything - self._guaranteed[name]
        return least, most

    def is_over_min(self, namespace: str, more: Amounts | None = None) -> bool:
        """Whether the namespace, with the additional amounts, uses more than its minimum of some resource."""
        used, own = self._used(namespace), self.quotas[namespace].guaranteed
        if more is None:
            return any(used.get(name, 0) > own.get(name, 0) for name in self._guaranteed)
        return any(
            used.get(name, 0) + amount > own.get(name, 0) for name, amount in more.items() if name in self._guaranteed
        )

    def is_total_over_min(self, more: Amounts) -> bool:
        """Whether all quotas together would use more than the sum of their minimums."""
        return any(
            self._everywhere(name) + amount > self._guaranteed[name]
            for name, amount in more.items()
            if name in self._guaranteed
        )
