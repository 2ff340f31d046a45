"""How an object is shown: as itself, as a Table, as metadata only; in JSON, YAML or protobuf.

Negotiated from the Accept header. Stored bytes go out untouched whenever the client wants the object itself. Protobuf
is written for clients that accept nothing else; those that accept JSON as well get it, whatever they prefer.
"""

from __future__ import annotations

from dataclasses import dataclass

import yaml

from bayplan.apiserver.kinds.kind import ServedKind
from bayplan.apiserver.kinds.protobuf import MEDIA_TYPE, write_protobuf
from bayplan.apiserver.kinds.type_table import FieldType, list_type
from bayplan.apiserver.protocol import errors
from bayplan.apiserver.protocol.encoding import Json, decode_object, encode
from bayplan.apiserver.protocol.exchange import JSON_TYPE
from bayplan.apiserver.storage.store import Entry

_YAML, PROTOBUF = "application/yaml", MEDIA_TYPE
OBJECT, TABLE, PARTIAL = "Object", "Table", "PartialObjectMetadata"
_ACCEPTED = ("application/json", "application/yaml", PROTOBUF)
# The versions of Table and PartialObjectMetadata, which are the same in both.
_META_VERSIONS = ("v1", "v1beta1")


@dataclass(frozen=True, slots=True)
class Representation:
    """What the client wants to see."""

    form: str = OBJECT
    content_type: str = JSON_TYPE
    include_object: str = "Metadata"
    version: str = "v1"
    """Of Table and PartialObjectMetadata."""


PLAIN = Representation()


def negotiate(accept: str, include_object: str = "") -> Representation:
    """The first acceptable form of an Accept header. Raises a 406 `ApiError` when there is none."""
    if not accept or accept in ("*/*", "application/json"):
        return PLAIN
    is_protobuf_accepted = False
    for clause in accept.split(","):
        media_type, *parameters = (part.strip() for part in clause.split(";"))
        options = dict(parameter.partition("=")[::2] for parameter in parameters)
        wanted = options.get("as", "")
        is_protobuf_accepted = is_protobuf_accepted or (media_type == PROTOBUF and not wanted)
        if media_type not in (JSON_TYPE, _YAML, "*/*", "application/*"):
            continue
        if wanted and (options.get("g") != "meta.k8s.io" or options.get("v") not in _META_VERSIONS):
            continue
        shown_as = _YAML if media_type == _YAML else JSON_TYPE
        if wanted == "Table":
            return Representation(TABLE, shown_as, include_object or "Metadata", options["v"])
        if wanted in (PARTIAL, f"{PARTIAL}List"):
            return Representation(PARTIAL, shown_as, version=options["v"])
        if not wanted:
            return PLAIN if shown_as == JSON_TYPE else Representation(OBJECT, shown_as)
    if is_protobuf_accepted:
        return Representation(OBJECT, PROTOBUF)
    raise errors.not_acceptable(_ACCEPTED)


def render(kind: ServedKind, raw: bytes, representation: Representation, *, now: float) -> bytes:
    """One stored object in the wanted form."""
    if representation is PLAIN and kind.from_storage is None:
        return raw
    document = as_document(kind, raw, representation, now=now)
    if representation.content_type == PROTOBUF:
        return write_protobuf(document, _protobuf_type(kind))
    return to_yaml(document) if representation.content_type == _YAML else encode(document)


def _protobuf_type(kind: ServedKind) -> FieldType:
    if kind.is_custom:
        raise errors.not_acceptable((JSON_TYPE, _YAML))
    return kind.type


def as_document(kind: ServedKind, raw: bytes, representation: Representation, *, now: float) -> Json:
    document = decode_object(raw)
    if kind.from_storage is not None:
        document = kind.from_storage(document)
    if representation.form == TABLE:
        version = document["metadata"].get("resourceVersion", "")
        return table(kind, [document], {"resourceVersion": version}, representation, now=now)
    return partial(document, representation.version) if representation.form == PARTIAL else document


def render_list(
    kind: ServedKind, entries: list[Entry], metadata: Json, representation: Representation, *, now: float
) -> bytes:
    """A list of stored objects in the wanted form."""
    if representation is PLAIN and kind.from_storage is None:
        head = {"kind": kind.list_kind, "apiVersion": kind.api_version, "metadata": metadata}
        opening = encode(head)[:-1] + b',"items":['
        return opening + b",".join([entry.raw for entry in entries]) + b"]}"
    documents = [decode_object(entry.raw) for entry in entries]
    if kind.from_storage is not None:
        documents = [kind.from_storage(document) for document in documents]
    if representation.form == TABLE:
        shown = table(kind, documents, metadata, representation, now=now)
    elif representation.form == PARTIAL:
        items = [partial(document, representation.version) for document in documents]
        version = f"meta.k8s.io/{representation.version}"
        shown = {"kind": f"{PARTIAL}List", "apiVersion": version, "metadata": metadata, "items": items}
    else:
        shown = {
            "kind": kind.list_kind,
            "apiVersion": kind.api_version,
            "metadata": metadata,
            "items": documents,
        }
    if representation.content_type == PROTOBUF:
        return write_protobuf(shown, list_type(_protobuf_type(kind)))
    return to_yaml(shown) if representation.content_type == _YAML else encode(shown)


def partial(document: Json, version: str = "v1") -> Json:
    return {"kind": PARTIAL, "apiVersion": f"meta.k8s.io/{version}", "metadata": document["metadata"]}


def table(
    kind: ServedKind, documents: list[Json], metadata: Json, representation: Representation, *, now: float
) -> Json:
    """A meta.k8s.io/v1 Table with the kind's columns."""
    return {
        "kind": "Table",
        "apiVersion": f"meta.k8s.io/{representation.version}",
        "metadata": metadata,
        "columnDefinitions": [column.definition() for column in kind.columns],
        "rows": [_row(kind, document, representation.include_object, now) for document in documents],
    }


def _row(kind: ServedKind, document: Json, include: str, now: float) -> Json:
    row: Json = {"cells": [column.compute(document, now) for column in kind.columns]}
    if include == "Object":
        row["object"] = document
    elif include != "None":
        row["object"] = partial(document)
    return row


def to_yaml(document: Json) -> bytes:
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    return yaml.dump(document, Dumper=dumper, sort_keys=False).encode()
