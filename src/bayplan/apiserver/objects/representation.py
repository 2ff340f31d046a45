"""How an object is shown: as itself, as a Table, as metadata only; in JSON or YAML.

Negotiated from the Accept header. Stored bytes go out untouched whenever the client wants the object itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import yaml

from bayplan.apiserver.kinds.kind import Kind
from bayplan.apiserver.protocol import errors
from bayplan.apiserver.protocol.encoding import Json, decode_object, encode
from bayplan.apiserver.storage.store import Entry

OBJECT, TABLE, PARTIAL = "Object", "Table", "PartialObjectMetadata"
_ACCEPTED = ("application/json", "application/yaml")


@dataclass(frozen=True, slots=True)
class Representation:
    """What the client wants to see."""

    form: str = OBJECT
    is_yaml: bool = False
    include_object: str = "Metadata"

    @property
    def content_type(self) -> str:
        return "application/yaml" if self.is_yaml else "application/json"


PLAIN = Representation()


def negotiate(accept: str, include_object: str = "") -> Representation:
    """The first acceptable form of an Accept header. Raises a 406 `ApiError` when there is none."""
    if not accept or accept in ("*/*", "application/json"):
        return PLAIN
    for clause in accept.split(","):
        media_type, *parameters = (part.strip() for part in clause.split(";"))
        options = dict(parameter.partition("=")[::2] for parameter in parameters)
        wanted = options.get("as", "")
        if media_type not in ("application/json", "application/yaml", "*/*", "application/*"):
            continue
        if wanted and (options.get("g") != "meta.k8s.io" or options.get("v") != "v1"):
            continue
        is_yaml = media_type == "application/yaml"
        if wanted == "Table":
            return Representation(TABLE, is_yaml, include_object or "Metadata")
        if wanted in (PARTIAL, f"{PARTIAL}List"):
            return Representation(PARTIAL, is_yaml)
        if not wanted:
            return Representation(OBJECT, is_yaml)
    raise errors.not_acceptable(_ACCEPTED)


def render(kind: Kind, raw: bytes, representation: Representation, *, now: float) -> bytes:
    """One stored object in the wanted form."""
    if representation is PLAIN and kind.from_storage is None:
        return raw
    document = as_document(kind, raw, representation, now=now)
    return to_yaml(document) if representation.is_yaml else encode(document)


def as_document(kind: Kind, raw: bytes, representation: Representation, *, now: float) -> Json:
    document = decode_object(raw)
    if kind.from_storage is not None:
        document = kind.from_storage(document)
    if representation.form == TABLE:
        version = document["metadata"].get("resourceVersion", "")
        return table(kind, [document], {"resourceVersion": version}, representation, now=now)
    return partial(document) if representation.form == PARTIAL else document


def render_list(
    kind: Kind, entries: list[Entry], metadata: Json, representation: Representation, *, now: float
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
        items = [partial(document) for document in documents]
        shown = {"kind": f"{PARTIAL}List", "apiVersion": "meta.k8s.io/v1", "metadata": metadata, "items": items}
    else:
        shown = {
            "kind": kind.list_kind,
            "apiVersion": kind.api_version,
            "metadata": metadata,
            "items": documents,
        }
    return to_yaml(shown) if representation.is_yaml else encode(shown)


def partial(document: Json) -> Json:
    return {"kind": PARTIAL, "apiVersion": "meta.k8s.io/v1", "metadata": document["metadata"]}


def table(kind: Kind, documents: list[Json], metadata: Json, representation: Representation, *, now: float) -> Json:
    """A meta.k8s.io/v1 Table with the kind's columns."""
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": [column.definition() for column in kind.columns],
        "rows": [_row(kind, document, representation.include_object, now) for document in documents],
    }


def _row(kind: Kind, document: Json, include: str, now: float) -> Json:
    row: Json = {"cells": [column.compute(document, now) for column in kind.columns]}
    if include == "Object":
        row["object"] = document
    elif include != "None":
        row["object"] = partial(document)
    return row


def to_yaml(document: Json) -> bytes:
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    return yaml.dump(document, Dumper=dumper, sort_keys=False).encode()
