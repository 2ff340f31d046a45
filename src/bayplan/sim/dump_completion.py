"""Completes a dump: adds missing namespaces, service accounts and priority classes, and removes missing owners.

A dump of `kubectl get nodes,pods -A -o yaml` lacks the namespaces and priority classes of its pods, and their
ReplicaSets, without which garbage collection would delete the pods. Every object added here is named by another, and a
class has the value that its pods have.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from bayplan.apiserver.bootstrap import SYSTEM_NAMESPACES
from bayplan.apiserver.kinds.builtin import builtin_kinds

__all__ = ["completed", "servable"]

Document = dict[str, Any]
_SYSTEM_CLASSES = ("system-node-critical", "system-cluster-critical")


def servable(documents: Iterable[Document]) -> tuple[list[Document], list[str]]:
    """The objects whose kinds the embedded cluster serves, and a line for each kind that it does not."""
    documents = list(documents)
    known = {(kind.api_version, kind.kind) for kind in builtin_kinds()} | set(_defined(documents))
    kept, left_out = [], dict[str, int]()
    for document in documents:
        identity = (str(document.get("apiVersion", "")), str(document.get("kind", "")))
        if identity in known:
            kept.append(document)
        else:
            left_out["/".join(identity)] = left_out.get("/".join(identity), 0) + 1
    return kept, [f"{count} {name} left out: the embedded cluster has no such kind" for name, count in left_out.items()]


def _defined(documents: Iterable[Document]) -> Iterator[tuple[str, str]]:
    for document in documents:
        if document.get("kind") == "CustomResourceDefinition":
            spec = document.get("spec") or {}
            for version in spec.get("versions") or ():
                kind = (spec.get("names") or {}).get("kind", "")
                yield f"{spec.get('group')}/{version.get('name')}", kind


def completed(documents: Iterable[Document]) -> list[Document]:
    """The documents, preceded by the missing objects that they name."""
    documents = [_without_missing_owners(document, _uids(documents)) for document in documents]
    have = {_place(document) for document in documents}
    needed: dict[tuple[str, str, str], Document] = {}
    for document in documents:
        for made in _named_by(document):
            if _place(made) not in have:
                needed.setdefault(_place(made), made)
    return [*needed.values(), *documents]


def _uids(documents: Iterable[Document]) -> frozenset[str]:
    return frozenset(str(_metadata(document).get("uid", "")) for document in documents)


def _metadata(document: Document) -> Document:
    found = document.get("metadata")
    return found if isinstance(found, dict) else {}


def _place(document: Document) -> tuple[str, str, str]:
    metadata = _metadata(document)
    return str(document.get("kind")), str(metadata.get("namespace", "")), str(metadata.get("name", ""))


def _without_missing_owners(document: Document, uids: frozenset[str]) -> Document:
    owners = _metadata(document).get("ownerReferences") or ()
    kept = [owner for owner in owners if isinstance(owner, dict) and owner.get("uid") in uids]
    if len(kept) == len(owners):
        return document
    metadata = {name: value for name, value in _metadata(document).items() if name != "ownerReferences"}
    return document | {"metadata": metadata | ({"ownerReferences": kept} if kept else {})}


def _named_by(document: Document) -> Iterator[Document]:
    namespace = str(_metadata(document).get("namespace", ""))
    if namespace and namespace not in SYSTEM_NAMESPACES:
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    if document.get("kind") != "Pod" or not isinstance(document.get("spec"), dict):
        return
    spec = document["spec"]
    account = spec.get("serviceAccountName") or "default"
    if account != "default":
        place = {"name": account, "namespace": namespace or "default"}
        yield {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": place}
    name, value = spec.get("priorityClassName"), spec.get("priority")
    if name and name not in _SYSTEM_CLASSES and isinstance(value, int):
        head = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}}
        yield head | {"value": value, "preemptionPolicy": spec.get("preemptionPolicy", "PreemptLowerPriority")}
