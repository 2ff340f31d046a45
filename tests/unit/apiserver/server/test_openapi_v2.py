"""The document for old clients: the same types as in v3, in the shape and the wire form of v2."""

from __future__ import annotations

from collections.abc import Iterator

from bayplan.apiserver.protocol.encoding import Json, decode_object
from bayplan.apiserver.protocol.exchange import ApiAnswer, Request
from bayplan.apiserver.server.api import Api, ApiSettings
from bayplan.apiserver.server.openapi_v2 import PROTOBUF, document_v2

POD_SPEC = "io.k8s.api.core.v1.PodSpec"


def ask(accept: str) -> ApiAnswer:
    api = Api(settings=ApiSettings(authentication=False))
    return api.handle(Request("GET", "/openapi/v2", {}, {"accept": accept}))


def json_document() -> Json:
    return decode_object(ask("application/json").body)


def fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """The fields of a protobuf message that has texts and messages only."""
    position = 0

    def varint() -> int:
        nonlocal position
        value = shift = 0
        while True:
            byte = message[position]
            position += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while position < len(message):
        key = varint()
        assert key & 7 == 2
        length = varint()
        yield key >> 3, message[position : position + length]
        position += length


def only(message: bytes, number: int) -> bytes:
    [found] = [content for key, content in fields(message) if key == number]
    return found


def test_types_refer_to_each_other_and_carry_merge_keys_and_descriptions() -> None:
    pod_spec = json_document()["definitions"][POD_SPEC]

    assert pod_spec["properties"]["affinity"]["$ref"] == "#/definitions/io.k8s.api.core.v1.Affinity"
    assert pod_spec["properties"]["containers"]["x-kubernetes-patch-merge-key"] == "name"
    assert pod_spec["properties"]["nodeName"]["description"].startswith("The node the pod is bound to.")
    assert pod_spec["required"] == ["containers"]


def test_limits_of_custom_resources_are_kept_and_open_ones_have_no_fields() -> None:
    text = {"type": "string", "enum": ["Great", "Down"], "pattern": "^[A-Z]", "maxLength": 9}
    closed: Json = {"type": "object", "properties": {"feeling": text}}
    schemas = {"closed": closed, "open": closed | {"x-kubernetes-preserve-unknown-fields": True}}
    definitions = document_v2([{"components": {"schemas": schemas}, "paths": {}}], "v1")["definitions"]

    assert definitions == {"closed": closed, "open": {"type": "object"}}


def test_the_protobuf_form_says_the_same_under_both_spellings_of_its_type() -> None:
    old = ask("application/com.github.proto-openapi.spec.v2@v1.0+protobuf")
    new = ask(PROTOBUF)
    definitions = json_document()["definitions"]

    assert old.content_type == new.content_type == PROTOBUF
    assert old.body == new.body
    written = {only(named, 1).decode(): only(named, 2) for _, named in fields(only(old.body, 9))}
    assert written.keys() == definitions.keys()
    properties = {only(named, 1).decode(): only(named, 2) for _, named in fields(only(written[POD_SPEC], 25))}
    assert properties.keys() == definitions[POD_SPEC]["properties"].keys()
    assert only(properties["affinity"], 1) == b"#/definitions/io.k8s.api.core.v1.Affinity"
    assert only(only(properties["nodeName"], 22), 1) == b"string"


def test_operations_name_their_kind_and_whether_they_can_be_tried() -> None:
    paths = {only(p, 1).decode(): only(p, 2) for _, p in fields(only(ask(PROTOBUF).body, 8))}
    patch = only(paths["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"], 8)
    names = [only(only(only(only(one, 1), 2), 3), 4).decode() for key, one in fields(patch) if key == 8]
    extensions = {only(one, 1).decode(): only(only(one, 2), 2) for key, one in fields(patch) if key == 13}

    assert "dryRun" in names
    assert decode_object(extensions["x-kubernetes-group-version-kind"])["kind"] == "Deployment"
