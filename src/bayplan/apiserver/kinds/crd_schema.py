"""Structural schemas of custom resources: pruning, defaulting, validation, and translation to `FieldType`.

A schema is the `openAPIV3Schema` of a definition, as decoded JSON. Rules in `x-kubernetes-validations` (CEL)
are in `crd_expressions`.
"""

from __future__ import annotations

import copy
import functools

import msgspec
import re2

from bayplan.apiserver.kinds.string_formats import has_format
from bayplan.apiserver.kinds.type_table import ANY, Field, FieldType, builtin_types
from bayplan.apiserver.protocol import errors
from bayplan.apiserver.protocol.encoding import Json, JsonValue
from bayplan.apiserver.protocol.errors import Cause

_PRESERVE = "x-kubernetes-preserve-unknown-fields"
_INT_OR_STRING = "x-kubernetes-int-or-string"
_EMBEDDED = "x-kubernetes-embedded-resource"
_RE2_OPTIONS = re2.Options()
_RE2_OPTIONS.log_errors = False
_RE2_OPTIONS.max_mem = 8 << 20
_ENVELOPE = ("apiVersion", "kind", "metadata")


def prune(value: JsonValue, schema: Json, *, path: str = "", is_root: bool = True) -> list[str]:
    """Remove, in place, what the schema does not declare; answers the removed paths."""
    if isinstance(value, list) and isinstance(schema.get("items"), dict):
        return [
            found
            for index, item in enumerate(value)
            for found in prune(item, schema["items"], path=f"{path}[{index}]", is_root=False)
        ]
    if not isinstance(value, dict):
        return []
    keeps_envelope = is_root or bool(schema.get(_EMBEDDED))
    properties = schema.get("properties") or {}
    additional = schema.get("additionalProperties")
    removed: list[str] = []
    for name in list(value):
        inner = f"{path}.{name}" if path else name
        if keeps_envelope and name in _ENVELOPE:
            continue
        if name in properties:
            removed += prune(value[name], properties[name], path=inner, is_root=False)
        elif isinstance(additional, dict):
            removed += prune(value[name], additional, path=inner, is_root=False)
        elif not (schema.get(_PRESERVE) or additional is True):
            del value[name]
            removed.append(inner)
    return removed


def apply_defaults(value: JsonValue, schema: Json) -> None:
    """Fill in declared defaults, in place."""
    if isinstance(value, list) and isinstance(schema.get("items"), dict):
        for item in value:
            apply_defaults(item, schema["items"])
    if not isinstance(value, dict):
        return
    for name, inner in (schema.get("properties") or {}).items():
        if "default" in inner and (name not in value or (value[name] is None and not inner.get("nullable"))):
            value[name] = copy.deepcopy(inner["default"])
        if name in value:
            apply_defaults(value[name], inner)
    additional = schema.get("additionalProperties")
    if isinstance(additional, dict):
        for name in value:
            if name not in (schema.get("properties") or {}):
                apply_defaults(value[name], additional)


def drop_nulls(value: JsonValue, schema: Json) -> None:
    """Nulls of fields that are not nullable count as absent."""
    if not isinstance(value, dict):
        return
    for name, inner in (schema.get("properties") or {}).items():
        if name in value and value[name] is None and not inner.get("nullable"):
            del value[name]
        elif name in value:
            drop_nulls(value[name], inner)


def validate(value: JsonValue, schema: Json, path: str = "", depth: int = 0) -> list[Cause]:
    """Every way in which a value breaks the schema."""
    if depth > 100 or (value is None and schema.get("nullable")):
        return []
    causes = _check_type(value, schema, path)
    if causes:
        return causes
    if "enum" in schema and value not in schema["enum"]:
        causes.append(errors.not_supported(path, value, [str(allowed) for allowed in schema["enum"]]))
    if isinstance(value, str):
        causes += _check_string(value, schema, path)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        causes += _check_number(value, schema, path)
    elif isinstance(value, list):
        causes += _check_list(value, schema, path, depth)
    elif isinstance(value, dict):
        causes += _check_object(value, schema, path, depth)
    return causes + _check_combinations(value, schema, path, depth)


