"""Protobuf bodies as kubectl and client-go send them, against JSON and YAML of the same objects, and malformed ones."""

from __future__ import annotations

import random
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from tests.apiconformance.made_objects import random_value, without_empty_parts

from bayplan.apiserver.kinds.builtin import builtin_kinds
from bayplan.apiserver.kinds.conform import conform
from bayplan.apiserver.kinds.kind import ServedKind
from bayplan.apiserver.kinds.protobuf import MEDIA_TYPE, BadProtobuf, read_protobuf, write_protobuf
from bayplan.apiserver.kinds.type_table import builtin_types
from bayplan.apiserver.objects.bodies import read_object
from bayplan.apiserver.protocol.encoding import encode

POD = builtin_types()["core.v1.Pod"]
DEPLOYMENT = builtin_types()["apps.v1.Deployment"]
REVIEW = builtin_types()["authentication.v1.TokenReview"]


def varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    out = bytearray()
    while True:
        byte, number = number & 0x7F, number >> 7
        out.append(byte | (0x80 if number else 0))
        if not number:
            return bytes(out)


def field(number: int, value: int | bytes | str) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def envelope(raw: bytes, kind: str = "Pod", api_version: str = "v1") -> bytes:
    return b"k8s\x00" + field(1, field(1, api_version) + field(2, kind)) + field(2, raw)


def test_messages_lists_maps_and_inlined_parts_are_read() -> None:
    requests = field(2, field(1, "cpu") + field(2, field(1, "500m")))
    container = field(1, "main") + field(2, "app:1") + field(8, requests)
    volume = field(1, "tmp") + field(2, field(2, b""))
    toleration = field(1, "k") + field(5, 0)
    spec = field(1, volume) + field(2, container) + field(22, toleration) + field(11, 0)
    metadata = field(1, "a") + field(2, "") + field(11, field(1, "app") + field(2, "web"))
    document = read_protobuf(envelope(field(1, metadata) + field(2, spec)), POD)

    assert document == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a", "generateName": "", "labels": {"app": "web"}},
        "spec": {
            "volumes": [{"name": "tmp", "emptyDir": {}}],
            "containers": [{"name": "main", "image": "app:1", "resources": {"requests": {"cpu": "500m"}}}],
            "tolerations": [{"key": "k", "tolerationSeconds": 0}],
            "hostNetwork": False,
        },
    }


def test_zero_replicas_are_meant_and_an_unset_time_is_not() -> None:
    template = field(1, field(8, b""))
    raw = field(2, field(1, 0) + field(3, template))
    document = read_protobuf(envelope(raw, "Deployment", "apps/v1"), DEPLOYMENT)

    assert document["spec"] == {"replicas": 0, "template": {"metadata": {}}}


def test_unknown_numbers_are_skipped() -> None:
    raw = field(99, "future") + field(1, field(1, "a"))

    assert read_protobuf(envelope(raw), POD)["metadata"] == {"name": "a"}


@pytest.mark.parametrize("kind", builtin_kinds(), ids=lambda kind: kind.resource)
@pytest.mark.parametrize("seed", range(10))
def test_json_yaml_and_protobuf_of_one_object_become_one_document(kind: ServedKind, seed: int) -> None:
    document = random_value(kind.type, random.Random(f"{kind.kind} {seed}"), 7)
    document |= {"apiVersion": kind.api_version, "kind": kind.kind}
    document.setdefault("metadata", {})

    def read(body: bytes, content_type: str) -> Any:
        found = read_object(body, content_type, kind, validation="Strict", warnings=[])
        return without_empty_parts(found, kind.type)

    from_json = read(encode(document), "application/json")

    assert read(write_protobuf(document, kind.type), MEDIA_TYPE) == from_json
    assert read(write_protobuf(from_json, kind.type), MEDIA_TYPE) == from_json
    assert read(yaml.safe_dump(document, allow_unicode=True).encode(), "application/yaml") == from_json


@pytest.mark.parametrize(
    ("type_name", "document"),
    [
        ("apps.v1.Deployment", {"spec": {"strategy": {"rollingUpdate": {"maxSurge": 0}}}}),
        ("storage.v1.CSIDriver", {"spec": {"attachRequired": False}}),
        ("core.v1.Pod", {"spec": {"hostUsers": False, "priority": 0}}),
        ("batch.v1.Job", {"spec": {"backoffLimitPerIndex": 0}}),
        ("storage.v1.CSINode", {"spec": {"drivers": [{"name": "d", "nodeID": "n", "allocatable": {"count": 0}}]}}),
        ("resource.v1.ResourceSlice", {"spec": {"devices": [{"attributes": {"a": {"bool": False}, "b": {"int": 0}}}]}}),
    ],
)
def test_zeros_that_were_set_survive(type_name: str, document: Any) -> None:
    declared = builtin_types()[type_name]
    read = read_protobuf(write_protobuf(document, declared), declared)
    conform(read, declared, drops_empty=True)

    def holds(found: Any, wanted: Any) -> bool:
        if isinstance(wanted, dict):
            return all(name in found and holds(found[name], value) for name, value in wanted.items())
        if isinstance(wanted, list):
            return all(holds(one, other) for one, other in zip(found, wanted, strict=True))
        return bool(found == wanted and type(found) is type(wanted))

    assert holds(read, document)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"k8s",
        b"{}",
        b"k8s\x00\xff",
        envelope(b"\x0a\xff\x01a"),
        envelope(field(1, 5)),
        envelope(b"\x0b"),
        envelope(varint(1 << 3) + b"\xff" * 11),
    ],
)
def test_malformed_bodies_are_refused(body: bytes) -> None:
    with pytest.raises(BadProtobuf):
        read_protobuf(body, POD)


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(raw: bytes) -> None:
    for declared in (POD, DEPLOYMENT, REVIEW):
        try:
            assert isinstance(read_protobuf(envelope(raw), declared), dict)
        except BadProtobuf:
            continue
