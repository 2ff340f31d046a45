"""From the bytes of a request to a document that conforms to its kind.

Malformed JSON or YAML, a wrong type, a wrong apiVersion or kind are refused with a 400 that says where; unknown
fields are dropped with a warning, or refused, as `fieldValidation` asks.
"""

from __future__ import annotations

from collections.abc import Mapping

from bayplan.api.documents import DocumentError, PlainDocument, read_plain
from bayplan.apiserver.kinds.conform import WrongType, conform
from bayplan.apiserver.kinds.kind import ServedKind
from bayplan.apiserver.kinds.protobuf import MEDIA_TYPE, BadProtobuf, read_protobuf
from bayplan.apiserver.kinds.type_table import FieldType, StrictDecoders, builtin_types
from bayplan.apiserver.protocol import errors
from bayplan.apiserver.protocol.encoding import BadJson, Json, JsonValue, decode, duplicate_fields

_MAX_WARNINGS = 20
_JSON_TYPES = ("application/json", "application/yaml")
_decoders = StrictDecoders()


def read_document(body: bytes, content_type: str) -> JsonValue:
    """Any JSON or YAML document."""
    media_type = content_type.partition(";")[0].strip().lower() or "application/json"
    if media_type not in _JSON_TYPES and not media_type.endswith(("+json", "+yaml")):
        raise errors.unsupported_media_type(_JSON_TYPES)
    if media_type.endswith("yaml"):
        document = _read_yaml(body).value
        if not isinstance(document, dict):
            raise errors.bad_request("error converting YAML to JSON: the document is not an object")
        return document
    try:
        return decode(body)
    except BadJson as problem:
        raise errors.bad_request(f"couldn't get version/kind; json parse error: {problem}") from problem


def _read_yaml(body: bytes) -> PlainDocument:
    try:
        return read_plain(body)
    except DocumentError as problem:
        raise errors.bad_request(f"error converting YAML to JSON: {str(problem)[:300]}") from problem


def read_object(body: bytes, content_type: str, kind: ServedKind, *, validation: str, warnings: list[str]) -> Json:
    """The object of a create or update, pruned to what its kind declares."""
    is_protobuf = content_type.startswith(MEDIA_TYPE)
    document = _read_protobuf(body, kind) if is_protobuf else read_document(body, content_type)
    if not isinstance(document, dict):
        raise errors.bad_request(f"{kind.kind} in version {kind.api_version!r} is not a JSON object")
    check_kind(document, kind)
    is_json = not is_protobuf and "yaml" not in content_type
    repeated = [] if is_protobuf else _repetitions(body, is_json=is_json, validation=validation)
    if is_json and not repeated and not kind.is_custom and _decoders.accepts(body, kind.type):
        return document
    unknown = _pruned(document, kind, kind.type, drops_empty=is_protobuf)
    _report(kind, [*_unknown_fields(unknown), *repeated], validation, warnings)
    return document


def _repetitions(body: bytes, *, is_json: bool, validation: str) -> list[str]:
    """What is written twice in one object, in the words of the parser; looked for only where the request asks for
    it."""
    if validation == "Ignore" or (is_json and validation != "Strict"):
        return []
    if is_json:
        return [f'duplicate field "{path}"' for path in duplicate_fields(body)]
    return [f'line {line}: key "{key}" already set in map' for key, line in _read_yaml(body).repeated]


def read_options(body: bytes, content_type: str) -> Json:
    """The DeleteOptions of a delete."""
    if content_type.startswith(MEDIA_TYPE):
        try:
            return read_protobuf(body, builtin_types()["meta.v1.DeleteOptions"])
        except BadProtobuf as problem:
            raise errors.bad_request(f"couldn't read the protobuf body: {problem}") from problem
    document = read_document(body, content_type)
    if not isinstance(document, dict):
        raise errors.bad_request("DeleteOptions is an object")
    return document


