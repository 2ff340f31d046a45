"""Configuration structs as plain data, in the form that `load_config` reads back."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec

from bayplan.config.durations import format_duration

__all__ = ["plain", "wire_form"]

_SECRET_FIELDS = frozenset(("key_data",))


def wire_form(struct: msgspec.Struct, *, redact: bool, leave_out: frozenset[str] = frozenset()) -> dict[str, Any]:
    """Fields by their wire names. Absent and empty parts are left out; key material is hidden with `redact`."""
    result = {}
    for field in msgspec.structs.fields(struct):
        if field.name in leave_out:
            continue
        value = getattr(struct, field.name)
        if redact and field.name in _SECRET_FIELDS and value:
            result[field.encode_name] = "REDACTED"
            continue
        form = _form(value, redact=redact)
        is_unweighted = field.name == "weight" and form == 0
        if form is not None and form != [] and form != {} and not is_unweighted:
            result[field.encode_name] = form
    return result


def _form(value: Any, *, redact: bool) -> Any:
    if isinstance(value, msgspec.Struct):
        return wire_form(value, redact=redact)
    if isinstance(value, timedelta):
        return format_duration(value)
    if isinstance(value, tuple):
        return [_form(item, redact=redact) for item in value]
    return plain(value)


def plain(value: Any) -> Any:
    """A deep copy out of ordinary dicts and lists."""
    if isinstance(value, dict):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return value
