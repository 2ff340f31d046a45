"""What the pods of each namespace use together, kept as pods come and go: what quotas are held against."""

from __future__ import annotations

from collections.abc import Mapping

from bayplan.api.requests import Amounts
from bayplan.cluster.pod_info import PodInfo

__all__ = ["NamespaceUsage", "Used"]


class Used:
    """The sum over one namespace, by name of resource: quotas may name what no node offers."""

    __slots__ = ("amounts", "pod_count")

    def __init__(self) -> None:
        self.amounts: Amounts = {}
        self.pod_count = 0


_NOTHING = Used()


class NamespaceUsage:
    def __init__(self) -> None:
        self._by_namespace: dict[str, Used] = {}

    def of(self, namespace: str) -> Used:
        """What the assigned pods of a namespace use, assumed ones included."""
        return self._by_namespace.get(namespace, _NOTHING)

    def all(self) -> Mapping[str, Used]:
        return self._by_namespace

    # Written by the cache alone.

    def add(self, pod: PodInfo) -> None:
        used = self._by_namespace.get(pod.namespace)
        if used is None:
            used = self._by_namespace[pod.namespace] = Used()
        used.pod_count += 1
        amounts = used.amounts
        for name, amount in pod.shape.counted.items():
            amounts[name] = amounts.get(name, 0) + amount

    def remove(self, pod: PodInfo) -> None:
        used = self._by_namespace[pod.namespace]
        used.pod_count -= 1
        if not used.pod_count:
            del self._by_namespace[pod.namespace]
            return
        amounts = used.amounts
        for name, amount in pod.shape.counted.items():
            amounts[name] -= amount
            if not amounts[name]:
                del amounts[name]
