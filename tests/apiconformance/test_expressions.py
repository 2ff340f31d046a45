"""Rules in CEL that definitions have for their custom resources."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.apiconformance.client import ApiClient, Json, unique
from tests.apiconformance.test_cluster import CRDS, foo
from tests.waiting import wait_until

SPEC: Json = {
    "type": "object",
    "properties": {
        "low": {"type": "integer"},
        "high": {"type": "integer", "x-kubernetes-validations": [{"rule": "self < 100"}]},
        "zone": {
            "type": "string",
            "maxLength": 20,
            "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "zone is immutable"}],
        },
        "max-surge": {"x-kubernetes-int-or-string": True},
        "namespace": {"type": "string", "maxLength": 20},
        "until": {"type": "string", "format": "date-time"},
        "ports": {
            "type": "array",
            "maxItems": 10,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": {"type": "string", "maxLength": 10}, "port": {"type": "integer"}},
                "x-kubernetes-validations": [
                    {"rule": "self.port >= oldSelf.port", "messageExpression": "'port of ' + self.name + ' fell'"}
                ],
            },
        },
        "labels": {
            "type": "object",
            "maxProperties": 10,
            "additionalProperties": {
                "type": "string",
                "maxLength": 20,
                "x-kubernetes-validations": [{"rule": "self.startsWith('a')", "reason": "FieldValueForbidden"}],
            },
        },
    },
    "x-kubernetes-validations": [
        {"rule": "!has(self.low) || !has(self.high) || self.low <= self.high"},
        {"rule": "!has(self.__namespace__) || self.__namespace__ != 'kube-system'", "fieldPath": ".namespace"},
        {
            "rule": "!has(self.max__dash__surge) || string(self.max__dash__surge).matches('^[0-9]+%?$')",
            "message": "no surge",
        },
        {"rule": "!has(self.until) || self.until.getFullYear() > 2000", "message": "too long ago"},
    ],
}


def definition(group: str, spec: Json) -> Json:
    root = {"type": "object", "properties": {"spec": spec}}
    root["x-kubernetes-validations"] = [
        {"rule": "self.metadata.name != 'forbidden'", "message": "another name, please"}
    ]
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": root}}
    names = {"plural": "foos", "kind": "Foo"}
    body: Json = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    body["metadata"] = {"name": f"foos.{group}"}
    return body | {"spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [version]}}


@pytest.fixture
def foos(api: ApiClient, namespace: str) -> Iterator[str]:
    group = f"{unique('rules')}.example.com"
    api.create(CRDS, definition(group, SPEC))
    path = f"/apis/{group}/v1/namespaces/{namespace}/foos"
    wait_until(lambda: api.get(path).status == 200, what="the resource served")
    yield path
    api.delete(f"{CRDS}/foos.{group}")


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"low": 1, "high": 2, "max-surge": 3, "labels": {"k": "abc"}, "until": "2026-01-01T00:00:00Z"}, None),
        ({"low": 3, "high": 2}, "spec: Invalid value: failed rule: !has(self.low) || !has(self.high) || self.low"),
        ({"high": 100}, "spec.high: Invalid value: 100: failed rule: self < 100"),
        ({"namespace": "kube-system"}, "spec.namespace: Invalid value: failed rule: !has(self.__namespace__)"),
        ({"max-surge": "much"}, "spec: Invalid value: no surge"),
        ({"until": "1999-01-01T00:00:00Z"}, "spec: Invalid value: too long ago"),
        ({"labels": {"k": "xyz"}}, "spec.labels[k]: Forbidden: failed rule: self.startsWith('a')"),
        ({"high": 100, "low": 200}, "spec.high: Invalid value: 100"),
    ],
    ids=["good", "two-fields", "own-value", "field-path", "int-or-string", "timestamp", "map", "two-rules"],
)
def test_rules_decide_which_objects_are_accepted(api: ApiClient, foos: str, spec: Json, expected: str | None) -> None:
    answer = api.post(foos, foo(foos, "a", **spec))

    if expected is None:
        assert answer.status == 201, answer.message
    else:
        assert (answer.status, answer.reason) == (422, "Invalid")
        assert expected in answer.message


def test_a_rule_of_the_whole_object_reads_its_name(api: ApiClient, foos: str) -> None:
    answer = api.post(foos, foo(foos, "forbidden"))

    assert answer.status == 422
    assert answer.message.endswith('"forbidden" is invalid: <nil>: Invalid value: another name, please')


def test_rules_about_the_old_value_hold_for_changes_only(api: ApiClient, foos: str) -> None:
    created = api.create(foos, foo(foos, "a", zone="x", ports=[{"name": "web", "port": 80}]))
    moved = api.put(f"{foos}/a", created | {"spec": created["spec"] | {"zone": "y"}})
    fallen = api.put(f"{foos}/a", created | {"spec": created["spec"] | {"ports": [{"name": "web", "port": 70}]}})
    added = {"ports": [{"name": "dns", "port": 53}, {"name": "web", "port": 81}]}

    assert 'spec.zone: Invalid value: "y": zone is immutable' in moved.message
    assert "spec.ports[0]: Invalid value: port of web fell" in fallen.message
    assert api.put(f"{foos}/a", created | {"spec": created["spec"] | added}).status == 200


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("self.size > 0", "undefined field 'size'"),
        ("self.low >", "Syntax error"),
        ("self.low + 1", "cel expression must evaluate to a bool"),
        ("self.low == 'a'", "found no matching overload for '_==_'"),
    ],
    ids=["unknown-field", "syntax", "not-a-bool", "types"],
)
def test_a_definition_whose_rules_do_not_compile_is_refused(api: ApiClient, rule: str, expected: str) -> None:
    group = f"{unique('broken')}.example.com"
    answer = api.post(CRDS, definition(group, SPEC | {"x-kubernetes-validations": [{"rule": rule}]}))

    assert (answer.status, answer.reason) == (422, "Invalid")
    assert "properties[spec].x-kubernetes-validations[0].rule: Invalid value: " in answer.message
    assert expected in answer.message
