"""Which disruption budgets of a cluster allow fewer pods to leave than would leave at once."""

from __future__ import annotations

from collections.abc import Iterable

from bayplan.api.evictions import Exceeded, exceeded_budgets
from bayplan.api.pod import Pod
from bayplan.api.workload import PodDisruptionBudget
from bayplan.cluster.state import ClusterState
from bayplan.observe.time_slices import Work

__all__ = ["budgets_exceeded_by"]

_AT_ONCE = 200


def budgets_exceeded_by(cluster: ClusterState, leaving: Iterable[Pod]) -> Work[list[Exceeded]]:
    """In the order of their names. A user may have thousands of budgets: a few are looked at in each slice of time."""
    by_namespace: dict[str, list[Pod]] = {}
    for pod in leaving:
        by_namespace.setdefault(pod.namespace, []).append(pod)
    found: list[Exceeded] = []
    for namespace, pods in by_namespace.items():
        budgets = list(cluster.objects.list(PodDisruptionBudget, namespace))
        for start in range(0, len(budgets), _AT_ONCE):
            found += exceeded_budgets(budgets[start : start + _AT_ONCE], pods)
            yield
    return sorted(found)
