"""Makes a decoded document conform to its declared type, and reports what does not.

Unknown fields are dropped and reported by path, nulls count as absent, and a value of the wrong type is an error
with the path and what was expected. Quantities and times are spelled as the API server spells them, and zero values are
dropped, kept or added as Go does with the declared types: a JSON body, a YAML body and a protobuf body of one object
become one document. Works in place on freshly decoded documents; never touches stored ones.
"""

from __future__ import annotations

import base64
import binascii
import copy
import functools
import math
import re
from dataclasses import dataclass, field

from bayplan.apiserver.kinds.type_table import Field, FieldType
from bayplan.apiserver.protocol.encoding import Json, JsonValue, microtimestamp, parse_timestamp, timestamp
from bayplan.apiserver.protocol.quantity import BadQuantity, canonical_quantity

_TIME = re.compile(
    r"^[0-9]{4}(?:-[0-9]{2}){2}[Tt][0-9]{2}(?::[0-9]{2}){2}(?:\.[0-9]+)?(?:[Zz]|[+-][0-9]{2}:[0-9]{2})\Z"
)
_INTEGER_RANGES = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}
_CANONICAL_TIMES = {
    "time": re.compile(r"^[0-9]{4}(?:-[0-9]{2}){2}T[0-9]{2}(?::[0-9]{2}){2}Z\Z"),
    "microtime": re.compile(r"^[0-9]{4}(?:-[0-9]{2}){2}T[0-9]{2}(?::[0-9]{2}){2}\.[0-9]{6}Z\Z"),
}
# Read by rules that take their presence for granted.
_KEPT_STRUCTS = ("metadata", "spec", "template")
MAX_DEPTH = 200


class WrongType(Exception):
    """A value cannot be read as its declared type; the message names the path."""


@dataclass(slots=True)
class Findings:
    """What was dropped, and how zero values are treated."""

    unknown: list[str] = field(default_factory=list)
    fills: bool = True
    drops_empty: bool = False


def conform(
    document: JsonValue, declared: FieldType, *, path: str = "", fills: bool = True, drops_empty: bool = False
) -> Findings:
    """Drop what `declared` does not know, in place. Raises `WrongType` on the first value of the wrong type.

    `fills` drops and adds zero values; an applied configuration keeps exactly what its author wrote. `drops_empty`
    drops empty parts that are no pointers: protobuf writes them whether or not the client has set them.
    """
    findings = Findings(fills=fills, drops_empty=drops_empty)
    _conform(document, declared, path, findings, 0)
    return findings


def _conform(value: JsonValue, declared: FieldType, path: str, findings: Findings, depth: int) -> JsonValue:
    if depth > MAX_DEPTH:
        raise WrongType(f"{path}: nested more than {MAX_DEPTH} levels deep")
    kind = declared.kind
    if kind == "struct":
        return _conform_struct(value, declared, path, findings, depth)
    if kind == "list":
        return _conform_list(value, declared, path, findings, depth)
    if kind == "map":
        return _conform_map(value, declared, path, findings, depth)
    if kind == "union":
        return _conform_union(value, declared, path, findings, depth)
    return value if kind == "any" else _conform_scalar(value, kind, path)


def _conform_struct(value: JsonValue, declared: FieldType, path: str, findings: Findings, depth: int) -> JsonValue:
    if not isinstance(value, dict):
        raise WrongType(f"{path or 'the object'}: expected an object, found {_spelled(value)}")
    for name in list(value):
        inner = f"{path}.{name}" if path else name
        member = declared.fields.get(name)
        if member is None:
            if not declared.preserves_unknown:
                findings.unknown.append(inner)
                del value[name]
        elif value[name] is None:
            del value[name]
        else:
            found = value[name] = _conform(value[name], member.type, inner, findings, depth + 1)
            if findings.fills and not found and _is_left_out(found, member, findings, depth):
                del value[name]
    if findings.fills:
        for name, zero in _always_written(declared):
            if name not in value:
                value[name] = copy.deepcopy(zero)
    return value


@functools.cache
def _always_written(declared: FieldType) -> list[tuple[str, JsonValue]]:
    return list(declared.zero((declared,)).items())


def _is_left_out(found: JsonValue, member: Field, findings: Findings, depth: int) -> bool:
    """Whether Go leaves this empty value out."""
    kind = member.type.kind
    if kind in ("list", "map"):  # not to be told from absent ones in protobuf, which real servers store
        return True
    if member.is_pointer or member.is_always_written or kind in ("any", "union"):
        return False
    return kind != "struct" or (findings.drops_empty and depth > 0 and member.name not in _KEPT_STRUCTS)


