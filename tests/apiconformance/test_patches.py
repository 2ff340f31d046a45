"""Patches of all kinds, and server-side apply."""

from __future__ import annotations

import pytest

from tests.apiconformance.client import (
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_PATCH,
    ApiClient,
    Json,
    config_map,
    deployment,
    pod,
)


def test_a_merge_patch_merges_and_null_removes(api: ApiClient, config_maps: str) -> None:
    api.create(config_maps, config_map("a", {"keep": "1", "drop": "2"}))
    answer = api.patch(f"{config_maps}/a", {"data": {"drop": None, "new": "3"}}, MERGE_PATCH)

    assert answer.status == 200
    assert answer.body["data"] == {"keep": "1", "new": "3"}


def test_a_json_patch_runs_its_operations_in_order(api: ApiClient, config_maps: str) -> None:
    api.create(config_maps, config_map("a", {"x": "1"}))
    operations = [
        {"op": "test", "path": "/data/x", "value": "1"},
        {"op": "add", "path": "/data/y", "value": "2"},
        {"op": "move", "from": "/data/x", "path": "/data/z"},
        {"op": "replace", "path": "/data/y", "value": "3"},
    ]
    answer = api.patch(f"{config_maps}/a", operations, JSON_PATCH)

    assert answer.status == 200
    assert answer.body["data"] == {"y": "3", "z": "1"}


def test_a_json_patch_whose_test_fails_changes_nothing(api: ApiClient, config_maps: str) -> None:
    api.create(config_maps, config_map("a", {"x": "1"}))
    operations = [{"op": "add", "path": "/data/y", "value": "2"}, {"op": "test", "path": "/data/x", "value": "9"}]
    answer = api.patch(f"{config_maps}/a", operations, JSON_PATCH)

    assert (answer.status, answer.reason) == (422, "Invalid")
    assert api.get(f"{config_maps}/a").body["data"] == {"x": "1"}


def test_a_json_patch_that_removes_what_is_not_there_is_invalid(api: ApiClient, config_maps: str) -> None:
    api.create(config_maps, config_map("a", {"x": "1"}))
    answer = api.patch(f"{config_maps}/a", [{"op": "remove", "path": "/data/nope"}], JSON_PATCH)

    assert (answer.status, answer.reason) == (422, "Invalid")


def test_a_strategic_patch_merges_containers_by_name(api: ApiClient, deployments: str) -> None:
    api.create(deployments, deployment("a"))
    containers = [{"name": "main", "image": "example/app:2"}, {"name": "side", "image": "example/side:1"}]
    patch = {"spec": {"template": {"spec": {"containers": containers}}}}
    answer = api.patch(f"{deployments}/a", patch, STRATEGIC_PATCH)

    found = {one["name"]: one["image"] for one in answer.body["spec"]["template"]["spec"]["containers"]}
    assert found == {"main": "example/app:2", "side": "example/side:1"}


def test_a_strategic_patch_deletes_and_replaces_by_directive(api: ApiClient, deployments: str) -> None:
    body = deployment("a")
    body["spec"]["template"]["spec"]["containers"].append({"name": "side", "image": "example/side:1"})
    api.create(deployments, body)
    patch: Json = {"spec": {"template": {"spec": {"containers": [{"name": "side", "$patch": "delete"}]}}}}
    answer = api.patch(f"{deployments}/a", patch, STRATEGIC_PATCH)
    assert [one["name"] for one in answer.body["spec"]["template"]["spec"]["containers"]] == ["main"]

    patch = {"spec": {"template": {"metadata": {"labels": {"$patch": "replace", "app": "a", "only": "this"}}}}}
    answer = api.patch(f"{deployments}/a", patch, STRATEGIC_PATCH)
    assert answer.body["spec"]["template"]["metadata"]["labels"] == {"app": "a", "only": "this"}


def test_a_strategic_patch_retains_only_named_keys(api: ApiClient, deployments: str) -> None:
    api.create(deployments, deployment("a"))
    patch = {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}
    answer = api.patch(f"{deployments}/a", patch, STRATEGIC_PATCH)

    assert answer.status == 200
    assert answer.body["spec"]["strategy"] == {"type": "Recreate"}


