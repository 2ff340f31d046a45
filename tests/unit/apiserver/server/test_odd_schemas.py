"""Definitions whose rules are of another type than the API declares are refused over the wire; nothing fails later."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from bayplan.apiserver.cluster import EmbeddedCluster

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
THINGS = "/apis/e.com/v1/things"


async def call(cluster: EmbeddedCluster, path: str, document: Any) -> tuple[int, Any]:
    """POST over a connection of its own; a text as it is."""
    host, _, port = cluster.url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    body = (document if isinstance(document, str) else json.dumps(document)).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {cluster.token}\r\nConnection: close\r\n"
    writer.write(f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return int(answer.split()[1]), json.loads(answer.partition(b"\r\n\r\n")[2])


def definition(field: dict[str, Any]) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"value": field}}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    spec = {"group": "e.com", "scope": "Cluster", "names": {"plural": "things", "kind": "Thing"}, "versions": [version]}
    metadata = {"name": "things.e.com"}
    kind = "CustomResourceDefinition"
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": kind, "metadata": metadata, "spec": spec}


@pytest.mark.parametrize(
    ("rule", "given", "value"),
    [
        ("minimum", "/", 1),
        ("maximum", [], 1),
        ("multipleOf", {}, 1),
        ("pattern", 7, "seven"),
        ("maxLength", "many", "seven"),
        ("enum", "seven", "seven"),
    ],
)
async def test_a_rule_of_another_type_is_refused_with_the_definition(rule: str, given: Any, value: Any) -> None:
    kind = "string" if isinstance(value, str) else "integer"
    cluster = EmbeddedCluster(simulate=False, tls=False)
    await cluster.start()
    try:
        status, answer = await call(cluster, CRDS, definition({"type": kind, rule: given}))
        later, _ = await call(cluster, THINGS, {"metadata": {"name": "t"}, "spec": {"value": value}})
        right, _ = await call(cluster, CRDS, definition({"type": kind}))
    finally:
        await cluster.stop()

    assert (status, answer["reason"]) == (400, "BadRequest")
    assert rule in answer["message"]
    assert later == 404
    assert right == 201


async def test_a_cruel_pattern_and_a_long_list_hold_nobody_up_over_the_wire() -> None:
    """A matcher that tries every way, or a list whose items are all compared, would take years for these values."""
    pattern = definition({"type": "string", "pattern": "^(a+)+$"})
    listed = definition({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}})
    values = [str(number) for number in range(100_000)]
    cluster = EmbeddedCluster(simulate=False, tls=False)
    await cluster.start()
    try:
        async with asyncio.timeout(60):
            assert (await call(cluster, CRDS, pattern))[0] == 201
            bad, _ = await call(cluster, THINGS, {"metadata": {"name": "t"}, "spec": {"value": "a" * 50_000 + "!"}})
            listed["metadata"]["name"] = "lists.e.com"
            listed["spec"]["names"] = {"plural": "lists", "kind": "Listed"}
            assert (await call(cluster, CRDS, listed))[0] == 201
            good, _ = await call(
                cluster, "/apis/e.com/v1/lists", {"metadata": {"name": "t"}, "spec": {"value": values}}
            )
    finally:
        await cluster.stop()

    assert (bad, good) == (422, 201)


@pytest.mark.parametrize("depth", [600, 900, 100_000])
async def test_an_object_that_is_nested_too_deep_is_a_bad_request(depth: int) -> None:
    nested: Any = {}
    for _ in range(min(depth, 900)):
        nested = {"a": nested}
    text = json.dumps({"metadata": {"name": "t"}, "spec": nested})
    if depth > 900:
        text = text.replace('"a": {}', '"a": ' + "[" * depth + "]" * depth)
    cluster = EmbeddedCluster(simulate=False, tls=False)
    await cluster.start()
    try:
        open_ended = definition({"type": "string"})
        open_ended["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = {
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": True,
        }
        made, _ = await call(cluster, CRDS, open_ended)
        status, answer = await call(cluster, THINGS, text)
        good, _ = await call(cluster, THINGS, {"metadata": {"name": "t"}, "spec": {"a": {"a": {}}}})
    finally:
        await cluster.stop()

    assert (made, status, answer["reason"], good) == (201, 400, "BadRequest", 201)
