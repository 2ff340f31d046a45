"""JSON in and out: one place that decides how documents become bytes and times become text.

Stored objects are JSON bytes; a decoded document is a plain dict and belongs to the caller.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, TypeAlias

import msgspec

Json: TypeAlias = dict[str, Any]
"""A decoded JSON object."""
JsonValue: TypeAlias = Any
"""A decoded JSON value of any type; what it is, its declared `Type` or a test at run time decides."""

_decode = msgspec.json.Decoder().decode
encode = msgspec.json.Encoder().encode
encode_sorted = msgspec.json.Encoder(order="sorted").encode


class BadJson(ValueError):
    """The bytes are no JSON document; the message says where."""


def decode(body: bytes) -> Any:
    """A document of the caller's own. Raises `BadJson`."""
    try:
        return _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise BadJson(str(problem)) from problem


def decode_object(body: bytes) -> Json:
    """A stored object's bytes as a document; stored bytes are always an object."""
    document: Json = _decode(body)
    return document


class _Members(dict[str, Any]):
    """An object of a document that remembers which names occur in it more than once."""

    repeated: tuple[str, ...] = ()


def duplicate_fields(body: bytes) -> list[str]:
    """Paths of names that occur twice in one object, which JSON allows and Kubernetes refuses when strict."""

    def members(items: list[tuple[str, Any]]) -> _Members:
        found = _Members(items)
        if len(found) < len(items):
            names = [name for name, _ in items]
            found.repeated = tuple(dict.fromkeys(name for name in names if names.count(name) > 1))
        return found

    try:
        return list(_repeated(json.loads(body, object_pairs_hook=members), ""))
    except (ValueError, RecursionError):
        return []


def _repeated(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, _Members):
        head = f"{path}." if path else ""
        for name, inner in value.items():
            if name in value.repeated:
                yield head + name
            yield from _repeated(inner, head + name)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _repeated(item, f"{path}[{index}]")


def timestamp(unix_seconds: float) -> str:
    """`2026-01-31T12:00:00Z`, the form of metav1.Time."""
    return _timestamp(int(unix_seconds))


@functools.lru_cache(maxsize=64)
def _timestamp(unix_seconds: int) -> str:
    return _spelled(unix_seconds, "seconds")


def _spelled(unix_seconds: float, precision: str) -> str:
    """A time with four digits for the year, whichever it is."""
    return datetime.fromtimestamp(unix_seconds, UTC).replace(tzinfo=None).isoformat(timespec=precision) + "Z"


def microtimestamp(unix_seconds: float) -> str:
    """`2026-01-31T12:00:00.000000Z`, the form of metav1.MicroTime."""
    return _spelled(unix_seconds, "microseconds")


def parse_timestamp(text: str) -> float:
    """Unix seconds of a metav1.Time or MicroTime; zero when it is neither."""
    try:
        return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
    except ValueError:
        return 0.0
