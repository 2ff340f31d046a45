"""What metadata may say, who may change it by writing to the status, and what a new object must not bring."""

from __future__ import annotations

import pytest

from bayplan.apiserver.kinds.builtin import builtin_kinds
from bayplan.apiserver.kinds.kind import ServedKind
from tests.apiconformance.client import ApiClient, Json, config_map, unique
from tests.apiconformance.made_objects import valid_objects

OWNER: Json = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u-1"}
WITH_STATUS = [kind for kind in builtin_kinds() if kind.status and "get" in kind.verbs]
CHANGED: Json = {
    "labels": {"changed": "1"},
    "annotations": {"changed": "1"},
    "finalizers": ["example.com/changed"],
    "ownerReferences": [OWNER],
}


@pytest.mark.parametrize("kind", WITH_STATUS, ids=lambda kind: kind.resource)
def test_what_of_the_metadata_a_status_may_change(api: ApiClient, namespace: str, kind: ServedKind) -> None:
    root = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    path = f"{root}{f'/namespaces/{namespace}' if kind.namespaced else ''}/{kind.plural}"
    document = valid_objects(unique("status"), namespace)[kind.resource]
    name = document["metadata"]["name"]
    api.create(path, document)
    answer = api.patch(f"{path}/{name}/status", {"metadata": CHANGED}, query={"dryRun": "All"})
    api.delete(f"{path}/{name}")

    assert answer.status == 200, answer.body
    found = answer.body["metadata"]
    seen = {
        "labels": "changed" in found.get("labels", {}),
        "annotations": "changed" in found.get("annotations", {}),
        "finalizers": "example.com/changed" in found.get("finalizers", []),
        "ownerReferences": bool(found.get("ownerReferences")),
    }
    assert seen == {field: field not in kind.kept_by_status for field in CHANGED}


@pytest.mark.parametrize(
    ("metadata", "problem"),
    [
        (
            {"finalizers": ["a"]},
            'metadata.finalizers[0]: Invalid value: "a": name is neither a standard',
        ),
        (
            {"finalizers": ["orphan", "foregroundDeletion"]},
            "orphan and foregroundDeletion cannot be both set",
        ),
        ({"finalizers": ["example.com/a b"]}, "metadata.finalizers: Invalid value"),
        (
            {"ownerReferences": [OWNER | {"controller": True}, OWNER | {"uid": "u-2", "controller": True}]},
            'Only one reference can have Controller set to true. Found "true" in references for Pod/p and Pod/p',
        ),
        (
            {"ownerReferences": [OWNER | {"apiVersion": "a/b/c"}]},
            'ownerReferences.apiVersion: Invalid value: "a/b/c"',
        ),
        ({"ownerReferences": [OWNER | {"kind": "Event"}]}, "/v1, Kind=Event is disallowed from being an owner"),
        ({"generateName": "a b"}, 'metadata.generateName: Invalid value: "a b": a lowercase RFC 1123 subdomain'),
        ({"generateName": "a."}, 'metadata.generateName: Invalid value: "a.": a lowercase RFC 1123 subdomain'),
        ({"labels": {"a..b/c": "d"}}, 'metadata.labels: Invalid value: "a..b/c"'),
        ({"labels": {"a": "b\n"}}, "metadata.labels: Invalid value"),
        ({"name": "a\n"}, "metadata.name: Invalid value"),
    ],
)
def test_odd_metadata_is_invalid(api: ApiClient, config_maps: str, metadata: Json, problem: str) -> None:
    answer = api.post(config_maps, {"metadata": {"name": "a"} | metadata})

    assert (answer.status, answer.reason) == (422, "Invalid")
    assert problem in answer.message


def test_a_name_is_generated_after_a_dash_too(api: ApiClient, config_maps: str) -> None:
    assert api.post(config_maps, {"metadata": {"generateName": "a-"}}).status == 201


def test_a_new_object_brings_no_version(api: ApiClient, config_maps: str) -> None:
    answer = api.post(config_maps, config_map("a", resourceVersion="5"))

    assert answer.status in (400, 500)  # kube-apiserver says that the error is its own
    assert answer.message == "resourceVersion should not be set on objects to be created"
    assert api.post(config_maps, config_map("a", resourceVersion="0")).status == 201


def test_an_object_that_is_being_deleted_gets_no_finalizers(api: ApiClient, config_maps: str) -> None:
    api.create(config_maps, config_map("a", finalizers=["example.com/a"]))
    api.delete(f"{config_maps}/a")
    more = api.patch(f"{config_maps}/a", {"metadata": {"finalizers": ["example.com/a", "example.com/b"]}})
    problem = "no new finalizers can be added if the object is being deleted, found new finalizers "

    assert (more.status, more.reason) == (422, "Invalid")
    assert f'metadata.finalizers: Forbidden: {problem}[]string{{"example.com/b"}}' in more.message
    assert api.patch(f"{config_maps}/a", {"data": {"a": "b"}}).status == 200
    assert api.patch(f"{config_maps}/a", {"metadata": {"finalizers": []}}).status == 200
    assert api.get(f"{config_maps}/a").status == 404


def test_a_service_may_begin_with_a_digit(api: ApiClient, namespace: str) -> None:
    path, spec = f"/api/v1/namespaces/{namespace}/services", {"ports": [{"port": 80}], "clusterIP": "None"}

    assert api.post(path, {"metadata": {"name": "1a"}, "spec": spec}).status == 201
    assert api.post(path, {"metadata": {"name": "a.b"}, "spec": spec}).status == 422


def test_an_immutable_config_map_stays_so(api: ApiClient, config_maps: str) -> None:
    api.create(config_maps, config_map("a", {"a": "1"}) | {"immutable": True})
    answer = api.patch(f"{config_maps}/a", {"immutable": False})

    assert (answer.status, answer.reason) == (422, "Invalid")
    assert "immutable: Forbidden: field is immutable when `immutable` is set" in answer.message


def test_a_key_is_data_or_binary_data(api: ApiClient, config_maps: str) -> None:
    answer = api.post(config_maps, config_map("a", {"k": "1"}) | {"binaryData": {"k": "MQ=="}})

    assert (answer.status, answer.reason) == (422, "Invalid")
    assert 'data[k]: Invalid value: "k": duplicate of key present in binaryData' in answer.message