def test_a_strategic_patch_orders_elements(api: ApiClient, deployments: str) -> None:
    body = deployment("a")
    body["spec"]["template"]["spec"]["containers"].append({"name": "side", "image": "example/side:1"})
    api.create(deployments, body)
    pod_spec = {
        "$setElementOrder/containers": [{"name": "side"}, {"name": "main"}],
        "containers": [{"name": "main", "image": "example/app:3"}],
    }
    answer = api.patch(f"{deployments}/a", {"spec": {"template": {"spec": pod_spec}}}, STRATEGIC_PATCH)

    containers = answer.body["spec"]["template"]["spec"]["containers"]
    assert [(one["name"], one["image"]) for one in containers] == [
        ("side", "example/side:1"),
        ("main", "example/app:3"),
    ]


def test_a_strategic_patch_removes_from_a_list_of_values(api: ApiClient, config_maps: str) -> None:
    api.create(config_maps, config_map("a", finalizers=["example.com/a", "example.com/b"]))
    patch = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/a"]}}
    answer = api.patch(f"{config_maps}/a", patch, STRATEGIC_PATCH)

    assert answer.body["metadata"]["finalizers"] == ["example.com/b"]
    api.patch(f"{config_maps}/a", {"metadata": {"finalizers": None}})


@pytest.mark.parametrize("content_type", [MERGE_PATCH, STRATEGIC_PATCH])
def test_a_patch_with_an_old_version_conflicts(api: ApiClient, config_maps: str, content_type: str) -> None:
    created = api.create(config_maps, config_map("a", {"n": "1"}))
    api.patch(f"{config_maps}/a", {"data": {"n": "2"}})
    patch = {"metadata": {"resourceVersion": created["metadata"]["resourceVersion"]}, "data": {"n": "3"}}
    answer = api.patch(f"{config_maps}/a", patch, content_type)

    assert (answer.status, answer.reason) == (409, "Conflict")


def test_an_unknown_patch_type_is_refused(api: ApiClient, config_maps: str) -> None:
    api.create(config_maps, config_map("a"))
    answer = api.patch(f"{config_maps}/a", {}, "application/json")

    assert (answer.status, answer.reason) == (415, "UnsupportedMediaType")


def test_a_patch_that_is_no_object_is_refused(api: ApiClient, config_maps: str) -> None:
    api.create(config_maps, config_map("a"))

    assert api.patch(f"{config_maps}/a", b"[1,", MERGE_PATCH).status == 400
    assert api.patch(f"{config_maps}/a", b'{"op": 1}', JSON_PATCH).status == 400


def test_a_patch_of_a_missing_object_is_not_found(api: ApiClient, config_maps: str) -> None:
    assert api.patch(f"{config_maps}/nope", {}).status == 404


# ---- server-side apply


def test_apply_creates_and_then_updates(api: ApiClient, config_maps: str) -> None:
    body = config_map("a", {"x": "1"})
    created = api.apply(f"{config_maps}/a", body, "alice")
    again = api.apply(f"{config_maps}/a", body, "alice")

    assert (created.status, again.status) == (201, 200)
    assert created.version == again.version
    managers = created.body["metadata"]["managedFields"]
    assert [(one["manager"], one["operation"]) for one in managers] == [("alice", "Apply")]
    assert managers[0]["fieldsV1"] == {"f:data": {"f:x": {}}}


def test_apply_conflicts_with_another_manager_unless_forced(api: ApiClient, config_maps: str) -> None:
    api.apply(f"{config_maps}/a", config_map("a", {"x": "1"}), "alice")
    answer = api.apply(f"{config_maps}/a", config_map("a", {"x": "2"}), "bob")

    assert (answer.status, answer.reason) == (409, "Conflict")
    assert answer.message == 'Apply failed with 1 conflict: conflict with "alice": .data.x'
    cause = {"reason": "FieldManagerConflict", "message": 'conflict with "alice"', "field": ".data.x"}
    assert answer.body["details"]["causes"] == [cause]
    forced = api.apply(f"{config_maps}/a", config_map("a", {"x": "2"}), "bob", force=True)
    assert forced.body["data"] == {"x": "2"}
    assert [one["manager"] for one in forced.body["metadata"]["managedFields"]] == ["bob"]


def test_two_managers_may_apply_the_same_value(api: ApiClient, config_maps: str) -> None:
    api.apply(f"{config_maps}/a", config_map("a", {"x": "1"}), "alice")
    answer = api.apply(f"{config_maps}/a", config_map("a", {"x": "1", "y": "2"}), "bob")

    assert answer.status == 200
    managers = {one["manager"]: one["fieldsV1"] for one in answer.body["metadata"]["managedFields"]}
    assert managers == {"alice": {"f:data": {"f:x": {}}}, "bob": {"f:data": {"f:x": {}, "f:y": {}}}}


