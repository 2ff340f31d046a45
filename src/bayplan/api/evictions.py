"""Disruption budgets as the eviction API applies them: what they cover, and what counts against them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

from bayplan.api.pod import Pod
from bayplan.api.selectors import NOTHING, Selector, SelectorError, compile_selector
from bayplan.api.workload import PodDisruptionBudget

__all__ = ["EvictionBudget", "Exceeded", "exceeded_budgets"]


class EvictionBudget:
    """One budget as its status has it now. An empty selector covers the whole namespace."""

    def __init__(self, budget: PodDisruptionBudget) -> None:
        self.key = budget.key
        self.namespace = budget.namespace
        self.selector = _selector(budget)
        self.allowed = budget.status.disruptions_allowed
        always = budget.spec.unhealthy_pod_eviction_policy == "AlwaysAllow"
        self.spares_unready = always or 0 < budget.status.desired_healthy <= budget.status.current_healthy
        """Whether pods that are not ready go without a disruption."""
        self._evicted: Collection[str] = budget.status.disrupted_pods or ()
        """Names of pods whose evictions are counted already."""

    def covers(self, pod: Pod) -> bool:
        is_guarded = pod.status.phase != "Pending"
        return is_guarded and self.namespace == pod.namespace and self.selector.matches(pod.labels)

    def counts(self, pod: Pod) -> bool:
        """Whether an eviction of the pod is a disruption."""
        is_spared = pod.name in self._evicted or (pod.is_unready and self.spares_unready)
        return not is_spared and self.covers(pod)


class Exceeded(NamedTuple):
    budget: str
    allowed: int
    leaving: int


def exceeded_budgets(budgets: Iterable[PodDisruptionBudget], leaving: Collection[Pod]) -> list[Exceeded]:
    """Budgets that allow fewer disruptions than these pods are, if all of them leave at once."""
    each = map(EvictionBudget, budgets)
    counted = (Exceeded(one.key, one.allowed, sum(one.counts(pod) for pod in leaving)) for one in each)
    return [found for found in counted if found.leaving > found.allowed]


def _selector(budget: PodDisruptionBudget) -> Selector:
    """One that does not parse covers no pod; the other budgets stay in force."""
    try:
        return compile_selector(budget.spec.selector)
    except SelectorError:
        return NOTHING
