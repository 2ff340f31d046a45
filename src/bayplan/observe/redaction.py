"""Removes secrets from logs and debug pages: known field names and known forms of secrets are blanked.

This is a safety net: code must not pass secrets to a logger in the first place. Blanked are fields whose name says that
they hold a secret, and, inside any text, bearer and basic credentials, JSON web tokens, private keys, passwords in
URLs, and `token=`-like parameters. What is not text (numbers, booleans) is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

__all__ = ["BLANK", "is_secret_name", "redact_text", "redacted"]

BLANK = "[redacted]"
_DEEPEST = 12

_SECRET_NAME = re.compile(
    r"(?:^|[_.])(?:authorization|cookie|password|passwd|secret|token|id_token|bearer|credentials?|api_?key"
    r"|private_?key|client_?key|key_?data)$"
)
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SHAPES: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL),
        BLANK,
    ),
    (re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{6,}"), rf"\1 {BLANK}"),
    (re.compile(r"\beyJ[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]*"), BLANK),
    (re.compile(r"(?i)(\b[a-z][a-z0-9+.-]{1,20}://[^/\s:@]{0,200}:)[^/\s@]{1,200}@"), rf"\1{BLANK}@"),
    (
        re.compile(r"(?i)((?<![a-z0-9])(?:token|password|passwd|secret|api_?key)[\"']?\s*[=:]\s*[\"']?)[^\s\"'&,;}]+"),
        rf"\1{BLANK}",
    ),
)


def is_secret_name(name: str) -> bool:
    """Whether a field of that name, in any of the usual spellings, holds a secret."""
    return _SECRET_NAME.search(_HUMP.sub("_", name).lower().replace("-", "_")) is not None


def redact_text(text: str) -> str:
    for shape, replacement in _SHAPES:
        text = shape.sub(replacement, text)
    return text


def redacted(value: Any, *, depth: int = 0) -> Any:
    """A copy of plain data (mappings, lists, texts, numbers) without secrets."""
    if isinstance(value, str):
        return redact_text(value)
    if depth >= _DEEPEST:
        return BLANK
    if isinstance(value, Mapping):
        return {name: _field(str(name), item, depth) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [redacted(item, depth=depth + 1) for item in value]
    return value


def _field(name: str, value: Any, depth: int) -> Any:
    if isinstance(value, str | bytes) and value and is_secret_name(name):
        return BLANK
    return redacted(value, depth=depth + 1)
