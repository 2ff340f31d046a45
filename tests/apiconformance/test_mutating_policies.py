"""MutatingAdmissionPolicies: what their expressions make of objects, and which expressions are refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.apiconformance.client import MERGE_PATCH, ApiClient, Json, config_map, deployment, unique
from tests.waiting import wait_until

GROUP = "/apis/admissionregistration.k8s.io/v1"
POLICIES, BINDINGS = f"{GROUP}/mutatingadmissionpolicies", f"{GROUP}/mutatingadmissionpolicybindings"
PROBE = "Object{metadata: Object.metadata{annotations: {'in-force': 'yes'}}}"
Enforce = Callable[..., str]


def rule(group: str, resource: str) -> Json:
    return {"apiGroups": [group], "apiVersions": ["v1"], "resources": [resource], "operations": ["CREATE", "UPDATE"]}


def applies(expression: str) -> Json:
    return {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}


def patches(expression: str) -> Json:
    return {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}


def policy(name: str, *mutations: Json, **spec: object) -> Json:
    match = {"resourceRules": [rule("", "configmaps"), rule("apps", "deployments")]}
    body = {"matchConstraints": match, "mutations": list(mutations), "reinvocationPolicy": "Never"}
    return {"metadata": {"name": name}, "spec": body | spec}


@pytest.fixture
def enforce(api: ApiClient, namespace: str) -> Iterator[Enforce]:
    """Creates a policy for the namespace of the test, with a binding, and waits until it is in force."""
    made: list[str] = []

    def create(*mutations: Json, **spec: object) -> str:
        name = unique("mutating")
        # The probe is alone in force until the policy has its other mutations.
        api.create(POLICIES, policy(name, applies(PROBE)))
        made.append(f"{POLICIES}/{name}")
        near = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}}
        api.create(BINDINGS, {"metadata": {"name": name}, "spec": {"policyName": name, "matchResources": near}})
        made.append(f"{BINDINGS}/{name}")
        shown = api.get(f"{POLICIES}/{name}").body
        marked = f"Object{{metadata: Object.metadata{{annotations: {{'policy': '{name}'}}}}}}"
        shown["spec"] |= {"mutations": [applies(marked), *mutations]} | spec
        assert api.put(f"{POLICIES}/{name}", shown).status == 200
        path = f"/api/v1/namespaces/{namespace}/configmaps?dryRun=All"

        def in_force() -> bool:
            answer = api.post(path, config_map("probe"))
            annotations = answer.body.get("metadata", {}).get("annotations", {})
            return answer.status != 201 or annotations.get("policy") == name

        wait_until(in_force, what="the policy in force")
        return name

    yield create
    for path in reversed(made):
        api.delete(path)


def test_configurations_are_merged_into_the_object(api: ApiClient, deployments: str, enforce: Enforce) -> None:
    container = "Object.spec.template.spec.containers{name: 'side', image: 'example/side:' + object.spec.template.spec"
    enforce(
        applies("Object{spec: Object.spec{replicas: object.spec.replicas * 7, paused: true}}"),
        applies(
            "Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{containers: ["
            + container
            + ".containers[0].name}]}}}}"
        ),
    )
    created = api.create(deployments, deployment("a", replicas=2))

    assert (created["spec"]["replicas"], created["spec"]["paused"]) == (14, True)
    images = {one["name"]: one["image"] for one in created["spec"]["template"]["spec"]["containers"]}
    assert images == {"main": "example/app:1", "side": "example/side:main"}
    assert created["spec"]["template"]["spec"]["containers"][1]["terminationMessagePath"] == "/dev/termination-log"


def test_operations_of_a_patch_run_in_order(api: ApiClient, config_maps: str, enforce: Enforce) -> None:
    enforce(
        patches(
            "[JSONPatch{op: 'test', path: '/data/x', value: '1'},"
            " JSONPatch{op: 'add', path: variables.notes + jsonpatch.escapeKey('a.b/x'), value: object.data.x + '!'},"
            " JSONPatch{op: 'replace', path: '/data/x', value: '2'},"
            " JSONPatch{op: 'add', path: '/metadata/labels', value: {'owner': 'policy'}}]"
        ),
        variables=[{"name": "notes", "expression": "'/metadata/annotations/'"}],
    )
    changed = api.create(config_maps, config_map("a", {"x": "1"}))
    other = api.create(config_maps, config_map("b", {"x": "7"}))

    assert changed["metadata"]["labels"] == {"owner": "policy"}
    assert changed["metadata"]["annotations"]["a.b/x"] == "1!"
    assert changed["data"] == {"x": "2"}
    assert other["data"] == {"x": "7"}
    assert "labels" not in other["metadata"]


def test_updates_and_conditions_are_looked_at(api: ApiClient, config_maps: str, enforce: Enforce) -> None:
    enforce(
        applies("Object{metadata: Object.metadata{labels: {'last': variables.was}}}"),
        matchConditions=[{"name": "update", "expression": "request.operation == 'UPDATE' || request.name == 'probe'"}],
        variables=[{"name": "was", "expression": "oldObject == null ? 'none' : oldObject.data.x"}],
    )
    created = api.create(config_maps, config_map("a", {"x": "1"}))
    updated = api.patch(f"{config_maps}/a", {"data": {"x": "2"}}, MERGE_PATCH)

    assert "labels" not in created["metadata"]
    assert updated.body["metadata"]["labels"] == {"last": "1"}


def test_fields_are_left_out_where_their_value_is_absent(api: ApiClient, config_maps: str, enforce: Enforce) -> None:
    enforce(applies("Object{metadata: Object.metadata{?labels: object.metadata.?annotations, generateName: 'kept-'}}"))
    plain = api.create(config_maps, config_map("a"))
    marked = api.create(config_maps, config_map("b", annotations={"note": "x"}))

    assert plain["metadata"]["labels"].keys() == {"policy"}
    assert marked["metadata"]["labels"].keys() == {"note", "policy"}
    assert plain["metadata"]["generateName"] == "kept-"


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("Object{spec: Object.spec{selector: Object.spec.selector{matchLabels: {'a': 'b'}}}}", "may not mutate atomic"),
        ("Object{spec: Object.wrong{replicas: 1}}", 'unexpected type name "Object.wrong", expected "Object.spec"'),
        ("Object{spec: Object.spec{replicas: object.spec.nothing}}", "no such key: nothing"),
    ],
)
def test_a_policy_that_fails_refuses_the_write_unless_failures_are_ignored(
    api: ApiClient, deployments: str, enforce: Enforce, expression: str, expected: str
) -> None:
    only = [{"name": "deployments", "expression": "request.kind.kind == 'Deployment' || request.name == 'probe'"}]
    guarded = f"has(object.spec) ? {expression} : Object{{}}"
    name = enforce(applies(guarded), matchConditions=only)
    answer = api.post(deployments, deployment("a"))
    assert (answer.status, answer.reason) == (403, "Invalid")
    assert answer.message.startswith(f"policy '{name}' with binding '{name}' denied request: ")
    assert expected in answer.message

    shown = api.get(f"{POLICIES}/{name}").body
    shown["spec"]["failurePolicy"] = "Ignore"
    assert api.put(f"{POLICIES}/{name}", shown).status == 200
    wait_until(lambda: api.post(deployments + "?dryRun=All", deployment("a")).status == 201, what="failures ignored")


@pytest.mark.parametrize(
    ("mutation", "expected"),
    [
        (applies("Object{spec: Object.spec{"), "Syntax error"),
        (applies("Thing{a: 1}"), "undeclared reference to 'Thing'"),
        (applies("{'a': 'b'}"), "must evaluate to Object"),
        (applies(""), "spec.mutations[0].applyConfiguration.expression: Required value"),
        (patches("[JSONPatch{op: 1}]"), "expected type of field 'op' is 'string' but provided type is 'int'"),
        (patches("JSONPatch{op: 'add'}"), "must evaluate to list(JSONPatch)"),
        ({"patchType": "JSONPatch"}, "must be specified when patchType is JSONPatch"),
        ({"patchType": "Magic"}, 'spec.mutations[0].patchType: Unsupported value: "Magic"'),
    ],
)
def test_a_bad_mutation_is_invalid(api: ApiClient, mutation: Json, expected: str) -> None:
    answer = api.post(POLICIES, policy(unique("bad"), mutation))

    assert (answer.status, answer.reason) == (422, "Invalid")
    assert expected in answer.message


def test_deletions_cannot_be_mutated(api: ApiClient) -> None:
    match = {"resourceRules": [rule("", "configmaps") | {"operations": ["DELETE"]}]}
    answer = api.post(POLICIES, policy(unique("bad"), applies(PROBE), matchConstraints=match))

    assert answer.status == 422
    assert 'Unsupported value: "DELETE": supported values: "*", "CONNECT", "CREATE", "UPDATE"' in answer.message
