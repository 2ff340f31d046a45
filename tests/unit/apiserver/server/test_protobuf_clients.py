"""Clients that speak protobuf, as client-go does by default."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.apiserver.driving import PODS, pod

from bayplan.apiserver.cluster import EmbeddedCluster
from bayplan.apiserver.kinds.protobuf import MEDIA_TYPE, read_protobuf, write_protobuf
from bayplan.apiserver.kinds.type_table import builtin_types, list_type
from bayplan.apiserver.server.inprocess import InProcessTransport

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@pytest.fixture
def transport(quiet: EmbeddedCluster) -> InProcessTransport:
    return quiet.in_process_transport()


async def test_an_object_read_and_written_back_over_protobuf_is_unchanged(transport: InProcessTransport) -> None:
    created = pod("a", tolerations=[{"key": "k", "operator": "Exists"}])
    created["metadata"]["resourceVersion"] = ""
    first = (await transport.request("POST", PODS, body=created)).json()
    sent = write_protobuf(first, builtin_types()["core.v1.Pod"])
    answer = await transport.request("PUT", f"{PODS}/a", body=sent, content_type=MEDIA_TYPE)

    assert (answer.status, answer.json()) == (200, first)


async def test_a_definition_with_a_schema_is_created_over_protobuf(transport: InProcessTransport) -> None:
    item = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 0}}, "required": ["n"]}
    spec = {
        "type": "object",
        "properties": {"items": {"type": "array", "items": item}, "on": {"type": "boolean", "default": False}},
        "additionalProperties": False,
    }
    schema = {"type": "object", "properties": {"spec": spec}}
    names = {"plural": "things", "singular": "thing", "kind": "Thing"}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    definition: dict[str, Any] = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]},
    }
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"].pop("additionalProperties")
    body = write_protobuf(definition, builtin_types()["apiextensions.v1.CustomResourceDefinition"])
    created = await transport.request("POST", DEFINITIONS, body=body, content_type=MEDIA_TYPE)
    thing: dict[str, Any] = {"metadata": {"name": "a"}, "spec": {"items": [{"n": 1}]}}
    path = "/apis/example.com/v1/namespaces/default/things"
    accepted = await transport.request("POST", path, body=thing)
    refused = await transport.request("POST", path, body={"metadata": {"name": "b"}, "spec": {"items": [{"n": -1}]}})

    assert created.status == 201
    assert created.json()["spec"]["versions"][0]["schema"]["openAPIV3Schema"] == schema
    assert (accepted.status, accepted.json()["spec"]["on"]) == (201, False)
    assert refused.status == 422


async def test_a_client_that_accepts_protobuf_alone_gets_it(transport: InProcessTransport) -> None:
    stored = (await transport.request("POST", PODS, body=pod("a"))).json()
    declared = builtin_types()["core.v1.Pod"]
    one = await transport.request("GET", f"{PODS}/a", headers={"accept": MEDIA_TYPE})
    many = await transport.request("GET", PODS, headers={"accept": MEDIA_TYPE})
    watch = await transport.request("GET", PODS, query={"watch": "1"}, headers={"accept": MEDIA_TYPE})
    either = await transport.request("GET", f"{PODS}/a", headers={"accept": f"{MEDIA_TYPE},application/json"})

    assert read_protobuf(one.body, declared)["metadata"]["uid"] == stored["metadata"]["uid"]
    assert [p["metadata"]["name"] for p in read_protobuf(many.body, list_type(declared))["items"]] == ["a"]
    assert one.headers["content-type"] == MEDIA_TYPE
    assert (watch.status, either.json()) == (406, stored)


async def test_tables_are_served_in_the_older_version_too(transport: InProcessTransport) -> None:
    accept = "application/json;as=Table;v=v1beta1;g=meta.k8s.io"
    answer = await transport.request("GET", PODS, headers={"accept": accept})

    assert (answer.json()["kind"], answer.json()["apiVersion"]) == ("Table", "meta.k8s.io/v1beta1")
