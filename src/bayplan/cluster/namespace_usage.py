"""What the pods of each namespace use together, kept as pods come and go: what quotas are held against."""

from __future__ import annotations

from collections import deque
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

    def count(self, pod: PodInfo, sign: int) -> None:
        self.pod_count += sign
        amounts = self.amounts
        for name, amount in pod.shape.counted.items():
            left = amounts.get(name, 0) + sign * amount
            if left:
                amounts[name] = left
            else:
                amounts.pop(name, None)


_NOTHING = Used()
_MOST_GROUPS = 4


class NamespaceUsage:
    def __init__(self) -> None:
        self._by_namespace: dict[str, Used] = {}
        self._groups: deque[tuple[frozenset[str], Used]] = deque(maxlen=_MOST_GROUPS)
        """Namespaces of which somebody asked for the sum, latest last."""

    def of(self, namespace: str) -> Used:
        """What the assigned pods of a namespace use, assumed ones included."""
        return self._by_namespace.get(namespace, _NOTHING)

    def all(self) -> Mapping[str, Used]:
        return self._by_namespace

    def together(self, namespaces: frozenset[str]) -> Used:
        """The sum over some namespaces: computed once, and followed while the very same set is asked about."""
        for group, used in self._groups:
            if group is namespaces:
                return used
        total = Used()
        for namespace in namespaces & self._by_namespace.keys():
            used = self._by_namespace[namespace]
            total.pod_count += used.pod_count
            for name, amount in used.amounts.items():
                total.amounts[name] = total.amounts.get(name, 0) + amount
        self._groups.append((namespaces, total))
        return total

    # Written by the cache alone.

    def add(self, pod: PodInfo) -> None:
        used = self._by_namespace.get(pod.namespace)
        if used is None:
            used = self._by_namespace[pod.namespace] = Used()
        used.count(pod, 1)
        if self._groups:
            self._follow(pod, 1)

    def remove(self, pod: PodInfo) -> None:
        used = self._by_namespace[pod.namespace]
        used.count(pod, -1)
        if not used.pod_count:
            del self._by_namespace[pod.namespace]
        if self._groups:
            self._follow(pod, -1)

    def _follow(self, pod: PodInfo, sign: int) -> None:
        for namespaces, used in self._groups:
            if pod.namespace in namespaces:
                used.count(pod, sign)