def test_what_is_no_longer_applied_is_removed_unless_somebody_else_owns_it(api: ApiClient, config_maps: str) -> None:
    api.apply(f"{config_maps}/a", config_map("a", {"mine": "1", "shared": "2"}), "alice")
    api.apply(f"{config_maps}/a", config_map("a", {"shared": "2"}), "bob")
    answer = api.apply(f"{config_maps}/a", config_map("a", {"new": "3"}), "alice")

    assert answer.body["data"] == {"shared": "2", "new": "3"}


def test_a_plain_update_takes_ownership_and_apply_conflicts_with_it(api: ApiClient, config_maps: str) -> None:
    api.apply(f"{config_maps}/a", config_map("a", {"x": "1"}), "alice")
    api.patch(f"{config_maps}/a", {"data": {"x": "2"}}, query={"fieldManager": "editor"})
    answer = api.apply(f"{config_maps}/a", config_map("a", {"x": "3"}), "alice")

    assert answer.status == 409
    assert answer.message.startswith('Apply failed with 1 conflict: conflict with "editor" using v1')
    assert answer.message.endswith(": .data.x")


def test_created_objects_belong_to_their_creator(api: ApiClient, config_maps: str) -> None:
    created = api.post(config_maps, config_map("a", {"x": "1"}), query={"fieldManager": "maker"})
    managers = created.body["metadata"]["managedFields"]

    assert [(one["manager"], one["operation"]) for one in managers] == [("maker", "Update")]
    assert "f:x" in managers[0]["fieldsV1"]["f:data"]
    conflict = api.apply(f"{config_maps}/a", config_map("a", {"x": "2"}), "alice")
    assert conflict.status == 409


def test_the_manager_of_a_write_without_one_is_the_user_agent(api: ApiClient, config_maps: str) -> None:
    created = api.create(config_maps, config_map("a"))

    assert created["metadata"].get("managedFields", [{"manager": "conformance"}])[0]["manager"] == "conformance"


def test_apply_merges_lists_of_containers_by_name(api: ApiClient, deployments: str) -> None:
    api.apply(f"{deployments}/a", deployment("a"), "alice")
    other = deployment("a")
    other["spec"] = {"template": {"spec": {"containers": [{"name": "side", "image": "example/side:1"}]}}}
    other["spec"]["selector"] = {"matchLabels": {"app": "a"}}
    other["spec"]["template"]["metadata"] = {"labels": {"app": "a"}}
    answer = api.apply(f"{deployments}/a", other, "bob")

    assert answer.status == 200, answer.body
    containers = answer.body["spec"]["template"]["spec"]["containers"]
    assert sorted(one["name"] for one in containers) == ["main", "side"]
    removed = api.apply(f"{deployments}/a", deployment("a"), "bob")
    assert [one["name"] for one in removed.body["spec"]["template"]["spec"]["containers"]] == ["main"]


@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        ({"containers": [{"name": "new", "image": "e/n:1"}]}, "new a b c"),
        ({"containers": [{"name": "c", "image": "e/c:2"}, {"name": "new", "image": "e/n:1"}]}, "a b c new"),
        ({"containers": [{"name": "new", "image": "e/n:1"}, {"name": "b", "image": "e/b:2"}]}, "new a b c"),
        ({"$setElementOrder/containers": [{"name": "c"}, {"name": "a"}]}, "b c a"),
        ({"containers": [{"name": "b", "$patch": "delete"}]}, "a c"),
    ],
)
def test_a_strategic_patch_orders_lists_by_the_patch(
    api: ApiClient, deployments: str, patch: Json, expected: str
) -> None:
    body = deployment("a")
    body["spec"]["template"]["spec"]["containers"] = [{"name": name, "image": f"e/{name}:1"} for name in "abc"]
    api.create(deployments, body)
    answer = api.patch(f"{deployments}/a", {"spec": {"template": {"spec": patch}}}, STRATEGIC_PATCH)

    assert answer.status == 200, answer.body
    containers = answer.body["spec"]["template"]["spec"]["containers"]
    assert " ".join(one["name"] for one in containers) == expected


