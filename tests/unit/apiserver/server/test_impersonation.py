"""Requests on behalf of others: `kubectl --as` is authorised and recorded as that user, for those who may."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.apiserver.server.test_authorization import api, grant, robot
from tests.unit.apiserver.server.test_http import connected

from bayplan.apiserver.cluster import EmbeddedCluster
from bayplan.apiserver.protocol.encoding import decode_object, encode
from bayplan.apiserver.protocol.exchange import Request
from bayplan.apiserver.server.api import Api, ApiSettings

__all__ = ["api"]
WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


def call(api: Api, token: str, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
    sent = {"authorization": f"Bearer {token}", "content-type": "application/json"}
    sent |= {name.replace("_", "-"): value for name, value in headers.items()}
    answer = api.handle(Request(method, path, {}, sent, encode(body) if body is not None else b""))
    return answer.status, decode_object(answer.body)


def test_the_administrator_is_answered_as_whom_it_names(api: Api) -> None:
    status, body = call(api, "admin", "GET", "/api/v1/namespaces/default/pods", impersonate_user="nobody")

    assert status == 403
    assert 'User "nobody" cannot list resource "pods"' in body["message"]


@pytest.mark.parametrize(
    ("headers", "user"),
    [
        ({"impersonate_user": "u"}, {"username": "u", "groups": ["system:authenticated"]}),
        (
            {"impersonate_user": "u", "impersonate_group": "a\nb", "impersonate_uid": "7"},
            {"username": "u", "groups": ["a", "b", "system:authenticated"], "uid": "7"},
        ),
        (
            {"impersonate_user": "system:serviceaccount:n:s"},
            {
                "username": "system:serviceaccount:n:s",
                "groups": ["system:serviceaccounts", "system:serviceaccounts:n", "system:authenticated"],
            },
        ),
        (
            {"impersonate_user": "u", "impersonate_group": "system:masters", "impersonate_extra_a": "x\ny"},
            {"username": "u", "groups": ["system:masters", "system:authenticated"], "extra": {"a": ["x", "y"]}},
        ),
    ],
)
def test_the_whole_identity_is_taken(headers: dict[str, str], user: dict[str, Any]) -> None:
    server = Api(settings=ApiSettings(token="admin"))
    document = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}

    status, body = call(server, "admin", "POST", WHO, document, **headers)

    assert (status, body["status"]["userInfo"]) == (201, user)


def test_who_may_not_impersonate_is_refused(api: Api) -> None:
    status, body = call(api, robot(api), "GET", "/api/v1/nodes", impersonate_user="root")
    assert status == 403
    assert body["message"] == (
        'users "root" is forbidden: User "system:serviceaccount:default:robot" cannot impersonate resource "users" '
        'in API group "" at the cluster scope'
    )

    rules = [{"apiGroups": [""], "resources": ["users"], "resourceNames": ["root"], "verbs": ["impersonate"]}]
    grant(api, rules)
    assert (
        'User "root" cannot list'
        in call(api, robot(api), "GET", "/api/v1/nodes", impersonate_user="root")[1]["message"]
    )
    masters = {"impersonate_user": "root", "impersonate_group": "system:masters"}
    assert "impersonate resource" in call(api, robot(api), "GET", "/api/v1/nodes", **masters)[1]["message"]


def test_groups_without_a_user_are_refused(api: Api) -> None:
    status, body = call(api, "admin", "GET", "/api/v1/nodes", impersonate_group="a")

    assert (status, "without impersonating a user" in body["message"]) == (400, True)


async def test_all_groups_of_a_request_arrive_over_the_wire() -> None:
    cluster = EmbeddedCluster(token="secret", tls=False, simulate=False)
    await cluster.start()
    body = encode({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"})
    head = f"POST {WHO} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer secret\r\nContent-Type: application/json\r\n"
    head += "Impersonate-User: u\r\nImpersonate-Group: a\r\nImpersonate-Group: b\r\n"
    try:
        async with connected(cluster) as wire:
            wire.send(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            answer = (await wire.answer())[2]
    finally:
        await cluster.stop()

    assert answer["status"]["userInfo"]["groups"] == ["a", "b", "system:authenticated"]
