"""From a value to a part of it: the key of a map, the index of a list."""

from __future__ import annotations

from bayplan.cel.errors import EvaluationError
from bayplan.cel.values import INT_MAX, DefaultMap, Optional, Uint, Value, find, reflected_name, show, type_name

__all__ = ["optional_part", "qualify", "qualify_if_present"]


def qualify(value: Value, key: Value) -> Value:
    """The part of the value at the key; an error where there is none."""
    is_present, part = qualify_if_present(value, key)
    if not is_present:
        if isinstance(value, list):
            raise EvaluationError(f"index out of bounds: {show(key)}")
        raise EvaluationError(f"no such key: {show(key)}")
    return part


def qualify_if_present(value: Value, key: Value) -> tuple[bool, Value]:
    """Whether the value has such a part, and the part. Values without parts have none."""
    if key.__class__ is not str and not isinstance(key, int | float):
        raise EvaluationError(f"invalid qualifier type: {reflected_name(key)}")
    if isinstance(value, dict):
        is_present, part = find(value, key)
        if not is_present and isinstance(value, DefaultMap):
            return True, DefaultMap.absent
        return is_present, part
    if isinstance(value, list):
        index = _index(key)
        return (True, value[index]) if 0 <= index < len(value) else (False, None)
    return False, None


def optional_part(value: Value, key: Value) -> Optional:
    """The part of a value, or of what an optional value holds, as an optional value."""
    if isinstance(value, Optional):
        if not value.is_present:
            return value
        value = value.content
    is_present, part = qualify_if_present(value, key)
    return Optional(part) if is_present else Optional.NONE


def _index(key: Value) -> int:
    if isinstance(key, int) and not isinstance(key, bool | Uint):
        return key
    if isinstance(key, Uint) and key <= INT_MAX:
        return int(key)
    if isinstance(key, float) and key.is_integer() and abs(key) < 2.0**63:
        return int(key)
    if isinstance(key, Uint | float):
        raise EvaluationError(f"unsupported index value {show(key)} in list")
    raise EvaluationError(f"unsupported index type '{type_name(key)}' in list")