def _conform_union(value: JsonValue, declared: FieldType, path: str, findings: Findings, depth: int) -> JsonValue:
    schema = declared.element or declared
    if isinstance(value, dict):
        return _conform(value, schema, path, findings, depth + 1)
    if declared.name == "schema-or-bool":
        return _expect(value, isinstance(value, bool), "a schema or a boolean", path)
    _expect(value, isinstance(value, list), "a schema or a list", path)
    if declared.name == "schema-or-schemas":
        return [_conform(one, schema, f"{path}[{index}]", findings, depth + 1) for index, one in enumerate(value)]
    return [_expect(one, isinstance(one, str), "a string", f"{path}[{index}]") for index, one in enumerate(value)]


def _conform_list(value: JsonValue, declared: FieldType, path: str, findings: Findings, depth: int) -> JsonValue:
    if not isinstance(value, list):
        raise WrongType(f"{path}: expected a list, found {_spelled(value)}")
    element = declared.element
    if element is None:
        return value
    for index, item in enumerate(value):
        present = _zero(element) if item is None else item
        value[index] = _conform(present, element, f"{path}[{index}]", findings, depth + 1)
    return value


def _conform_map(value: JsonValue, declared: FieldType, path: str, findings: Findings, depth: int) -> JsonValue:
    if not isinstance(value, dict):
        raise WrongType(f"{path}: expected an object, found {_spelled(value)}")
    element = declared.element
    if element is None:
        return value
    for key, item in value.items():
        present = _zero(element) if item is None else item
        value[key] = _conform(present, element, f"{path}.{key}", findings, depth + 1)
    return value


def _zero(declared: FieldType) -> JsonValue:
    zeros: Json = {"struct": {}, "map": {}, "list": [], "bool": False, "quantity": "0", "intorstring": 0}
    if declared.kind in zeros:
        return zeros[declared.kind].copy() if declared.kind in ("struct", "map", "list") else zeros[declared.kind]
    return 0 if declared.kind in ("int32", "int64", "number") else None if declared.kind == "any" else ""


def _conform_scalar(value: JsonValue, kind: str, path: str) -> JsonValue:
    if kind == "quantity":
        return _conform_quantity(value, path)
    if kind == "bool":
        return _expect(value, isinstance(value, bool), "a boolean", path)
    if kind in _INTEGER_RANGES:
        return _conform_integer(value, kind, path)
    if kind == "number":
        return _expect(value, isinstance(value, (int, float)) and not isinstance(value, bool), "a number", path)
    if kind == "intorstring":
        fits = isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool))
        return _expect(value, fits, "an integer or a string", path)
    _expect(value, isinstance(value, str), "a string", path)
    if kind in ("time", "microtime"):
        _expect(value, _TIME.match(value) is not None, "a time such as 2026-01-31T12:00:00Z", path)
        return _canonical_time(value, kind)
    if kind == "bytes":
        return _expect(value, _is_base64(value), "base64 data", path)
    return value


def _canonical_time(text: str, kind: str) -> str:
    """The time as the API server writes it: UTC, whole seconds or microseconds."""
    if _CANONICAL_TIMES[kind].match(text):
        return text
    seconds = parse_timestamp(text.upper())
    return timestamp(math.floor(seconds)) if kind == "time" else microtimestamp(seconds)


def _conform_integer(value: JsonValue, kind: str, path: str) -> JsonValue:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    low, high = _INTEGER_RANGES[kind]
    fits = isinstance(value, int) and not isinstance(value, bool) and low <= value <= high
    return _expect(value, fits, f"an integer of type {kind}", path)


def _conform_quantity(value: JsonValue, path: str) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise WrongType(f"{path}: expected a quantity such as 500m or 2Gi, found {_spelled(value)}")
    try:
        return canonical_quantity(str(value))
    except BadQuantity as problem:
        raise WrongType(f"{path}: {problem}") from problem


def _expect(value: JsonValue, fits: bool, expected: str, path: str) -> JsonValue:
    if not fits:
        raise WrongType(f"{path}: expected {expected}, found {_spelled(value)}")
    return value


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(text.replace("\n", "").replace("\r", ""), validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def _spelled(value: JsonValue) -> str:
    """The type of a value in JSON's words."""
    names = {dict: "object", list: "array", str: "string", bool: "boolean", type(None): "null"}
    return names.get(type(value), "number")
