"""Scales: the replica counts of workloads, read and written in every way."""

from __future__ import annotations

import pytest

from tests.apiconformance.client import JSON_PATCH, TABLE, ApiClient, Json, deployment

SCALE: Json = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "a"}}


@pytest.fixture
def scale(api: ApiClient, deployments: str) -> str:
    api.create(deployments, deployment("a", replicas=2))
    return f"{deployments}/a/scale"


def test_scale_reads_and_writes_replicas(api: ApiClient, deployments: str, scale: str) -> None:
    found = api.get(scale)

    assert (found.body["kind"], found.body["apiVersion"]) == ("Scale", "autoscaling/v1")
    assert found.body["spec"] == {"replicas": 2}
    assert found.body["status"]["selector"] == "app=a"
    assert api.put(scale, found.body | {"spec": {"replicas": 5}}).status == 200
    assert api.put(scale, found.body | {"spec": {"replicas": 6}}).status == 409
    assert api.patch(scale, {"spec": {"replicas": 4}}).body["spec"] == {"replicas": 4}
    operations = [{"op": "replace", "path": "/spec/replicas", "value": 3}]
    assert api.patch(scale, operations, JSON_PATCH).body["spec"] == {"replicas": 3}
    assert api.get(f"{deployments}/a").body["spec"]["replicas"] == 3
    assert api.patch(scale, {"spec": {"replicas": -1}}).status == 422


def test_the_selector_of_a_scale_has_all_requirements(api: ApiClient, deployments: str) -> None:
    body = deployment("b")
    body["spec"]["template"]["metadata"]["labels"] = {"app": "b", "z": "1", "c": "q"}
    body["spec"]["selector"]["matchExpressions"] = [
        {"key": "z", "operator": "Exists"},
        {"key": "d", "operator": "NotIn", "values": ["y", "x"]},
        {"key": "c", "operator": "In", "values": ["q"]},
        {"key": "n", "operator": "DoesNotExist"},
    ]
    api.create(deployments, body)

    assert api.get(f"{deployments}/b/scale").body["status"]["selector"] == "app=b,c in (q),d notin (x,y),!n,z"


@pytest.mark.parametrize(
    ("metadata", "status"),
    [({"name": "a"}, 200), ({"name": "b"}, 400), ({}, 400), ({"name": "a", "uid": "other"}, 409)],
)
def test_a_scale_names_its_workload(api: ApiClient, scale: str, metadata: Json, status: int) -> None:
    assert api.put(scale, {"metadata": metadata, "spec": {"replicas": 1}}).status == status


def test_a_scale_is_decoded_strictly_where_asked(api: ApiClient, scale: str) -> None:
    answer = api.put(scale, SCALE | {"spec": {"replicas": 1}, "more": 1}, query={"fieldValidation": "Strict"})

    assert (answer.status, answer.reason) == (400, "BadRequest")
    assert 'strict decoding error: unknown field "more"' in answer.message
    assert api.patch(scale, {"spec": {"replicas": 1}}, "text/plain").status == 415


def test_a_scale_can_be_applied(api: ApiClient, deployments: str, scale: str) -> None:
    refused = api.apply(scale, SCALE | {"spec": {"replicas": 3}}, "scaler")
    assert (refused.status, refused.reason) == (409, "Conflict")
    answer = api.apply(scale, SCALE | {"spec": {"replicas": 3}}, "scaler", force=True)

    assert (answer.status, answer.body["spec"]) == (200, {"replicas": 3})
    entries = api.get(f"{deployments}/a").body["metadata"]["managedFields"]
    (mine,) = [entry for entry in entries if entry["manager"] == "scaler"]
    assert (mine["operation"], mine["subresource"]) == ("Apply", "scale")
    assert mine["fieldsV1"] == {"f:spec": {"f:replicas": {}}}


def test_a_scale_comes_in_every_form(api: ApiClient, scale: str) -> None:
    table = api.get(scale, accept=TABLE).body

    assert table["kind"] == "Table"
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Desired", "Available", "Age"]
    assert table["rows"][0]["cells"][:3] == ["a", 2, 0]
    assert "kind: Scale" in api.get(scale, accept="application/yaml").body
    protobuf = api.get(scale, accept="application/vnd.kubernetes.protobuf")
    assert protobuf.headers["content-type"] == "application/vnd.kubernetes.protobuf"
