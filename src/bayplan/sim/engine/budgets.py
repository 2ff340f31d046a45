"""Disruption budgets of a simulated cluster: their status follows the pods, as the disruption controller has it.

A pod counts as healthy from its binding until its deletion is requested, unless a dump says that it is not ready. Pods
that are there or wait are the ones that are expected, since controllers replace lost ones at once here. A budget that
states neither `minAvailable` nor `maxUnavailable` keeps the status that it was given.
"""

from __future__ import annotations

import math

import msgspec

from bayplan.api.meta import KubeObject
from bayplan.api.pod import Pod
from bayplan.api.selectors import NOTHING, Selector, SelectorError, compile_selector
from bayplan.api.workload import PodDisruptionBudget
from bayplan.sim.engine.world import World, WorldListener

__all__ = ["SimulatedBudgets"]

_replace = msgspec.structs.replace


class _Budget:
    """One budget, and the pods that it covers."""

    def __init__(self, item: PodDisruptionBudget) -> None:
        self.item = item
        self.selector = _selector(item)
        self.pods: dict[str, bool] = {}
        """By uid, whether the pod is healthy."""

    def covers(self, pod: Pod) -> bool:
        return pod.namespace == self.item.namespace and self.selector.matches(pod.labels)

    def allowed(self) -> int:
        """How many of the pods may be disrupted now."""
        desired = self._desired()
        if desired is None:
            return self.item.status.disruptions_allowed
        return max(0, sum(self.pods.values()) - desired) if self.pods else 0

    def permits(self, pod: Pod) -> bool:
        """Pods that are not ready go without a disruption where the budget is whole, or says so."""
        if self.allowed() > 0:
            return True
        desired, status = self._desired(), self.item.status
        healthy = sum(self.pods.values()) if desired is not None else status.current_healthy
        is_whole = 0 < (status.desired_healthy if desired is None else desired) <= healthy
        return pod.is_unready and (is_whole or self.item.spec.unhealthy_pod_eviction_policy == "AlwaysAllow")

    def _desired(self) -> int | None:
        """How many should be healthy; None where the budget does not say."""
        spec, expected = self.item.spec, len(self.pods)
        if spec.max_unavailable is not None:
            return max(0, expected - _absolute(spec.max_unavailable, expected))
        return None if spec.min_available is None else _absolute(spec.min_available, expected)


class SimulatedBudgets(WorldListener):
    """Keeps the status of every budget of a world up to date."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._budgets: dict[tuple[str, str], _Budget] = {}

    def permits(self, pod: Pod) -> bool:
        """Whether the eviction API would let the pod go now. It refuses pods with two budgets, once they run."""
        if pod.status.phase == "Pending":
            return True
        covering = [budget for budget in self._budgets.values() if pod.uid in budget.pods]
        return not covering or (len(covering) == 1 and covering[0].permits(pod))

    def object_changed(self, old: KubeObject | None, new: KubeObject | None) -> None:
        if isinstance(new, PodDisruptionBudget):
            budget = self._budgets.get((new.namespace, new.name))
            if budget is not None and budget.item is new:
                return
            self._budgets[new.namespace, new.name] = budget = _Budget(new)
            self._count(budget)
        elif isinstance(old, PodDisruptionBudget):
            self._budgets.pop((old.namespace, old.name), None)

    def recount(self) -> None:
        """Count anew, after pods were put into the world without notifications."""
        for budget in list(self._budgets.values()):
            self._count(budget)

    def _count(self, budget: _Budget) -> None:
        found = [pod for pod in self._world.pods.values() if budget.covers(pod)]
        budget.pods = {pod.uid: _is_healthy(pod) for pod in found}
        self._write(budget)

    def pod_arrived(self, pod: Pod) -> None:
        self._set(pod, is_healthy=False)

    def pod_bound(self, pod: Pod) -> None:
        self._set(pod, is_healthy=True)

    def pod_deleted(self, pod: Pod) -> None:
        self._set(pod, is_healthy=False)

    def _set(self, pod: Pod, *, is_healthy: bool) -> None:
        for budget in list(self._budgets.values()):
            if budget.covers(pod):
                budget.pods[pod.uid] = is_healthy
                self._write(budget)

    def pod_gone(self, pod: Pod, reason: str) -> None:
        for budget in list(self._budgets.values()):
            if budget.pods.pop(pod.uid, None) is not None:
                self._write(budget)

    def _write(self, budget: _Budget) -> None:
        item, allowed = budget.item, budget.allowed()
        if allowed != item.status.disruptions_allowed:
            budget.item = _replace(item, status=_replace(item.status, disruptions_allowed=allowed))
            self._world.put(budget.item)


def _is_healthy(pod: Pod) -> bool:
    return bool(pod.spec.node_name) and pod.metadata.deletion_timestamp is None and not pod.is_unready


def _selector(item: PodDisruptionBudget) -> Selector:
    """One that does not parse matches no pod; the other budgets stay in force."""
    try:
        return compile_selector(item.spec.selector)
    except SelectorError:
        return NOTHING


def _absolute(value: int | str, total: int) -> int:
    """A number, or a percentage of a total, rounded up as the disruption controller does."""
    if isinstance(value, str):
        digits = value.removesuffix("%")
        share = int(digits) if digits.isdecimal() else 0
        return math.ceil(share * total / 100) if value.endswith("%") else share
    return value