def test_apply_needs_a_manager_and_no_managed_fields(api: ApiClient, config_maps: str) -> None:
    unnamed = api.request("PATCH", f"{config_maps}/a", config_map("a"), content_type="application/apply-patch+yaml")
    assert unnamed.status in (400, 422)
    body = config_map("a", managedFields=[{"manager": "x", "operation": "Apply"}])
    assert api.apply(f"{config_maps}/a", body, "alice").status == 400


def test_apply_refuses_fields_that_the_schema_lacks(api: ApiClient, deployments: str) -> None:
    body = deployment("a")
    body |= {"apiVersion": "apps/v1", "kind": "Deployment"}
    body["spec"]["colour"] = "red"
    answer = api.apply(f"{deployments}/a", body, "me")

    assert answer.status == 500
    about = "(/a; apps/v1, Kind=Deployment)"
    assert answer.message == f"failed to create typed patch object {about}: .spec.colour: field not declared in schema"


def test_apply_to_the_object_owns_no_status(api: ApiClient, pods: str) -> None:
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": pod("a")["spec"]}
    api.apply(f"{pods}/a", body, "somebody")
    answer = api.apply(f"{pods}/a", body | {"status": {"nominatedNodeName": "n1"}}, "somebody")

    assert answer.status == 200, answer.body
    assert "nominatedNodeName" not in answer.body["status"]
    mine = next(one for one in answer.body["metadata"]["managedFields"] if one["manager"] == "somebody")
    assert mine["fieldsV1"].keys() == {"f:spec"}


def test_apply_to_status_owns_only_status(api: ApiClient, pods: str) -> None:
    api.create(pods, pod("a"))
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "status": {"nominatedNodeName": "n1"}}
    answer = api.apply(f"{pods}/a/status", body, "scheduler")

    assert answer.status == 200, answer.body
    assert answer.body["status"]["nominatedNodeName"] == "n1"
    mine = [one for one in answer.body["metadata"]["managedFields"] if one["manager"] == "scheduler"]
    assert mine[0]["subresource"] == "status"
    assert mine[0]["fieldsV1"] == {"f:status": {"f:nominatedNodeName": {}}}


def test_what_another_manager_owns_below_a_field_stays_when_the_field_is_no_longer_applied(
    api: ApiClient, config_maps: str
) -> None:
    path, bare = f"{config_maps}/a", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    assert api.apply(path, bare | {"data": {"k": "v"}}, "one").status == 201
    assert api.apply(path, bare | {"data": {"k": "w", "l": "x"}}, "two", force=True).status == 200
    assert api.apply(path, bare | {"data": {}}, "one").status == 200
    answer = api.apply(path, bare, "one")

    assert (answer.status, answer.body.get("data")) == (200, {"k": "w", "l": "x"})


def test_one_empty_entry_forgets_all_owners(api: ApiClient, config_maps: str) -> None:
    path = f"{config_maps}/a"
    applied = config_map("a", {"k": "v"})
    assert api.apply(path, applied, "one").status == 201
    reset = api.patch(path, {"metadata": {"managedFields": [{}]}})

    assert reset.status == 200
    assert "managedFields" not in reset.body["metadata"]
    answer = api.apply(path, config_map("a", {"k": "w"}), "two")
    assert (answer.status, answer.reason) == (409, "Conflict")
    assert 'conflict with "before-first-apply" using v1: .data.k' in answer.message


@pytest.mark.parametrize("content_type", [MERGE_PATCH, STRATEGIC_PATCH])
def test_a_patch_to_another_type_is_invalid(api: ApiClient, config_maps: str, content_type: str) -> None:
    api.create(config_maps, config_map("a"))
    wrong = api.patch(f"{config_maps}/a", {"data": {"k": 5}}, content_type)
    strict = api.patch(f"{config_maps}/a", {"more": 5}, content_type, query={"fieldValidation": "Strict"})

    assert (wrong.status, wrong.reason) == (422, "Invalid")
    assert (strict.status, strict.reason) == (422, "Invalid")
    assert 'strict decoding error: unknown field "more"' in strict.message


@pytest.mark.parametrize(("option", "value"), [("force", "true"), ("fieldManager", "a\tb")])
def test_patches_have_options_of_their_own(api: ApiClient, config_maps: str, option: str, value: str) -> None:
    api.create(config_maps, config_map("a"))
    answer = api.patch(f"{config_maps}/a", {}, query={option: value})

    assert (answer.status, answer.reason) == (422, "Invalid")
    assert answer.message.startswith(f'PatchOptions.meta.k8s.io "" is invalid: {option}: ')
