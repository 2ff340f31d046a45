"""From a document to its entry: the bytes, and the few facts that are read without decoding them again.

Objects of one template have most of these facts in common; what recurs is stored once.
"""

from __future__ import annotations

import functools
import sys

from bayplan.apiserver.kinds.kind import Kinds, ServedKind
from bayplan.apiserver.objects.selection import selectable_values
from bayplan.apiserver.protocol.encoding import Json, encode
from bayplan.apiserver.storage.store import Entry

_MOST_SHARED = 4096


def make_entry(kinds: Kinds, kind: ServedKind, document: Json, revision: int) -> Entry:
    """An entry of a document in storage form, which already carries its revision."""
    storage_kind = kinds.resource(kind.stored_as) if kind.to_storage is not None else kind
    return entry_of(storage_kind, document, encode(document), revision)


def entry_of(kind: ServedKind | None, document: Json, raw: bytes, revision: int) -> Entry:
    """An entry of a document and its bytes; without a kind, it has no selectable fields."""
    metadata = document["metadata"]
    labels, references = metadata.get("labels"), metadata.get("ownerReferences")
    return Entry(
        (sys.intern(metadata.get("namespace", "")), metadata["name"]),
        raw,
        revision,
        metadata.get("uid", ""),
        _shared_labels(tuple(labels.items())) if labels else _NO_LABELS,
        _shared(selectable_values(kind, document)) if kind is not None and kind.selectable else (),
        _shared(tuple([one.get("uid", "") for one in references])) if references else (),
        sys.intern(_controller(references)) if references else "",
    )


def _controller(references: list[Json]) -> str:
    """The uid of the owner whose reference has `controller: true`."""
    return next((one.get("uid", "") for one in references if one.get("controller")), "")


_NO_LABELS: dict[str, str] = {}


@functools.lru_cache(maxsize=_MOST_SHARED)
def _shared_labels(labels: tuple[tuple[str, str], ...]) -> dict[str, str]:
    return dict(labels)


@functools.lru_cache(maxsize=_MOST_SHARED)
def _shared(texts: tuple[str, ...]) -> tuple[str, ...]:
    return texts
