"""Creating, reading, updating and deleting objects."""

from __future__ import annotations

import json

import pytest

from tests.apiconformance.client import APPLY_PATCH, ApiClient, config_map, deployment, node, pod


def test_a_created_object_gets_identity_and_version(api: ApiClient, config_maps: str) -> None:
    answer = api.post(config_maps, config_map("a", {"k": "v"}))

    assert answer.status == 201
    metadata = answer.body["metadata"]
    assert len(metadata["uid"]) == 36
    assert int(metadata["resourceVersion"]) > 0
    assert metadata["creationTimestamp"].endswith("Z")
    assert answer.body["kind"] == "ConfigMap"
    assert answer.body["apiVersion"] == "v1"


def test_a_second_object_of_the_same_name_is_refused(api: ApiClient, config_maps: str) -> None:
    api.create(config_maps, config_map("a"))
    answer = api.post(config_maps, config_map("a"))

    assert (answer.status, answer.reason) == (409, "AlreadyExists")
    assert answer.message == 'configmaps "a" already exists'
    assert answer.body["details"] == {"name": "a", "kind": "configmaps"}


def test_a_missing_object_is_not_found(api: ApiClient, config_maps: str, deployments: str) -> None:
    answer = api.get(f"{config_maps}/nope")

    assert (answer.status, answer.reason) == (404, "NotFound")
    assert answer.message == 'configmaps "nope" not found'
    answer = api.get(f"{deployments}/nope")
    assert answer.message == 'deployments.apps "nope" not found'
    assert answer.body["details"] == {"name": "nope", "group": "apps", "kind": "deployments"}


def test_an_object_in_a_missing_namespace_is_refused(api: ApiClient) -> None:
    answer = api.post("/api/v1/namespaces/no-such-namespace/configmaps", config_map("a"))

    assert (answer.status, answer.reason) == (404, "NotFound")
    assert answer.message == 'namespaces "no-such-namespace" not found'


def test_names_are_generated_from_a_prefix(api: ApiClient, config_maps: str) -> None:
    created = [api.create(config_maps, {"metadata": {"generateName": "web-"}}) for _ in range(2)]

    names = [one["metadata"]["name"] for one in created]
    assert names[0] != names[1]
    assert all(name.startswith("web-") and len(name) == 9 for name in names)


def test_an_object_without_a_name_is_invalid(api: ApiClient, config_maps: str) -> None:
    answer = api.post(config_maps, {"metadata": {}})

    assert (answer.status, answer.reason) == (422, "Invalid")
    assert "metadata.name: Required value: name or generateName is required" in answer.message


def test_a_bad_name_is_invalid(api: ApiClient, config_maps: str) -> None:
    answer = api.post(config_maps, config_map("Bad_Name"))

    assert (answer.status, answer.reason) == (422, "Invalid")
    assert 'metadata.name: Invalid value: "Bad_Name": a lowercase RFC 1123 subdomain' in answer.message


def test_a_bad_label_is_invalid(api: ApiClient, config_maps: str) -> None:
    answer = api.post(config_maps, config_map("a", labels={"ok": "not ok!"}))

    assert (answer.status, answer.reason) == (422, "Invalid")
    assert 'metadata.labels: Invalid value: "not ok!": a valid label must be an empty string' in answer.message


def test_an_update_with_an_old_version_conflicts(api: ApiClient, config_maps: str) -> None:
    first = api.create(config_maps, config_map("a", {"n": "1"}))
    newer = first | {"data": {"n": "2"}}
    assert api.put(f"{config_maps}/a", newer).status == 200
    answer = api.put(f"{config_maps}/a", first | {"data": {"n": "3"}})

    assert (answer.status, answer.reason) == (409, "Conflict")
    assert answer.message == (
        'Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your changes to '
        "the latest version and try again"
    )


def test_an_update_without_a_version_overwrites(api: ApiClient, config_maps: str) -> None:
    api.create(config_maps, config_map("a", {"n": "1"}))
    answer = api.put(f"{config_maps}/a", config_map("a", {"n": "2"}))

    assert answer.status == 200
    assert answer.body["data"] == {"n": "2"}


def test_an_update_that_changes_nothing_keeps_the_version(api: ApiClient, config_maps: str) -> None:
    created = api.create(config_maps, config_map("a", {"n": "1"}))
    answer = api.put(f"{config_maps}/a", created)

    assert answer.status == 200
    assert answer.version == created["metadata"]["resourceVersion"]


def test_an_update_of_a_missing_object_is_not_found(api: ApiClient, config_maps: str) -> None:
    answer = api.put(f"{config_maps}/nope", config_map("nope"))

    assert (answer.status, answer.reason) == (404, "NotFound")


def test_an_update_to_another_name_is_refused(api: ApiClient, config_maps: str) -> None:
    api.create(config_maps, config_map("a"))
    answer = api.put(f"{config_maps}/a", config_map("b"))

    assert (answer.status, answer.reason) == (400, "BadRequest")
    assert answer.message == "the name of the object (b) does not match the name on the URL (a)"


