"""Disruption budgets that pods exceed which leave at once."""

from __future__ import annotations

import msgspec

from bayplan.api.workload import PodDisruptionBudget
from bayplan.explain.whatif.disruption import budgets_exceeded_by
from bayplan.observe.time_slices import at_once
from bayplan.testing import Harness, pod


def budget(name: str, namespace: str = "default", allowed: int = 0) -> PodDisruptionBudget:
    document = {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"selector": {"matchLabels": {"app": "web"}}},
        "status": {"disruptionsAllowed": allowed},
    }
    return msgspec.convert(document, PodDisruptionBudget)


WEB = [pod(f"web-{place}", node="n1", labels={"app": "web"}) for place in range(2)]


def test_budgets_of_the_namespaces_of_the_pods_are_compared_with_how_many_leave() -> None:
    harness = Harness(objects=[budget("b"), budget("a", allowed=1), budget("c", allowed=2), budget("d", "others")])

    assert at_once(budgets_exceeded_by(harness.cluster, WEB)) == [("default/a", 1, 2), ("default/b", 0, 2)]
    assert at_once(budgets_exceeded_by(harness.cluster, [])) == []


def test_thousands_of_budgets_of_one_user_are_read_in_slices() -> None:
    harness = Harness(objects=[budget(f"b{place}") for place in range(2000)])

    assert sum(1 for _ in budgets_exceeded_by(harness.cluster, WEB)) == 10