_PYTHON_TYPES: dict[str, type] = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int}


def _check_type(value: JsonValue, schema: Json, path: str) -> list[Cause]:
    expected = schema.get("type")
    if schema.get(_INT_OR_STRING):
        fits = isinstance(value, (int, str)) and not isinstance(value, bool)
        return [] if fits else [_wrong_type(value, path, "integer,string")]
    if not expected:
        return []
    if expected == "number":
        fits = isinstance(value, (int, float)) and not isinstance(value, bool)
    elif expected == "integer":
        fits = (isinstance(value, int) and not isinstance(value, bool)) or (
            isinstance(value, float) and value.is_integer()
        )
    else:
        fits = isinstance(value, _PYTHON_TYPES.get(expected, object))
    return [] if fits else [_wrong_type(value, path, expected)]


def _wrong_type(value: JsonValue, path: str, expected: str) -> Cause:
    names = {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer", float: "number"}
    found = names.get(type(value), "null")
    detail = f'{path} in body must be of type {expected}: "{found}"'
    return Cause(path, f'Invalid value: "{found}": {detail}', "FieldValueTypeInvalid")


def _check_string(value: str, schema: Json, path: str) -> list[Cause]:
    causes = []
    if "maxLength" in schema and len(value) > schema["maxLength"]:
        causes.append(Cause(path, f"Too long: may not be more than {schema['maxLength']} bytes", "FieldValueTooLong"))
    if len(value) < schema.get("minLength", 0):
        detail = f"{path} in body should be at least {schema['minLength']} chars long"
        causes.append(errors.invalid_value(path, value, detail))
    pattern = schema.get("pattern")
    if pattern and not _matches(pattern, value):
        causes.append(errors.invalid_value(path, value, f"{path} in body should match '{pattern}'"))
    form = schema.get("format", "")
    if form and not has_format(value, form):
        causes.append(errors.invalid_value(path, value, f'{path} in body must be of type {form}: "{value}"'))
    return causes


@functools.lru_cache(maxsize=1024)
def compiled_pattern(pattern: str) -> re2._Regexp:
    """A pattern with RE2's syntax, which matches in time linear in the text. Raises `re2.error`."""
    return re2.compile(pattern, _RE2_OPTIONS)


def _matches(pattern: str, value: str) -> bool:
    try:
        return compiled_pattern(pattern).search(value) is not None
    except re2.error:
        return True


def _check_number(value: float, schema: Json, path: str) -> list[Cause]:
    causes = []
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and (value < low or (value == low and schema.get("exclusiveMinimum"))):
        relation = "greater than" if schema.get("exclusiveMinimum") else "greater than or equal to"
        causes.append(errors.invalid_value(path, value, f"{path} in body should be {relation} {low}"))
    if high is not None and (value > high or (value == high and schema.get("exclusiveMaximum"))):
        relation = "less than" if schema.get("exclusiveMaximum") else "less than or equal to"
        causes.append(errors.invalid_value(path, value, f"{path} in body should be {relation} {high}"))
    step = schema.get("multipleOf")
    if step and value % step:
        causes.append(errors.invalid_value(path, value, f"{path} in body should be a multiple of {step}"))
    return causes


def _check_list(value: list[JsonValue], schema: Json, path: str, depth: int) -> list[Cause]:
    causes: list[Cause] = []
    if "maxItems" in schema and len(value) > schema["maxItems"]:
        detail = f"Too many: {len(value)}: must have at most {schema['maxItems']} items"
        causes.append(Cause(path, detail, "FieldValueTooMany"))
    if len(value) < schema.get("minItems", 0):
        detail = f"{path} in body should have at least {schema['minItems']} items"
        causes.append(errors.invalid_value(path, len(value), detail))
    if isinstance(schema.get("items"), dict):
        for index, item in enumerate(value):
            causes += validate(item, schema["items"], f"{path}[{index}]", depth + 1)
    return causes + _check_unique(value, schema, path)


def _check_unique(value: list[JsonValue], schema: Json, path: str) -> list[Cause]:
    keys = schema.get("x-kubernetes-list-map-keys") if schema.get("x-kubernetes-list-type") == "map" else None
    if keys is None and schema.get("x-kubernetes-list-type") != "set":
        return []
    seen: set[bytes] = set()
    causes = []
    for index, item in enumerate(value):
        name = {key: item.get(key) for key in keys} if keys and isinstance(item, dict) else item
        known_as = msgspec.json.encode(name, order="deterministic")
        if known_as in seen:
            causes.append(errors.duplicate_value(f"{path}[{index}]", str(name)))
        seen.add(known_as)
    return causes


def _check_object(value: Json, schema: Json, path: str, depth: int) -> list[Cause]:
    causes = [
        errors.required(f"{path}.{name}" if path else name)
        for name in schema.get("required") or ()
        if name not in value
    ]
    properties = schema.get("properties") or {}
    additional = schema.get("additionalProperties")
    for name, inner in value.items():
        where = f"{path}.{name}" if path else name
        if name in properties:
            causes += validate(inner, properties[name], where, depth + 1)
        elif isinstance(additional, dict):
            causes += validate(inner, additional, where, depth + 1)
    if len(value) < schema.get("minProperties", 0):
        detail = f"{path} in body should have at least {schema['minProperties']} properties"
        causes.append(errors.invalid_value(path, len(value), detail))
    if "maxProperties" in schema and len(value) > schema["maxProperties"]:
        causes.append(Cause(path, f"Too many: {len(value)}", "FieldValueTooMany"))
    return causes


def _check_combinations(value: JsonValue, schema: Json, path: str, depth: int) -> list[Cause]:
    causes = [cause for part in schema.get("allOf") or () for cause in validate(value, part, path, depth + 1)]
    if schema.get("anyOf") and not any(not validate(value, part, path, depth + 1) for part in schema["anyOf"]):
        causes.append(errors.invalid_value(path, "", f"{path} in body must validate at least one schema (anyOf)"))
    if schema.get("oneOf") and sum(not validate(value, part, path, depth + 1) for part in schema["oneOf"]) != 1:
        detail = f"{path} in body must validate one and only one schema (oneOf)"
        causes.append(errors.invalid_value(path, "", detail))
    if schema.get("not") and not validate(value, schema["not"], path, depth + 1):
        causes.append(errors.invalid_value(path, "", f"{path} in body must not validate the schema (not)"))
    return causes


# ---- translation


def object_type(schema: Json, name: str) -> FieldType:
    """The `FieldType` of a whole custom resource."""
    translated = to_type(schema)
    struct = FieldType("struct", name, fields=dict(translated.fields), preserves_unknown=bool(schema.get(_PRESERVE)))
    string = FieldType("string", "string")
    struct.fields["apiVersion"] = Field("apiVersion", string)
    struct.fields["kind"] = Field("kind", string)
    struct.fields["metadata"] = Field("metadata", builtin_types()["meta.v1.ObjectMeta"])
    return struct


def to_type(schema: Json) -> FieldType:
    """The merge rules of a schema, as a `FieldType`."""
    kind = schema.get("type")
    atomic = schema.get("x-kubernetes-map-type") == "atomic"
    if kind == "object" and schema.get("properties"):
        required = schema.get("required") or ()
        fields = {
            name: Field(name, to_type(inner), required=name in required) for name, inner in schema["properties"].items()
        }
        return FieldType("struct", fields=fields, atomic=atomic, preserves_unknown=bool(schema.get(_PRESERVE)))
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        return FieldType("map", element=to_type(schema["additionalProperties"]), atomic=atomic)
    if kind == "array" and isinstance(schema.get("items"), dict):
        keys = tuple(schema.get("x-kubernetes-list-map-keys") or ())
        list_type = schema.get("x-kubernetes-list-type", "atomic")
        return FieldType("list", element=to_type(schema["items"]), list_type=list_type, list_keys=keys)
    if schema.get(_INT_OR_STRING):
        return FieldType("intorstring", "intorstring")
    scalars = {"string": "string", "integer": "int64", "boolean": "bool", "number": "number"}
    return FieldType(scalars[kind], scalars[kind]) if kind in scalars else ANY