def test_an_update_with_another_uid_conflicts(api: ApiClient, config_maps: str) -> None:
    api.create(config_maps, config_map("a"))
    answer = api.put(f"{config_maps}/a", config_map("a", uid="11111111-2222-3333-4444-555555555555"))

    assert (answer.status, answer.reason) == (409, "Conflict")


def test_the_server_keeps_uid_and_creation_time(api: ApiClient, config_maps: str) -> None:
    created = api.create(config_maps, config_map("a"))
    answer = api.put(f"{config_maps}/a", config_map("a", {"x": "y"}, creationTimestamp="2001-01-01T00:00:00Z"))

    assert answer.status == 200
    assert answer.body["metadata"]["uid"] == created["metadata"]["uid"]
    assert answer.body["metadata"]["creationTimestamp"] == created["metadata"]["creationTimestamp"]


def test_a_deleted_object_is_gone(api: ApiClient, config_maps: str) -> None:
    created = api.create(config_maps, config_map("a"))
    answer = api.delete(f"{config_maps}/a")

    assert answer.status == 200
    assert answer.body["kind"] == "Status"
    assert answer.body["status"] == "Success"
    assert answer.body["details"] == {"name": "a", "kind": "configmaps", "uid": created["metadata"]["uid"]}
    assert api.get(f"{config_maps}/a").status == 404


def test_a_delete_with_another_uid_conflicts(api: ApiClient, config_maps: str) -> None:
    api.create(config_maps, config_map("a"))
    options = {"preconditions": {"uid": "11111111-2222-3333-4444-555555555555"}}
    answer = api.delete(f"{config_maps}/a", options)

    assert (answer.status, answer.reason) == (409, "Conflict")
    assert "the UID in the precondition (11111111-2222-3333-4444-555555555555) does not match" in answer.message
    assert answer.body["details"] == {"name": "a", "kind": "ConfigMap"}
    assert api.get(f"{config_maps}/a").status == 200


def test_a_finalizer_holds_a_deleted_object(api: ApiClient, config_maps: str) -> None:
    api.create(config_maps, config_map("a", finalizers=["example.com/hold"]))
    answer = api.delete(f"{config_maps}/a")

    assert answer.status == 200
    assert answer.body["metadata"]["deletionTimestamp"]
    held = api.get(f"{config_maps}/a")
    assert held.status == 200
    assert held.body["metadata"]["deletionGracePeriodSeconds"] == 0
    released = api.patch(f"{config_maps}/a", {"metadata": {"finalizers": None}})
    assert released.status == 200
    assert api.get(f"{config_maps}/a").status == 404


def test_a_collection_is_deleted_by_selector(api: ApiClient, config_maps: str) -> None:
    api.create(config_maps, config_map("a", labels={"app": "x"}))
    api.create(config_maps, config_map("b", labels={"app": "x"}))
    api.create(config_maps, config_map("c", labels={"app": "y"}))
    answer = api.delete(config_maps, query={"labelSelector": "app=x"})

    assert answer.status == 200
    names = {one["metadata"]["name"] for one in api.get(config_maps).body["items"]} - {"kube-root-ca.crt"}
    assert names == {"c"}


def test_a_dry_run_changes_nothing(api: ApiClient, config_maps: str) -> None:
    answer = api.post(config_maps, config_map("a"), query={"dryRun": "All"})

    assert answer.status == 201
    assert answer.body["metadata"]["uid"]
    assert api.get(f"{config_maps}/a").status == 404
    api.create(config_maps, config_map("a", {"n": "1"}))
    assert api.patch(f"{config_maps}/a", {"data": {"n": "2"}}, query={"dryRun": "All"}).body["data"] == {"n": "2"}
    assert api.delete(f"{config_maps}/a", query={"dryRun": "All"}).status == 200
    assert api.get(f"{config_maps}/a").body["data"] == {"n": "1"}


def test_unknown_fields_warn_by_default(api: ApiClient, pods: str) -> None:
    answer = api.post(pods, pod("a", nonsense=1))

    assert answer.status == 201
    assert 'unknown field \\"spec.nonsense\\"' in answer.headers["warning"]
    assert "nonsense" not in answer.body["spec"]


def test_unknown_fields_are_refused_when_strict(api: ApiClient, pods: str) -> None:
    answer = api.post(pods, pod("a", nonsense=1), query={"fieldValidation": "Strict"})

    assert (answer.status, answer.reason) == (400, "BadRequest")
    assert 'strict decoding error: unknown field "spec.nonsense"' in answer.message


def test_unknown_fields_are_dropped_silently_when_ignored(api: ApiClient, pods: str) -> None:
    answer = api.post(pods, pod("a", nonsense=1), query={"fieldValidation": "Ignore"})

    assert answer.status == 201
    assert "warning" not in answer.headers


