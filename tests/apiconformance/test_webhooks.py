"""Admission webhooks, called over HTTPS."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.apiconformance.client import MERGE_PATCH, ApiClient, Json, config_map, unique
from tests.apiconformance.webhook_server import Webhook
from tests.waiting import wait_until

GROUP = "/apis/admissionregistration.k8s.io/v1"


@pytest.fixture
def webhook(tmp_path: Path) -> Iterator[Webhook]:
    made = Webhook(tmp_path)
    yield made
    made.close()


Register = Callable[..., None]


@pytest.fixture
def register(api: ApiClient, namespace: str, webhook: Webhook) -> Iterator[Register]:
    """Registers the webhook for config maps of the namespace of the test, and waits until it is called."""
    made: list[str] = []

    def create(kind: str, **options: object) -> None:
        rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["*"]}
        name = f"{unique('hook')}.example.com"
        declared: Json = {"name": name, "rules": [rule], "sideEffects": "None", "admissionReviewVersions": ["v1"]}
        declared["clientConfig"] = {"url": webhook.url, "caBundle": webhook.authority}
        declared["namespaceSelector"] = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
        path = f"{GROUP}/{kind}webhookconfigurations"
        body = {"kind": f"{kind.title()}WebhookConfiguration", "apiVersion": "admissionregistration.k8s.io/v1"}
        api.create(path, body | {"metadata": {"name": name}, "webhooks": [declared | options]})
        made.append(f"{path}/{name}")
        probe = f"/api/v1/namespaces/{namespace}/configmaps?dryRun=All"

        def is_called() -> bool:
            answer = api.post(probe, config_map("probe"))
            return bool(webhook.requests) or answer.status >= 500

        wait_until(is_called, what="the webhook called")
        webhook.requests.clear()

    yield create
    for path in made:
        api.delete(path)


def patch(*operations: Json) -> Json:
    encoded = base64.b64encode(json.dumps(list(operations)).encode()).decode()
    return {"allowed": True, "patchType": "JSONPatch", "patch": encoded}


def test_a_validating_webhook_refuses_writes(
    api: ApiClient, config_maps: str, webhook: Webhook, register: Register
) -> None:
    register("validating")
    refusal = {"allowed": False, "status": {"code": 403, "message": "no red", "reason": "Forbidden"}}
    webhook.answer = lambda request: (
        refusal if (request["object"].get("data") or {}).get("x") == "red" else {"allowed": True}
    )
    refused = api.post(config_maps, config_map("a", {"x": "red"}))
    created = api.create(config_maps, config_map("a", {"x": "blue"}))
    changed = api.patch(f"{config_maps}/a", {"data": {"x": "red"}}, MERGE_PATCH)

    assert refused.status == 403
    assert refused.message.startswith('admission webhook "hook-')
    assert refused.message.endswith('" denied the request: no red')
    assert changed.status == 403
    assert created["data"] == {"x": "blue"}
    assert [request["operation"] for request in webhook.requests] == ["CREATE", "CREATE", "UPDATE"]


def test_a_webhook_sees_who_does_what_with_which_object(
    api: ApiClient, namespace: str, config_maps: str, webhook: Webhook, register: Register
) -> None:
    register("validating")
    api.create(config_maps, config_map("a", {"x": "1"}))
    api.patch(f"{config_maps}/a", {"data": {"x": "2"}}, MERGE_PATCH)
    api.delete(f"{config_maps}/a")
    created, changed, deleted = webhook.requests

    assert (created["name"], created["namespace"], created["operation"]) == ("a", namespace, "CREATE")
    assert created["kind"] == {"group": "", "version": "v1", "kind": "ConfigMap"}
    assert created["resource"] == {"group": "", "version": "v1", "resource": "configmaps"}
    assert created["object"]["data"] == {"x": "1"}
    assert created["oldObject"] is None
    assert "system:masters" in created["userInfo"]["groups"]
    assert (changed["oldObject"]["data"], changed["object"]["data"]) == ({"x": "1"}, {"x": "2"})
    assert (deleted["operation"], deleted["object"], deleted["oldObject"]["data"]) == ("DELETE", None, {"x": "2"})


def test_a_mutating_webhook_changes_objects(
    api: ApiClient, config_maps: str, webhook: Webhook, register: Register
) -> None:
    register("mutating")
    webhook.answer = lambda request: patch({"op": "add", "path": "/metadata/labels", "value": {"seen": "yes"}})
    named = api.create(config_maps, config_map("a"))
    generated = api.create(config_maps, {"metadata": {"generateName": "b-"}})

    assert named["metadata"]["labels"] == {"seen": "yes"}
    assert generated["metadata"]["labels"] == {"seen": "yes"}
    assert generated["metadata"]["name"].startswith("b-")
    assert len(generated["metadata"]["name"]) == 7


def test_a_webhook_that_does_not_answer_decides_by_its_failure_policy(
    api: ApiClient, config_maps: str, webhook: Webhook, register: Register
) -> None:
    register("validating", clientConfig={"url": "https://127.0.0.1:1/none"})
    answer = api.post(config_maps, config_map("a"))

    assert (answer.status, answer.reason) == (500, "InternalError")
    assert answer.message.startswith('Internal error occurred: failed calling webhook "hook-')
    assert ": failed to call webhook: " in answer.message


def test_warnings_of_a_webhook_reach_the_client(
    api: ApiClient, config_maps: str, webhook: Webhook, register: Register
) -> None:
    register("validating")
    webhook.answer = lambda request: {"allowed": True, "warnings": ["hm"]}
    answer = api.post(config_maps, config_map("a"))

    assert answer.status == 201
    assert "hm" in answer.headers["warning"]


def test_conditions_limit_what_a_webhook_sees(
    api: ApiClient, config_maps: str, webhook: Webhook, register: Register
) -> None:
    register("validating", matchConditions=[{"name": "odd", "expression": "request.name != 'even'"}])
    api.create(config_maps, config_map("even"))
    api.create(config_maps, config_map("odd"))

    assert [request["name"] for request in webhook.requests] == ["odd"]
