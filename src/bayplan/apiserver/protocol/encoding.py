"""JSON in and out: one place that decides how documents become bytes and times become text.

Stored objects are JSON bytes; a decoded document is a plain dict and belongs to whoever decoded it.
"""

from __future__ import annotations

import functools
import json
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


def duplicate_keys(body: bytes) -> list[str]:
    """Names that occur twice in one object of the document, which JSON allows and Kubernetes refuses when strict."""
    found: list[str] = []

    def pairs(items: list[tuple[str, Any]]) -> None:
        seen: set[str] = set()
        for key, _ in items:
            if key in seen and key not in found:
                found.append(key)
            seen.add(key)

    try:
        json.loads(body, object_pairs_hook=pairs)
    except (ValueError, RecursionError):
        return []
    return found


def timestamp(unix_seconds: float) -> str:
    """`2026-01-31T12:00:00Z`, the form of metav1.Time."""
    return _timestamp(int(unix_seconds))


@functools.lru_cache(maxsize=64)
def _timestamp(unix_seconds: int) -> str:
    return datetime.fromtimestamp(unix_seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def microtimestamp(unix_seconds: float) -> str:
    """`2026-01-31T12:00:00.000000Z`, the form of metav1.MicroTime."""
    return datetime.fromtimestamp(unix_seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse_timestamp(text: str) -> float:
    """Unix seconds of a metav1.Time or MicroTime; zero when it is neither."""
    try:
        return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
    except ValueError:
        return 0.0