def read_as(body: bytes, headers: Mapping[str, str], api_version: str, kind_name: str, type_name: str) -> Json:
    """The body of a request to a subresource that is a kind of its own; without a body, an empty object."""
    if not body:
        return {"apiVersion": api_version, "kind": kind_name, "metadata": {}}
    group, _, version = api_version.rpartition("/")
    kind = ServedKind(group, version, kind_name, kind_name.lower(), type=builtin_types()[type_name])
    return read_object(body, headers.get("content-type", ""), kind, validation="Ignore", warnings=[])


def _read_protobuf(body: bytes, kind: ServedKind) -> Json:
    if kind.is_custom:
        raise errors.unsupported_media_type(_JSON_TYPES)
    try:
        return read_protobuf(body, kind.type)
    except BadProtobuf as problem:
        raise errors.bad_request(f"couldn't read the protobuf body: {problem}") from problem


def check_kind(document: Json, kind: ServedKind) -> None:
    """Fill in or check apiVersion and kind."""
    for name, expected in (("apiVersion", kind.api_version), ("kind", kind.kind)):
        found = document.get(name) or expected
        if found != expected:
            given = f"{document.get('apiVersion', kind.api_version)}, Kind={document.get('kind', kind.kind)}"
            wanted = f"{kind.api_version}, Kind={kind.kind}"
            raise errors.bad_request(
                f"the API version or kind in the data ({given}) does not match the expected ({wanted})"
            )
        document[name] = expected
    if not isinstance(document.setdefault("metadata", {}), dict):
        raise errors.bad_request(f"{kind.kind} in version {kind.version!r}: metadata: expected an object")


def conform_object(document: Json, kind: ServedKind, *, validation: str, warnings: list[str]) -> None:
    """Prune in place; report unknown fields as `validation` asks."""
    _report(kind, _unknown_fields(_pruned(document, kind, kind.type)), validation, warnings)


def _unknown_fields(paths: list[str]) -> list[str]:
    return [f'unknown field "{path}"' for path in paths]


def _report(kind: ServedKind, problems: list[str], validation: str, warnings: list[str]) -> None:
    if problems and validation == "Strict":
        raise strict_error(kind, problems)
    if validation == "Warn":
        warnings.extend(problems[:_MAX_WARNINGS])


def check_repetitions(body: bytes, kind: ServedKind, validation: str, warnings: list[str]) -> None:
    """Report keys that an applied configuration, which is YAML, sets twice."""
    _report(kind, _repetitions(body, is_json=False, validation=validation), validation, warnings)


def conform_applied(document: Json, kind: ServedKind, *, given_namespace: str) -> None:
    """Check an applied configuration. Its owner would own what the schema lacks, so that is refused always."""
    unknown = _pruned(document, kind, kind.type, fills=False)
    if unknown:
        about = f"{given_namespace}/{document['metadata']['name']}; {kind.api_version}, Kind={kind.kind}"
        listed = "\n".join(f".{path}: field not declared in schema" for path in unknown[:_MAX_WARNINGS])
        head = "errors:\n" if len(unknown) > 1 else ""
        raise errors.unexpected(f"failed to create typed patch object ({about}): {head}{listed}")


def _pruned(
    document: Json, kind: ServedKind, declared: FieldType, *, fills: bool = True, drops_empty: bool = False
) -> list[str]:
    """The paths of unknown fields, which are dropped."""
    try:
        if kind.prune is None:
            return conform(document, declared, fills=fills, drops_empty=drops_empty).unknown
        metadata = kind.type.fields["metadata"].type
        return conform(document["metadata"], metadata, path="metadata").unknown + kind.prune(document)
    except WrongType as problem:
        message = f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: {problem}'
        raise errors.bad_request(message) from problem


def strict_error(kind: ServedKind, problems: list[str]) -> errors.RequestRefused:
    listed = ", ".join(problems[:_MAX_WARNINGS])
    return errors.bad_request(
        f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: strict decoding error: {listed}'
    )
