"""Objects that the server, its simulated parts or a file create, through the same path as any client's."""

from __future__ import annotations

from dataclasses import replace

from bayplan.apiserver.objects.bodies import read_object
from bayplan.apiserver.objects.writing import Caller
from bayplan.apiserver.protocol.encoding import Json, encode
from bayplan.apiserver.protocol.errors import RequestRefused
from bayplan.apiserver.protocol.exchange import JSON_TYPE, WriteOptions
from bayplan.apiserver.protocol.identity import LOOPBACK
from bayplan.apiserver.server.api import Api

SYSTEM_CALLER = Caller(LOOPBACK, WriteOptions(field_manager="kube-apiserver"), is_reviewed=False)
IMPORTING_CALLER = replace(SYSTEM_CALLER, keeps_identity=True)


def create_if_absent(api: Api, document: Json, caller: Caller = SYSTEM_CALLER) -> None:
    try:
        create(api, document, caller)
    except RequestRefused as problem:
        if problem.reason != "AlreadyExists":
            raise


class RefusedObject(ValueError):
    """An object to start with was refused; the message says which and why."""


def bring_in(api: Api, document: Json) -> None:
    """Create an object of a file or of another cluster; one that exists already is left as it is."""
    metadata = document.get("metadata") or {}
    name = "/".join(filter(None, (metadata.get("namespace", ""), metadata.get("name", ""))))
    try:
        create_if_absent(api, _conforming(api, document), IMPORTING_CALLER)
    except (RequestRefused, ValueError) as problem:
        raise RefusedObject(f"{document.get('kind')} {name or 'without a name'}: {problem}") from problem


def _conforming(api: Api, document: Json) -> Json:
    """The document as a client's body would be read: checked against its type, fields that are unknown dropped."""
    kind = api.kinds.by_kind(str(document.get("apiVersion")), str(document.get("kind")))
    if kind is None:
        return document
    return read_object(encode(document), JSON_TYPE, kind, validation="Ignore", warnings=[])


def create(api: Api, document: Json, caller: Caller = SYSTEM_CALLER) -> bytes:
    """Create an object on the server's own behalf, through the same path as any client."""
    kind = api.kinds.by_kind(document["apiVersion"], document["kind"])
    if kind is None:
        raise ValueError(f"this server has no kind {document['kind']} in {document['apiVersion']}")
    namespace = document.get("metadata", {}).get("namespace", "default") if kind.namespaced else ""
    return api.objects.create(kind, namespace, document, caller)
