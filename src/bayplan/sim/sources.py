"""Reads the objects that an embedded cluster starts from: manifests, a dump, or a real cluster."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

from bayplan.api.decode import InputError
from bayplan.api.documents import DocumentError, parse_documents
from bayplan.api.kinds import KINDS
from bayplan.client.http_transport import HttpTransport
from bayplan.client.kubeconfig import find_access
from bayplan.client.resources import ResourceClient, ResourceType
from bayplan.client.retry import RetryingSender
from bayplan.observe.clock import SystemClock

__all__ = ["read_documents", "read_live_objects", "read_text"]

_LEFT_OUT = ("Lease", "Event")


def read_documents(path: Path) -> list[dict[str, Any]]:
    """Every object of a YAML or JSON file, lists taken apart, in an order in which they can be created."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text (byte {error.start})") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    return read_text(text, str(path))


def read_text(text: str, source: str) -> list[dict[str, Any]]:
    """The same for text that was read already."""
    try:
        found = [item for document in parse_documents(text) for item in _items(document.value)]
    except DocumentError as error:
        raise InputError(f"{source}: {error}") from error
    return sorted(found, key=_creation_order)


def _items(document: Any) -> list[dict[str, Any]]:
    if not isinstance(document, dict):
        return []
    if str(document.get("kind", "")).endswith("List") and isinstance(document.get("items"), list):
        return [item for entry in document["items"] for item in _items(entry)]
    return [document] if document.get("kind") not in _LEFT_OUT else []


def _creation_order(document: dict[str, Any]) -> int:
    """Namespaces and definitions first, pods last."""
    order = ("CustomResourceDefinition", "Namespace", "PriorityClass", "StorageClass", "Node")
    kind = document.get("kind", "")
    return order.index(kind) if kind in order else (len(order) + (kind == "Pod"))


async def read_live_objects(kubeconfig: Path | None, context: str | None = None) -> list[dict[str, Any]]:
    """The objects that scheduling reads, of a running cluster. Nothing is written to it."""
    clock, dice = SystemClock(), random.Random(0)
    access = find_access(clock=clock, environment=dict(os.environ), kubeconfig=kubeconfig, context=context)
    transport = HttpTransport(access, draw=dice.random)
    found: list[dict[str, Any]] = []
    try:
        sender = RetryingSender(transport, clock=clock, draw=dice.random)
        for kind in KINDS:
            resource = ResourceType(kind.group, kind.version, kind.plural, kind.is_namespaced)
            client = ResourceClient(resource, transport, sender)
            header = {"apiVersion": kind.api_version, "kind": kind.name}
            found.extend([item | header async for item in client.list()])
    finally:
        await transport.close()
    return sorted(found, key=_creation_order)
