"""Schemas out of types."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from msgspec import Meta

from bayplan.deploy.crds import SchemaError, crd_document, crd_documents, schema_of
from bayplan.framework import CustomResource, ResourcePart
from bayplan.plugins.community.node_crd_resource_fit import ClusterScopedResource
from bayplan.plugins.distributed_jobs import DistributedJob, NetworkMetrics


class Mode(Enum):
    FAST = "Fast"
    SLOW = "Slow"


class Part(ResourcePart):
    """An inner part."""

    weight: Annotated[int, Meta(ge=0, le=100, description="How much it counts.")]
    share: Annotated[float, Meta(gt=0, lt=1)] = 0.5
    name: Annotated[str, Meta(min_length=1, max_length=63, pattern="^[a-z]+$")] = "a"
    mode: Mode = Mode.FAST
    size: Literal["S", "M"] = "S"
    amount: int | str = 0
    ratio: int | float = 0
    anything: Any = None
    items: Annotated[list[str], Meta(max_length=3)] | None = None
    table: dict[str, dict[str, bool]] = {}
    either: int | bool = 0


class Thing(CustomResource, group="things.example.com", version="v1", plural="things"):
    """A thing."""

    spec: Part
    status: Part | None = None


class ThingV2(CustomResource, group="things.example.com", version="v2", plural="things", kind="Thing"):
    spec: Part


class OtherThing(CustomResource, group="things.example.com", version="v1", plural="things", kind="Thing"):
    spec: dict[str, int]


class Tree(ResourcePart):
    children: list[Tree] | None = None


class Forest(CustomResource, group="things.example.com", version="v1", plural="forests"):
    spec: Tree


class Odd(CustomResource, group="things.example.com", version="v1", plural="odds"):
    spec: Annotated[bool, Meta(max_length=3)]


class Strange(CustomResource, group="things.example.com", version="v1", plural="stranges"):
    spec: bytes


def test_every_field_has_its_schema() -> None:
    schema = schema_of(Thing)
    part = schema["properties"]["spec"]

    assert schema["description"] == "A thing."
    assert schema["required"] == ["spec"]
    assert part["required"] == ["weight"]
    assert part["properties"] == {
        "weight": {
            "type": "integer",
            "format": "int64",
            "minimum": 0,
            "maximum": 100,
            "description": "How much it counts.",
        },
        "share": {
            "type": "number",
            "minimum": 0,
            "exclusiveMinimum": True,
            "maximum": 1,
            "exclusiveMaximum": True,
        },
        "name": {"type": "string", "minLength": 1, "maxLength": 63, "pattern": "^[a-z]+$"},
        "mode": {"type": "string", "enum": ["Fast", "Slow"]},
        "size": {"type": "string", "enum": ["M", "S"]},
        "amount": {"x-kubernetes-int-or-string": True},
        "ratio": {"type": "number"},
        "anything": {"x-kubernetes-preserve-unknown-fields": True},
        "items": {"type": "array", "items": {"type": "string"}, "maxItems": 3, "nullable": True},
        "table": {
            "type": "object",
            "additionalProperties": {"type": "object", "additionalProperties": {"type": "boolean"}},
        },
        "either": {"x-kubernetes-preserve-unknown-fields": True},
    }


def test_a_status_makes_a_subresource() -> None:
    assert crd_document(Thing)["spec"]["versions"][0]["subresources"] == {"status": {}}
    assert "subresources" not in crd_document(ThingV2)["spec"]["versions"][0]


def test_versions_of_one_resource_share_a_definition() -> None:
    [document] = crd_documents([Thing, ThingV2, Thing])

    assert [(v["name"], v["storage"]) for v in document["spec"]["versions"]] == [("v1", True), ("v2", False)]


def test_two_types_of_one_version_are_refused() -> None:
    with pytest.raises(SchemaError, match="declared by two types with different fields"):
        crd_documents([Thing, OtherThing])


def test_a_type_inside_itself_and_an_odd_field_are_refused_with_what_to_use() -> None:
    with pytest.raises(SchemaError, match="`Tree` contains itself"):
        schema_of(Forest)
    with pytest.raises(SchemaError, match="has no place in a custom resource"):
        schema_of(Strange)
    with pytest.raises(SchemaError, match="a field of `Odd` cannot be read"):
        schema_of(Odd)


def test_groups_of_kubernetes_admit_that_nobody_approved() -> None:
    assert "annotations" not in crd_document(Thing)["metadata"]
    annotations = crd_document(ClusterScopedResource)["metadata"]["annotations"]
    assert annotations["api-approved.kubernetes.io"].startswith("unapproved")


def test_the_definitions_of_the_write_ups_have_their_names() -> None:
    names = {document["metadata"]["name"] for document in crd_documents([NetworkMetrics, DistributedJob])}

    assert names == {"networkmetrics.network.example.com", "distributedjobs.batch.ddl.com"}
    spec = crd_document(NetworkMetrics)["spec"]
    assert (spec["names"]["shortNames"], spec["names"]["singular"]) == (["nm"], "networkmetric")
    metrics = spec["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["metrics"]
    assert metrics["x-kubernetes-preserve-unknown-fields"] is True
