"""The OpenAPI v2 document, for clients older than Kubernetes 1.27: one for all groups, as JSON or as protobuf.

Derived from the v3 documents. kubectl before 1.27 (Debian ships 1.20) requests it before `apply` and for
`explain`, and takes the protobuf form only: the messages of the OpenAPI v2 specification, of which those that clients
read are written here (definitions, and the operations with their query parameters).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from bayplan.apiserver.protocol.encoding import Json, encode

PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
# How old clients spell it; no media type may hold an `@`, so it is never answered with.
_OLD_PROTOBUF = PROTOBUF.replace("v2.v1", "v2@v1")
_V3_REF, _V2_REF = "#/components/schemas/", "#/definitions/"
_METHODS = {"get": 2, "put": 3, "post": 4, "delete": 5, "patch": 8}
_LIMITS = {"maxLength": 11, "minLength": 12, "maxItems": 14, "minItems": 15}
_KEPT = ("type", "format", "description", "required", "enum", "pattern", *_LIMITS)
_OPEN = "x-kubernetes-preserve-unknown-fields"


def document_v2(documents: Iterable[Json], version: str) -> Json:
    """One v2 document from the v3 documents of all groups."""
    definitions: dict[str, Json] = {}
    paths: Json = {}
    for document in documents:
        for name, schema in document["components"]["schemas"].items():
            definitions[name] = _definition(schema)
        for path, operations in document["paths"].items():
            paths[path] = {method: _operation(operation) for method, operation in operations.items()}
    info = {"title": "Bayplan embedded Kubernetes API", "version": version}
    return {"swagger": "2.0", "info": info, "paths": paths, "definitions": definitions}


def _definition(schema: Json) -> Json:
    """The schema of a kind; of one that keeps unknown fields, old clients must know no fields at all."""
    found = _schema(schema)
    if not found.pop(_OPEN, False):
        return found
    return {name: value for name, value in found.items() if name == "type" or name.startswith("x-kubernetes-")}


def _schema(schema: Json) -> Json:
    found: Json = {name: schema[name] for name in _KEPT if name in schema}
    found |= {name: value for name, value in schema.items() if name.startswith("x-kubernetes-")}
    reference = schema.get("$ref") or next((part["$ref"] for part in schema.get("allOf") or () if "$ref" in part), "")
    if reference:
        found["$ref"] = reference.replace(_V3_REF, _V2_REF)
    if "oneOf" in schema or schema.get("x-kubernetes-int-or-string"):
        found |= {"type": "string", "format": "int-or-string"}
    if "properties" in schema:
        found["properties"] = {name: _schema(inner) for name, inner in schema["properties"].items()}
    if isinstance(schema.get("items"), dict):
        found["items"] = _schema(schema["items"])
    if isinstance(schema.get("additionalProperties"), dict):
        found["additionalProperties"] = _schema(schema["additionalProperties"])
    return found


def _operation(operation: Json) -> Json:
    parameters = [{"name": one["name"], "in": "query", "type": "string"} for one in operation["parameters"]]
    found = {"operationId": operation["operationId"], "parameters": parameters}
    found["responses"] = {"200": {"description": "OK"}}
    return found | {name: value for name, value in operation.items() if name.startswith("x-kubernetes-")}


# ---- protobuf: a message is its fields one after the other, each with its number


def protobuf_of(document: Json) -> bytes:
    """The document as clients older than 1.27 read it."""
    info = document["info"]
    definitions = b"".join(_field(1, named) for named in _named_schemas(document["definitions"]))
    paths = b"".join(
        _field(2, _text(1, path) + _field(2, _path_message(operations)))
        for path, operations in document["paths"].items()
    )
    return (
        _text(1, document["swagger"])
        + _field(2, _text(1, info["title"]) + _text(2, info["version"]))
        + _field(8, paths)
        + _field(9, definitions)
    )


def _named_schemas(schemas: dict[str, Json]) -> Iterator[bytes]:
    for name, schema in schemas.items():
        yield _text(1, name) + _field(2, _schema_message(schema))


def _schema_message(schema: Json) -> bytes:
    parts = [
        _text(number, schema[name])
        for number, name in ((1, "$ref"), (2, "format"), (4, "description"), (13, "pattern"))
        if name in schema
    ]
    parts += [_varint(number << 3) + _varint(schema[name]) for name, number in _LIMITS.items() if name in schema]
    parts += [_field(20, _field(2, encode(value))) for value in schema.get("enum") or ()]
    parts += [_text(19, name) for name in schema.get("required") or ()]
    if "additionalProperties" in schema:
        parts.append(_field(21, _field(1, _schema_message(schema["additionalProperties"]))))
    if "type" in schema:
        parts.append(_field(22, _text(1, schema["type"])))
    if "items" in schema:
        parts.append(_field(23, _field(1, _schema_message(schema["items"]))))
    if "properties" in schema:
        properties = b"".join(_field(1, named) for named in _named_schemas(schema["properties"]))
        parts.append(_field(25, properties))
    parts += [_field(31, extension) for extension in _extensions(schema)]
    return b"".join(parts)


def _path_message(operations: Json) -> bytes:
    return b"".join(_field(_METHODS[method], _operation_message(operation)) for method, operation in operations.items())


def _operation_message(operation: Json) -> bytes:
    parts = [_text(5, operation["operationId"])]
    for parameter in operation["parameters"]:
        query = _text(2, parameter["in"]) + _text(4, parameter["name"]) + _text(6, parameter["type"])
        parts.append(_field(8, _field(1, _field(2, _field(3, query)))))
    parts += [_field(13, extension) for extension in _extensions(operation)]
    return b"".join(parts)


def _extensions(owner: Json) -> Iterator[bytes]:
    for name, value in owner.items():
        if name.startswith("x-"):
            yield _text(1, name) + _field(2, _field(2, encode(value)))


def _text(number: int, text: str) -> bytes:
    return _field(number, text.encode())


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def wants_protobuf(accept: str) -> bool:
    return any(clause.strip().startswith((PROTOBUF, _OLD_PROTOBUF)) for clause in accept.split(","))