def test_a_value_of_the_wrong_type_is_a_bad_request(api: ApiClient, pods: str) -> None:
    answer = api.post(pods, pod("a", hostNetwork="yes"))

    assert (answer.status, answer.reason) == (400, "BadRequest")
    assert answer.message.startswith('Pod in version "v1" cannot be handled as a Pod: ')


def test_malformed_json_is_a_bad_request(api: ApiClient, config_maps: str) -> None:
    answer = api.post(config_maps, b'{"metadata": ')

    assert (answer.status, answer.reason) == (400, "BadRequest")


def test_another_kind_than_the_path_says_is_a_bad_request(api: ApiClient, config_maps: str) -> None:
    answer = api.post(config_maps, {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}})

    assert (answer.status, answer.reason) == (400, "BadRequest")


def test_another_namespace_than_the_path_says_is_a_bad_request(api: ApiClient, config_maps: str) -> None:
    answer = api.post(config_maps, config_map("a", namespace="elsewhere"))

    assert (answer.status, answer.reason) == (400, "BadRequest")
    assert answer.message == "the namespace of the provided object does not match the namespace sent on the request"


def test_an_unknown_media_type_is_refused(api: ApiClient, config_maps: str) -> None:
    answer = api.post(config_maps, b"<x/>", content_type="application/xml")

    assert (answer.status, answer.reason) == (415, "UnsupportedMediaType")


def test_yaml_bodies_are_understood(api: ApiClient, config_maps: str) -> None:
    body = b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  day: '2026-01-31'\n"
    answer = api.post(config_maps, body, content_type="application/yaml")

    assert answer.status == 201
    assert answer.body["data"] == {"day": "2026-01-31"}


def test_generation_counts_changes_of_the_spec_only(api: ApiClient, deployments: str) -> None:
    created = api.create(deployments, deployment("a"))
    labelled = api.patch(f"{deployments}/a", {"metadata": {"labels": {"x": "y"}}})
    scaled = api.patch(f"{deployments}/a", {"spec": {"replicas": 3}})

    assert created["metadata"]["generation"] == 1
    assert labelled.body["metadata"]["generation"] == 1
    assert scaled.body["metadata"]["generation"] == 2


def test_the_main_resource_leaves_status_alone_and_the_other_way_round(api: ApiClient, deployments: str) -> None:
    created = api.create(deployments, deployment("a") | {"status": {"replicas": 7}})
    main = api.patch(f"{deployments}/a", {"status": {"replicas": 5}, "spec": {"replicas": 2}})
    status = api.patch(f"{deployments}/a/status", {"status": {"replicas": 5}, "spec": {"replicas": 9}})

    assert "replicas" not in created.get("status", {})
    assert "replicas" not in main.body.get("status", {})
    assert main.body["spec"]["replicas"] == 2
    assert status.body["status"]["replicas"] == 5
    assert status.body["spec"]["replicas"] == 2


def test_a_node_keeps_the_status_it_was_created_with(api: ApiClient, node_name: str) -> None:
    created = api.create("/api/v1/nodes", node(node_name))

    assert created["status"]["capacity"]["cpu"] == "4"


def test_quantities_are_written_back_in_canonical_form(api: ApiClient, pods: str) -> None:
    body = pod("a")
    body["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "0.5", "memory": "1024Mi"}}
    created = api.create(pods, body)

    assert created["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "500m", "memory": "1Gi"}


def test_wrong_methods_are_not_allowed(api: ApiClient, config_maps: str) -> None:
    assert api.request("PUT", config_maps, {}).status == 405
    assert api.request("POST", f"{config_maps}/a", {}).status == 405


def test_a_huge_body_is_refused(api: ApiClient, config_maps: str) -> None:
    answer = api.post(config_maps, config_map("a", {"big": "x" * (3 * 1024 * 1024 + 10)}))

    assert answer.status == 413


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
def test_the_namespaces_that_a_cluster_lives_by_cannot_be_deleted(api: ApiClient, name: str) -> None:
    answer = api.delete(f"/api/v1/namespaces/{name}")

    assert (answer.status, answer.reason) == (403, "Forbidden")
    assert answer.body["message"] == f'namespaces "{name}" is forbidden: this namespace may not be deleted'


def test_strict_decoding_names_every_unknown_and_repeated_field(api: ApiClient, deployments: str) -> None:
    body = json.dumps(deployment("a")).replace('"replicas": ', '"colour": "red", "replicas": 7, "replicas": ', 1)
    answer = api.request("POST", deployments, body.encode(), query={"fieldValidation": "Strict"})

    assert answer.status == 400
    expected = 'strict decoding error: unknown field "spec.colour", duplicate field "spec.replicas"'
    assert answer.message.endswith(expected)


def test_strict_apply_names_the_line_of_a_repeated_key(api: ApiClient, config_maps: str) -> None:
    body = b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  x: one\n  x: two\n"
    query = {"fieldValidation": "Strict", "fieldManager": "me"}
    answer = api.request("PATCH", f"{config_maps}/a", body, content_type=APPLY_PATCH, query=query)

    assert answer.status == 400
    assert 'line 7: key "x" already set in map' in answer.message
