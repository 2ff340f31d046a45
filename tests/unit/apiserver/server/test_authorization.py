"""RBAC: roles, bindings, aggregation, and refusals that say what is missing."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.apiserver.bootstrap import bootstrap
from bayplan.apiserver.protocol.encoding import decode_object, encode
from bayplan.apiserver.protocol.exchange import Request
from bayplan.apiserver.protocol.identity import TokenIssuer
from bayplan.apiserver.server.api import Api, ApiSettings
from bayplan.apiserver.server.own_objects import create

GROUP = "rbac.authorization.k8s.io"


@pytest.fixture
def api() -> Api:
    server = Api(settings=ApiSettings(token="admin", authorization="rbac"))
    bootstrap(server)
    return server


def robot(api: Api) -> str:
    issuer: TokenIssuer = api.tokens
    return issuer.issue("default", "robot", "u", seconds=3600)[0]


def call(api: Api, token: str, method: str, path: str, body: Any = None, **query: str) -> tuple[int, dict[str, Any]]:
    headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
    answer = api.handle(Request(method, path, query, headers, encode(body) if body is not None else b""))
    return answer.status, decode_object(answer.body)


def grant(api: Api, rules: list[dict[str, Any]], *, namespace: str = "", kind: str = "ClusterRole") -> None:
    metadata = {"name": "r"} | ({"namespace": namespace} if kind == "Role" else {})
    create(api, {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": metadata, "rules": rules})
    binding = "RoleBinding" if namespace else "ClusterRoleBinding"
    subject = {"kind": "ServiceAccount", "name": "robot", "namespace": "default"}
    document = {
        "apiVersion": f"{GROUP}/v1",
        "kind": binding,
        "metadata": {"name": "b"} | ({"namespace": namespace} if namespace else {}),
        "roleRef": {"apiGroup": GROUP, "kind": kind, "name": "r"},
        "subjects": [subject],
    }
    create(api, document)


def test_without_a_role_nothing_is_allowed_and_the_refusal_says_what(api: Api) -> None:
    status, body = call(api, robot(api), "GET", "/api/v1/namespaces/default/pods")

    assert status == 403
    assert body["message"] == (
        'pods is forbidden: User "system:serviceaccount:default:robot" cannot list resource "pods" in API group "" '
        'in the namespace "default"'
    )
    assert call(api, robot(api), "GET", "/api/v1/nodes")[1]["message"].endswith("at the cluster scope")


def test_a_cluster_role_allows_everywhere(api: Api) -> None:
    grant(api, [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}])

    assert call(api, robot(api), "GET", "/api/v1/pods")[0] == 200
    assert call(api, robot(api), "GET", "/api/v1/namespaces/kube-system/pods")[0] == 200
    assert call(api, robot(api), "POST", "/api/v1/namespaces/default/pods", {})[0] == 403


def test_a_role_allows_in_its_namespace_only(api: Api) -> None:
    rules = [{"apiGroups": ["apps"], "resources": ["*"], "verbs": ["*"]}]
    grant(api, rules, namespace="default", kind="Role")

    assert call(api, robot(api), "GET", "/apis/apps/v1/namespaces/default/deployments")[0] == 200
    assert call(api, robot(api), "GET", "/apis/apps/v1/namespaces/kube-system/deployments")[0] == 403


def test_a_subresource_needs_a_rule_of_its_own(api: Api) -> None:
    grant(api, [{"apiGroups": [""], "resources": ["pods/binding"], "verbs": ["create"]}])
    path = "/api/v1/namespaces/default/pods/a/binding"

    assert call(api, robot(api), "POST", path, {"metadata": {"name": "a"}, "target": {"name": "n"}})[0] == 404
    assert call(api, robot(api), "PATCH", "/api/v1/namespaces/default/pods/a/status", {})[0] == 403


def test_resource_names_narrow_a_rule(api: Api) -> None:
    grant(api, [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"], "resourceNames": ["mine"]}])

    assert call(api, robot(api), "GET", "/api/v1/namespaces/default/configmaps/mine")[0] == 404
    assert call(api, robot(api), "GET", "/api/v1/namespaces/default/configmaps/theirs")[0] == 403


def test_access_reviews_answer_the_same(api: Api) -> None:
    grant(api, [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}])
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"

    def allowed(verb: str) -> bool:
        attributes = {"verb": verb, "resource": "pods", "namespace": "default"}
        return bool(
            call(api, robot(api), "POST", path, {"spec": {"resourceAttributes": attributes}})[1]["status"]["allowed"]
        )

    assert allowed("get")
    assert not allowed("delete")
    other = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    spec = {"user": "system:kube-scheduler", "resourceAttributes": {"verb": "list", "resource": "nodes"}}
    assert call(api, "admin", "POST", other, {"spec": spec})[1]["status"]["allowed"]


def test_a_rules_review_lists_what_is_allowed(api: Api) -> None:
    grant(api, [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}])
    path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
    status = call(api, robot(api), "POST", path, {"spec": {"namespace": "default"}})[1]["status"]

    assert {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]} in status["resourceRules"]


def test_an_aggregated_role_collects_rules(api: Api) -> None:
    part = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "part", "labels": {"collect": "me"}},
        "rules": [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}],
    }
    create(api, part)
    grant(api, [])
    headers = {"authorization": "Bearer admin", "content-type": "application/merge-patch+json"}
    patch = encode({"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"collect": "me"}}]}})
    path = f"/apis/{GROUP}/v1/clusterroles/r"
    assert api.handle(Request("PATCH", path, {}, headers, patch)).status == 200

    assert call(api, robot(api), "GET", "/api/v1/nodes")[0] == 200


def test_a_rule_for_one_name_covers_lists_of_that_name(api: Api) -> None:
    grant(api, [{"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["a"], "verbs": ["list"]}])
    path = "/api/v1/namespaces/default/configmaps"

    assert call(api, robot(api), "GET", path, fieldSelector="metadata.name=a")[0] == 200
    assert call(api, robot(api), "GET", path, fieldSelector="metadata.name=b")[0] == 403
    assert call(api, robot(api), "GET", path, fieldSelector="metadata.name!=a")[0] == 403
    assert call(api, robot(api), "GET", path)[0] == 403
