"""Reads Kubernetes objects from files and standard input, as plain data with their positions.

For commands that take `-f`: YAML streams, JSON, JSON lines, and lists with their items taken apart. Nothing is decoded
into types and nothing is defaulted; an error names the file and the place in one line.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from bayplan.api.decode import InputError
from bayplan.api.documents import DocumentError, parse_documents
from bayplan.cli.options import named_path

__all__ = ["STDIN", "FoundObject", "is_object_file", "read_found_objects"]

STDIN = "-"
_LINES = (".jsonl", ".ndjson")
_SUFFIXES = (".yaml", ".yml", ".json", *_LINES)


class FoundObject(NamedTuple):
    source: str
    where: str
    """The place inside the source: document, line, item of a list."""
    item: dict[str, Any]
    """With `apiVersion` and `kind` also where only its list named them."""


def is_object_file(name: str) -> bool:
    """Whether an argument is a file name, existing or not, rather than the name of an object."""
    return name == STDIN or name.endswith(_SUFFIXES) or named_path(name).is_file()


def read_found_objects(name: str) -> Iterator[FoundObject]:
    """Every object of a file, or of standard input for `-`. Raises `InputError`."""
    source = "standard input" if name == STDIN else name
    text = _text(name, source)
    documents = _json_lines(text, source) if name.endswith(_LINES) else _documents(text, source)
    for where, document in documents:
        for path, item in _taken_apart(document, source=source, where=where):
            place = ": ".join(part for part in (where, path) if part)
            if not isinstance(item, dict):
                raise InputError("expected a Kubernetes object, found something else", source=source, where=place)
            yield FoundObject(source, place, item)


def _text(name: str, source: str) -> str:
    try:
        return (sys.stdin.buffer.read() if name == STDIN else named_path(name).read_bytes()).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"not UTF-8 text (byte {error.start})", source=source) from None
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be read: {getattr(error, 'strerror', None) or error}", source=source) from None


def _documents(text: str, source: str) -> Iterator[tuple[str, Any]]:
    if text.lstrip()[:1] == "{":
        try:
            yield "", msgspec.json.decode(text)
            return
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
            pass  # YAML in flow style, several documents, or an error that the YAML reader locates better.
    try:
        for document in parse_documents(text):
            yield f"document {document.number} (line {document.line})", document.value
    except DocumentError as error:
        raise InputError(str(error), source=source) from None


def _json_lines(text: str, source: str) -> Iterator[tuple[str, Any]]:
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            if line.strip():
                yield f"line {number}", msgspec.json.decode(line)
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
            raise InputError(f"not valid JSON: {error}", source=source, where=f"line {number}") from None


def _taken_apart(document: Any, *, source: str, where: str) -> Iterator[tuple[str, Any]]:
    kind = document.get("kind") if isinstance(document, dict) else None
    if not isinstance(kind, str) or not kind.endswith("List") or "items" not in document:
        yield "", document
        return
    items = document["items"] or []
    if not isinstance(items, list):
        raise InputError("expected a list", source=source, where=f"{where}: items" if where else "items")
    implied = {} if kind == "List" else {"apiVersion": document.get("apiVersion"), "kind": kind[: -len("List")]}
    for place, item in enumerate(items):
        yield f"items[{place}]", {**implied, **item} if isinstance(item, dict) else item
