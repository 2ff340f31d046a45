"""ValidatingAdmissionPolicies."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.apiconformance.client import MERGE_PATCH, ApiClient, Json, config_map, unique
from tests.waiting import wait_until

GROUP = "/apis/admissionregistration.k8s.io/v1"
POLICIES, BINDINGS = f"{GROUP}/validatingadmissionpolicies", f"{GROUP}/validatingadmissionpolicybindings"
RULE: Json = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["*"]}
Enforce = Callable[..., str]


def is_probe(name: str) -> Json:
    """A validation that shows that the policy is in force: it refuses objects of one name."""
    return {"expression": f"request.name != '{name}'", "message": "in force"}


@pytest.fixture
def enforce(api: ApiClient, namespace: str) -> Iterator[Enforce]:
    """Creates a policy for config maps in the namespace of the test, with a binding, and waits until it is in force."""
    made: list[str] = []

    def create(*validations: Json, binding: Json | None = None, **spec: object) -> str:
        name = unique("policy")
        match = {"resourceRules": [RULE]}
        probe = f"probe-{name}"
        rules = [is_probe(probe), *validations]
        api.create(
            POLICIES, {"metadata": {"name": name}, "spec": {"matchConstraints": match, "validations": rules} | spec}
        )
        made.append(f"{POLICIES}/{name}")
        near = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}}
        body = {"policyName": name, "validationActions": ["Deny"], "matchResources": near} | (binding or {})
        api.create(BINDINGS, {"metadata": {"name": name}, "spec": body})
        made.append(f"{BINDINGS}/{name}")

        def in_force() -> bool:
            answer = api.post(f"/api/v1/namespaces/{namespace}/configmaps?dryRun=All", config_map(probe))
            return answer.status != 201 or "in force" in answer.headers.get("warning", "")

        wait_until(in_force, what="the policy in force")
        return name

    yield create
    for path in reversed(made):
        api.delete(path)


def test_a_write_that_breaks_an_expression_is_refused(api: ApiClient, config_maps: str, enforce: Enforce) -> None:
    name = enforce({"expression": "!has(object.data) || size(object.data) < 2"})
    answer = api.post(config_maps, config_map("a", {"x": "1", "y": "2"}))

    assert (answer.status, answer.reason) == (422, "Invalid")
    assert answer.message == (
        f"configmaps \"a\" is forbidden: ValidatingAdmissionPolicy '{name}' with binding '{name}' denied request: "
        "failed expression: !has(object.data) || size(object.data) < 2"
    )
    assert api.post(config_maps, config_map("a", {"x": "1"})).status == 201


def test_reason_and_message_are_those_of_the_validation(api: ApiClient, config_maps: str, enforce: Enforce) -> None:
    said = "'no ' + object.metadata.name + ' for ' + variables.who"
    enforce(
        {"expression": "object.metadata.name != 'b'", "messageExpression": said, "reason": "Forbidden"},
        variables=[{"name": "who", "expression": "request.operation.lowerAscii()"}],
    )
    answer = api.post(config_maps, config_map("b"))

    assert (answer.status, answer.reason) == (403, "Forbidden")
    assert answer.message.endswith("denied request: no b for create")


def test_changes_and_deletions_are_looked_at_too(api: ApiClient, config_maps: str, enforce: Enforce) -> None:
    enforce(
        {"expression": "oldObject == null || request.operation != 'UPDATE' || object.data.x >= oldObject.data.x"},
        {"expression": "request.operation != 'DELETE' || oldObject.data.x == '9'", "message": "not yet"},
    )
    api.create(config_maps, config_map("a", {"x": "5"}))
    fallen = api.patch(f"{config_maps}/a", {"data": {"x": "4"}}, MERGE_PATCH)
    early = api.delete(f"{config_maps}/a")

    assert "failed expression" in fallen.message
    assert early.message.endswith("not yet")
    assert api.patch(f"{config_maps}/a", {"data": {"x": "9"}}, MERGE_PATCH).status == 200
    assert api.delete(f"{config_maps}/a").status == 200


def test_an_error_is_a_refusal_unless_the_policy_ignores_failures(
    api: ApiClient, config_maps: str, enforce: Enforce
) -> None:
    enforce({"expression": "object.data.missing == 'x'"})
    answer = api.post(config_maps, config_map("a", {"x": "1"}))

    assert answer.status == 422
    assert "expression 'object.data.missing == 'x'' resulted in error: no such key: missing" in answer.message


def test_failures_are_ignored_where_the_policy_says_so(api: ApiClient, config_maps: str, enforce: Enforce) -> None:
    enforce({"expression": "object.data.missing == 'x'"}, failurePolicy="Ignore")

    assert api.post(config_maps, config_map("a", {"x": "1"})).status == 201


def test_a_binding_that_warns_lets_the_write_pass(api: ApiClient, config_maps: str, enforce: Enforce) -> None:
    name = enforce({"expression": "request.name != 'a'", "message": "hm"}, binding={"validationActions": ["Warn"]})
    answer = api.post(config_maps, config_map("a"))

    assert answer.status == 201
    assert (
        f"Validation failed for ValidatingAdmissionPolicy '{name}' with binding '{name}': hm"
        in (answer.headers["warning"])
    )


def test_conditions_limit_what_a_policy_is_about(api: ApiClient, config_maps: str, enforce: Enforce) -> None:
    condition = {
        "name": "marked",
        "expression": "request.name.startsWith('probe') || 'mark' in object.metadata.?labels.orValue({})",
    }
    enforce({"expression": "false", "message": "marked"}, matchConditions=[condition])

    assert api.post(config_maps, config_map("a")).status == 201
    marked = config_map("b")
    marked["metadata"]["labels"] = {"mark": "x"}
    assert api.post(config_maps, marked).message.endswith("denied request: marked")


def test_parameters_come_from_the_object_that_the_binding_names(
    api: ApiClient, namespace: str, config_maps: str, enforce: Enforce
) -> None:
    api.create(config_maps, config_map("limits", {"most": "3"}))
    fits = "int(object.data.size) <= int(params.data.most)"
    reference = {"name": "limits", "namespace": namespace, "parameterNotFoundAction": "Deny"}
    enforce(
        {"expression": f"!has(object.data) || !('size' in object.data) || {fits}"},
        paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
        binding={"paramRef": reference},
    )

    assert api.post(config_maps, config_map("a", {"size": "4"})).status == 422
    assert api.post(config_maps, config_map("a", {"size": "3"})).status == 201


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"validations": [{"expression": "object.x ="}]}, "spec.validations[0].expression: Invalid value"),
        ({"validations": [{"expression": "nothing.x == 1"}]}, "undeclared reference to 'nothing'"),
        ({"validations": [{"expression": "1 + 1"}]}, "must evaluate to bool"),
        ({"validations": []}, "spec.validations: Required value"),
        ({"matchConstraints": None}, "spec.matchConstraints: Required value"),
    ],
    ids=["syntax", "unknown-name", "not-a-bool", "no-validation", "no-constraints"],
)
def test_a_policy_that_cannot_work_is_refused(api: ApiClient, change: Json, expected: str) -> None:
    spec: Json = {"matchConstraints": {"resourceRules": [RULE]}, "validations": [{"expression": "true"}]}
    answer = api.post(POLICIES, {"metadata": {"name": unique("policy")}, "spec": spec | change})

    assert (answer.status, answer.reason) == (422, "Invalid")
    assert expected in answer.message
