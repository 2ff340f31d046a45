"""Disruption budgets as the eviction API applies them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from bayplan.api.evictions import exceeded_budgets
from bayplan.api.pod import Pod
from bayplan.api.workload import PodDisruptionBudget

WEB = {"matchLabels": {"app": "web"}}
NOT_READY = [{"type": "Ready", "status": "False"}]


def web(name: str = "web", *, namespace: str = "default", **status: Any) -> Pod:
    metadata = {"name": name, "namespace": namespace, "labels": {"app": "web"}}
    return msgspec.convert({"metadata": metadata, "status": {"phase": "Running", **status}}, Pod)


def budget(selector: Any = WEB, policy: str = "", **status: Any) -> PodDisruptionBudget:
    spec = {"selector": selector} | ({"unhealthyPodEvictionPolicy": policy} if policy else {})
    document = {"metadata": {"name": "keep", "namespace": "default"}, "spec": spec, "status": status}
    return msgspec.convert(document, PodDisruptionBudget)


@pytest.mark.parametrize(
    ("given", "pods", "expected"),
    [
        (budget(disruptionsAllowed=1), [web()], []),
        (budget(disruptionsAllowed=1), [web("a"), web("b")], [("default/keep", 1, 2)]),
        (budget(), [web()], [("default/keep", 0, 1)]),
        (budget({}), [web()], [("default/keep", 0, 1)]),
        (budget(None), [web()], []),
        (budget({"matchLabels": {"app": "other"}}), [web()], []),
        (budget({"matchExpressions": [{"key": "app", "operator": "Like"}]}), [web()], []),
        (budget(), [web(namespace="others")], []),
        (budget(), [web(phase="Pending")], []),
        (budget(disruptedPods={"web": "2026-01-01T00:00:00Z"}), [web()], []),
        (budget(), [web(conditions=NOT_READY)], [("default/keep", 0, 1)]),
        (budget(policy="AlwaysAllow"), [web(conditions=NOT_READY)], []),
        (budget(currentHealthy=2, desiredHealthy=2), [web(conditions=NOT_READY)], []),
        (budget(currentHealthy=1, desiredHealthy=2), [web(conditions=NOT_READY)], [("default/keep", 0, 1)]),
    ],
)
def test_budgets_that_allow_fewer_disruptions_than_leave_are_found(
    given: PodDisruptionBudget, pods: list[Pod], expected: list[tuple[str, int, int]]
) -> None:
    assert exceeded_budgets([given], pods) == expected
