"""Structural schemas: pruning, defaults, validation, and what server-side apply learns from them."""

from __future__ import annotations

import time
from typing import Any

import pytest

from bayplan.apiserver.kinds.crd_rules import validate_definition
from bayplan.apiserver.kinds.crd_schema import apply_defaults, drop_nulls, object_type, prune, to_type, validate

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "required": ["size"],
            "properties": {
                "size": {"type": "integer", "minimum": 1, "exclusiveMaximum": True, "maximum": 10, "multipleOf": 2},
                "color": {"type": "string", "default": "red", "enum": ["red", "blue"]},
                "text": {"type": "string", "minLength": 2, "maxLength": 4, "pattern": "^x"},
                "when": {"type": "string", "format": "date-time"},
                "ratio": {"type": "number", "exclusiveMinimum": True, "minimum": 0},
                "tags": {"type": "array", "maxItems": 2, "minItems": 1, "items": {"type": "string"}},
                "keyed": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {"type": "object", "properties": {"name": {"type": "string"}, "n": {"type": "integer"}}},
                },
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "map": {"type": "object", "additionalProperties": {"type": "integer"}},
                "maybe": {"type": "string", "nullable": True},
                "either": {"x-kubernetes-int-or-string": True},
                "one": {"type": "integer", "oneOf": [{"minimum": 5}, {"maximum": 3}]},
                "nested": {
                    "type": "object",
                    "default": {},
                    "properties": {"deep": {"type": "boolean", "default": True}},
                },
            },
        }
    },
}
SPEC = SCHEMA["properties"]["spec"]


def test_what_is_not_declared_is_pruned_except_where_it_is_kept() -> None:
    document: dict[str, Any] = {
        "apiVersion": "x/v1",
        "kind": "Foo",
        "metadata": {"anything": 1},
        "extra": 1,
        "spec": {"size": 2, "no": 1, "free": {"any": 1}, "map": {"a": 1}, "keyed": [{"name": "a", "no": 1}]},
    }

    assert prune(document, SCHEMA) == ["extra", "spec.no", "spec.keyed[0].no"]
    assert document["spec"] == {"size": 2, "free": {"any": 1}, "map": {"a": 1}, "keyed": [{"name": "a"}]}
    assert document["metadata"] == {"anything": 1}


def test_defaults_are_filled_in_at_every_depth() -> None:
    document: dict[str, Any] = {"spec": {"size": 2, "color": None}}
    drop_nulls(document, SCHEMA)
    apply_defaults(document, SCHEMA)

    assert document["spec"] == {"size": 2, "color": "red", "nested": {"deep": True}}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, "spec.size: Required value"),
        ({"size": "x"}, 'spec.size in body must be of type integer: "string"'),
        ({"size": 10}, "should be less than 10"),
        ({"size": 0}, "should be greater than or equal to 1"),
        ({"size": 3}, "should be a multiple of 2"),
        ({"size": 2, "color": "green"}, 'Unsupported value: "green": supported values: "blue", "red"'),
        ({"size": 2, "text": "x"}, "should be at least 2 chars long"),
        ({"size": 2, "text": "xxxxx"}, "Too long: may not be more than 4 bytes"),
        ({"size": 2, "text": "abc"}, "should match '^x'"),
        ({"size": 2, "when": "soon"}, "must be of type date-time"),
        ({"size": 2, "ratio": 0}, "should be greater than 0"),
        ({"size": 2, "tags": []}, "should have at least 1 items"),
        ({"size": 2, "tags": ["a", "b", "c"]}, "must have at most 2 items"),
        ({"size": 2, "keyed": [{"name": "a"}, {"name": "a"}]}, "Duplicate value"),
        ({"size": 2, "map": {"a": "b"}}, "spec.map.a in body must be of type integer"),
        ({"size": 2, "either": []}, "must be of type integer,string"),
        ({"size": 2, "one": 4}, "must validate one and only one schema (oneOf)"),
        ({"size": 2, "maybe": 5}, "must be of type string"),
    ],
)
def test_every_rule_is_checked(spec: dict[str, Any], expected: str) -> None:
    causes = validate({"spec": spec}, SCHEMA)

    assert any(expected in cause.as_text() for cause in causes), [cause.as_text() for cause in causes]


def test_a_good_object_has_no_problems() -> None:
    spec = {"size": 4, "maybe": None, "either": "80%", "ratio": 0.5, "when": "2026-01-31T12:00:00Z", "one": 2}

    assert validate({"spec": spec}, SCHEMA) == []


def test_merge_rules_are_translated() -> None:
    translated = to_type(SPEC)

    assert translated.fields["keyed"].type.list_type == "map"
    assert translated.fields["keyed"].type.list_keys == ("name",)
    assert translated.fields["tags"].type.list_type == "atomic"
    assert translated.fields["map"].type.kind == "map"
    assert translated.fields["size"].required
    assert object_type(SCHEMA, "x").fields["metadata"].type.name == "meta.v1.ObjectMeta"


@pytest.mark.parametrize("kind", ["set", "map"])
def test_lists_without_doubles_take_time_linear_in_their_length(kind: str) -> None:
    """Comparing each of 50,000 with all others would take minutes."""
    items = {"type": "object", "properties": {"name": {"type": "string"}}}
    schema = {"type": "array", "x-kubernetes-list-type": kind, "x-kubernetes-list-map-keys": ["name"], "items": items}
    value = [{"name": f"n{number}"} for number in range(50_000)]

    began = time.process_time()
    assert validate(value, schema, "spec") == []
    assert time.process_time() - began < 20
    assert [cause.field for cause in validate([*value, {"name": "n7"}], schema, "spec")] == ["spec[50000]"]


@pytest.mark.parametrize(("value", "doubles"), [([1, True], 0), ([1, 1], 1), (["1", 1], 0), ([{"a": 1}, {"a": 1}], 1)])
def test_equal_items_of_a_set_are_equal_as_json(value: list[Any], doubles: int) -> None:
    assert len(validate(value, {"type": "array", "x-kubernetes-list-type": "set"}, "spec")) == doubles


def test_a_pattern_takes_time_linear_in_the_text() -> None:
    schema = {"type": "string", "pattern": "^(a+)+$"}

    assert validate("a" * 20_000, schema) == []
    assert len(validate("a" * 20_000 + "!", schema)) == 1


@pytest.mark.parametrize("pattern", ["(", "*a", "[z-a]", "(?=x)"])
def test_a_pattern_that_is_none_is_a_problem_of_the_definition(pattern: str) -> None:
    assert problems_of({"type": "object", "pattern": pattern}) == ["spec.versions[0].schema.openAPIV3Schema.pattern"]


def test_a_list_whose_items_are_all_compared_is_refused_as_upstream() -> None:
    listed = {"type": "array", "uniqueItems": True, "items": {"type": "string"}}

    found = problems_of({"type": "object", "properties": {"list": listed}})
    assert found == ["spec.versions[0].schema.openAPIV3Schema.properties[list].uniqueItems"]


def problems_of(schema: dict[str, Any]) -> list[str]:
    """The fields that a definition of that schema is refused for."""
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "foos", "singular": "foo", "kind": "Foo", "listKind": "FooList"}
    definition: dict[str, Any] = {"metadata": {"name": "foos.e.com"}}
    definition["spec"] = {"group": "e.com", "scope": "Cluster", "names": names, "versions": [version]}

    return [cause.field for cause in validate_definition(definition, None)]
