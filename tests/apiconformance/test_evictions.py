"""Evictions and the budgets that may refuse them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.apiconformance.client import Answer, ApiClient, Json, pod

LABELS = {"app": "x"}
READY = {"type": "Ready", "status": "True"}


@pytest.fixture
def budgets(namespace: str) -> str:
    return f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets"


def running(api: ApiClient, pods: str, name: str, *, is_ready: bool = True, labels: Json | None = None) -> None:
    body = pod(name, nodeName="n1")
    body["metadata"]["labels"] = LABELS if labels is None else labels
    api.create(pods, body)
    conditions = [READY | {"status": str(is_ready)}]
    assert api.patch(f"{pods}/{name}/status", {"status": {"phase": "Running", "conditions": conditions}}).status == 200


def set_counts(api: ApiClient, budgets: str, *, allowed: int, healthy: int, desired: int) -> None:
    counted = {"observedGeneration": api.get(f"{budgets}/b").body["metadata"]["generation"], "expectedPods": 2}
    counted |= {"disruptionsAllowed": allowed, "currentHealthy": healthy, "desiredHealthy": desired}
    assert api.patch(f"{budgets}/b/status", {"status": counted}).status == 200


def budget(selector: Json, name: str = "b", **spec: Any) -> Json:
    return {"metadata": {"name": name}, "spec": {"minAvailable": 1, "selector": selector, **spec}}


def evict(api: ApiClient, pods: str, name: str, **options: Any) -> Answer:
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}, **options}
    return api.post(f"{pods}/{name}/eviction", body)


@pytest.mark.parametrize("version", ["policy/v1", "policy/v1beta1"])
def test_clients_older_than_the_group_s_first_version_evict_too(api: ApiClient, pods: str, version: str) -> None:
    api.create(pods, pod("a"))
    body = {"apiVersion": version, "kind": "Eviction", "metadata": {"name": "a"}}

    assert api.post(f"{pods}/a/eviction", body).status == 201
    assert api.get(f"{pods}/a").status == 404


def test_a_pod_without_a_budget_is_evicted(api: ApiClient, pods: str) -> None:
    api.create(pods, pod("a"))
    answer = evict(api, pods, "a")

    assert (answer.status, answer.body["status"]) == (201, "Success")
    assert api.get(f"{pods}/a").status == 404


def test_an_eviction_names_its_pod(api: ApiClient, pods: str) -> None:
    api.create(pods, pod("a"))
    body = {"apiVersion": "policy/v1", "kind": "Eviction"}
    for metadata in ({"name": "b"}, {}):
        answer = api.post(f"{pods}/a/eviction", body | {"metadata": metadata})
        assert (answer.status, answer.message) == (400, "name in URL does not match name in Eviction object")


def test_an_exhausted_budget_stops_an_eviction(api: ApiClient, pods: str, budgets: str) -> None:
    running(api, pods, "a")
    api.create(budgets, budget({"matchLabels": LABELS}))
    unprocessed = evict(api, pods, "a")
    assert (unprocessed.status, unprocessed.reason) == (429, "TooManyRequests")

    set_counts(api, budgets, allowed=0, healthy=1, desired=1)
    answer = evict(api, pods, "a")
    assert (answer.status, answer.reason) == (429, "TooManyRequests")
    assert answer.message == "Cannot evict pod as it would violate the pod's disruption budget."
    cause = answer.body["details"]["causes"][0]
    assert cause["reason"] == "DisruptionBudget"
    assert cause["message"] == "The disruption budget b needs 1 healthy pods and has 1 currently"

    set_counts(api, budgets, allowed=1, healthy=1, desired=1)
    assert evict(api, pods, "a").status == 201
    status = api.get(f"{budgets}/b").body["status"]
    assert status["disruptionsAllowed"] == 0
    assert list(status["disruptedPods"]) == ["a"]
    (condition,) = status["conditions"]
    told = (condition["type"], condition["status"], condition["reason"], condition["message"])
    assert told == ("DisruptionAllowed", "False", "InsufficientPods", "")
    api.delete(f"{pods}/a", {"gracePeriodSeconds": 0})


def test_a_pod_that_is_not_ready_needs_no_disruption_of_a_healthy_budget(
    api: ApiClient, pods: str, budgets: str
) -> None:
    running(api, pods, "a", is_ready=False)
    api.create(budgets, budget({"matchLabels": LABELS}))
    set_counts(api, budgets, allowed=0, healthy=0, desired=1)
    assert evict(api, pods, "a").status == 429
    set_counts(api, budgets, allowed=0, healthy=1, desired=1)

    assert evict(api, pods, "a").status == 201
    assert "disruptedPods" not in api.get(f"{budgets}/b").body["status"]


def test_a_budget_may_let_all_go_that_are_not_ready(api: ApiClient, pods: str, budgets: str) -> None:
    running(api, pods, "a", is_ready=False)
    running(api, pods, "b")
    api.create(budgets, budget({"matchLabels": LABELS}, unhealthyPodEvictionPolicy="AlwaysAllow"))

    assert evict(api, pods, "a").status == 201
    assert evict(api, pods, "b").status == 429


def test_a_pod_of_two_budgets_cannot_be_evicted(api: ApiClient, pods: str, budgets: str) -> None:
    running(api, pods, "a")
    api.create(budgets, budget({"matchLabels": LABELS}))
    api.create(budgets, budget({}, "c"))
    answer = evict(api, pods, "a")

    problem = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
    assert (answer.status, answer.message) == (500, problem)


def test_a_budget_of_everything_covers_pods_without_labels(api: ApiClient, pods: str, budgets: str) -> None:
    running(api, pods, "a", labels={})
    api.create(budgets, budget({}))
    set_counts(api, budgets, allowed=0, healthy=1, desired=1)

    assert evict(api, pods, "a").status == 429
