"""Disruption budgets: which victims, evicted in order of importance, would break one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from bayplan.api.meta import LabelSelector
from bayplan.api.selectors import NOTHING, Selector, SelectorError, compile_selector
from bayplan.api.workload import PodDisruptionBudget
from bayplan.cluster.axes import Rows
from bayplan.cluster.pod_info import PodInfo
from bayplan.preemption.victim_columns import Slots, VictimColumns

__all__ = ["Budgets"]


class Budgets:
    """The budgets of the cluster at one moment."""

    def __init__(self, budgets: Iterable[PodDisruptionBudget]) -> None:
        self._budgets: list[tuple[PodDisruptionBudget, Selector]] = [
            (budget, selector)
            for budget, selector in ((b, _readable(b.spec.selector)) for b in budgets)
            if selector.requirements
        ]
        self._by_class: dict[tuple[str, int], list[int]] = {}

    def __bool__(self) -> bool:
        return bool(self._budgets)

    def covering(self, pod: PodInfo) -> list[int]:
        """Positions of the budgets whose selector matches the pod; computed once per namespace and shape."""
        key = (pod.namespace, pod.shape.number)
        found = self._by_class.get(key)
        if found is None:
            found = self._by_class[key] = [
                place
                for place, (budget, selector) in enumerate(self._budgets)
                if pod.labels and budget.namespace == pod.namespace and selector.matches(pod.labels)
            ]
        return found

    def breaking(self, columns: VictimColumns, rows: Rows, lower: Slots) -> Slots | None:
        """`split` for many nodes at once: the pods that would break a budget; None if there are none."""
        width = len(rows)
        covered: dict[int, list[int]] = {}
        for position, row in enumerate(rows.tolist()):
            for slot, pod in enumerate(columns.pods[row]):
                for place in self.covering(pod):
                    if pod.name not in (self._budgets[place][0].status.disrupted_pods or ()):
                        covered.setdefault(place, []).append(slot * width + position)
        found: Slots | None = None
        for place, entries in covered.items():
            mask = np.zeros_like(lower)
            mask.reshape(-1)[entries] = True
            mask &= lower
            breaks = mask & (mask.cumsum(axis=0) > self._budgets[place][0].status.disruptions_allowed)
            found = breaks if found is None else found | breaks
        return found if found is not None and found.any() else None

    def split(self, pods: Sequence[PodInfo]) -> tuple[list[PodInfo], list[PodInfo]]:
        """Pods that would break a budget if all were evicted in this order, and the others."""
        allowed = [budget.status.disruptions_allowed for budget, _ in self._budgets]
        violating: list[PodInfo] = []
        others: list[PodInfo] = []
        for pod in pods:
            breaks = False
            for place in self.covering(pod):
                if pod.name in (self._budgets[place][0].status.disrupted_pods or {}):
                    continue
                allowed[place] -= 1
                breaks |= allowed[place] < 0
            (violating if breaks else others).append(pod)
        return violating, others


def _readable(selector: LabelSelector | None) -> Selector:
    """A budget's selector. One that does not parse matches no pod; the other budgets stay in force."""
    try:
        return compile_selector(selector)
    except SelectorError:
        return NOTHING
