"""Nodes that do not exist: twins of nodes that do, empty and under another name."""

from __future__ import annotations

import itertools
from collections.abc import Container, Iterable, Iterator

import msgspec

from bayplan.api.node import Node
from bayplan.explain.claims.base import JsonObject

__all__ = ["document_of", "templates", "twin_of", "twins_of"]

_HOSTNAME = "kubernetes.io/hostname"
_KINDS = 4


def templates(nodes: Iterable[Node]) -> list[Node]:
    """Some nodes that differ in more than their names."""
    found: dict[bytes, Node] = {}
    for node in nodes:
        labels = sorted((key, value) for key, value in node.labels.items() if key != _HOSTNAME)
        key = msgspec.json.encode((labels, node.status.allocatable, node.spec.taints, node.spec.unschedulable))
        found.setdefault(key, node)
        if len(found) == _KINDS:
            break
    return list(found.values())


def twin_of(node: Node, *, taken: Container[str]) -> Node:
    return next(twins_of(node, 1, taken=taken))


def twins_of(node: Node, count: int, *, taken: Container[str]) -> Iterator[Node]:
    """So many, under the first names that are not taken when each is made."""
    free = (name for number in itertools.count(1) if (name := f"{node.name}-more-{number}") not in taken)
    spec = msgspec.structs.replace(node.spec, provider_id="")
    for name in itertools.islice(free, count):
        labels = {**node.labels, _HOSTNAME: name} if _HOSTNAME in node.labels else dict(node.labels)
        metadata = msgspec.structs.replace(node.metadata, name=name, uid="", resource_version="", labels=labels)
        yield msgspec.structs.replace(node, metadata=metadata, spec=spec)


def document_of(node: Node) -> JsonObject:
    """As it would stand in a file."""
    return {"apiVersion": "v1", "kind": "Node", **msgspec.to_builtins(node)}
