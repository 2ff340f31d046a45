"""Admission webhooks and the pods of workloads."""

from __future__ import annotations

import base64

import pytest
from tests.unit.apiserver.driving import PODS, Driver, workload

from bayplan.apiserver.objects.webhooks import Review, ReviewFailed
from bayplan.apiserver.protocol.encoding import Json, encode
from bayplan.apiserver.simulation.controllers import base

CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
RULE = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}


async def test_pods_of_workloads_are_changed_by_mutating_webhooks(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Review] = []

    async def answer(review: Review) -> Json | ReviewFailed:
        asked.append(review)
        operations = [{"op": "add", "path": "/metadata/annotations", "value": {"injected": "yes"}}]
        return {"allowed": True, "patch": base64.b64encode(encode(operations)).decode()}

    monkeypatch.setattr(base, "call_webhook", answer)
    webhook: Json = {"name": "inject.example.com", "rules": [RULE], "sideEffects": "None"}
    webhook |= {"admissionReviewVersions": ["v1"], "clientConfig": {"url": "https://localhost/"}}
    await driver.create(CONFIGURATIONS, {"metadata": {"name": "inject"}, "webhooks": [webhook]})
    await driver.create("/apis/apps/v1/namespaces/default/replicasets", workload("ReplicaSet", "web", replicas=2))
    await driver.settle()
    pods = await driver.items(PODS)

    assert [pod["metadata"]["annotations"] for pod in pods] == [{"injected": "yes"}] * 2
    assert asked[0].body["request"]["object"]["metadata"]["generateName"] == "web-"
    assert "uid" not in asked[0].body["request"]["object"]["metadata"]
