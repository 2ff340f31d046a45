"""What expressions of mutating admission policies make: configurations to apply, and operations of JSON patches.

Configurations are values of the types `Object`, `Object.spec` and so on, whose names say where they belong.
"""

from __future__ import annotations

from bayplan.apiserver.kinds.type_table import FieldType
from bayplan.apiserver.protocol.encoding import Json, JsonValue
from bayplan.cel import EvaluationError
from bayplan.cel.declarations import Constructor, Library, function, overload
from bayplan.cel.types import DYN, STRING, Type, object_type
from bayplan.cel.values import Constructed, Uint, Value, reflected_name, show

__all__ = ["APPLY", "JSON_PATCH", "PATCHES", "applied_object", "atomic_paths", "patch_constructor", "patch_operations"]

APPLY, JSON_PATCH = object_type("Object"), object_type("JSONPatch")
_OPERATION: dict[str, Type] = {"op": STRING, "path": STRING, "from": STRING, "value": DYN}


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


PATCHES = Library(
    "JSON patches",
    (function("jsonpatch.escapeKey", overload("string_jsonpatch_escapeKey_string", (STRING,), STRING, _escaped)),),
)


def patch_constructor(name: str) -> Constructor | None:
    """The types that expressions of mutations may construct."""
    if name == JSON_PATCH.name:
        return Constructor(JSON_PATCH, _OPERATION)
    if name == APPLY.name or name.startswith(f"{APPLY.name}."):
        return Constructor(object_type(name))
    return None


def applied_object(value: Value) -> Json:
    """The configuration to apply. Raises `EvaluationError` where names of types are not those of their places."""
    assert isinstance(value, Constructed), "the type of the expression was checked"
    _check_names(value, value.made.name)
    return {name: _plain(inner) for name, inner in value.fields.items()}


def patch_operations(value: Value) -> list[Json]:
    """The operations of a JSON patch. Raises `EvaluationError`."""
    assert isinstance(value, list), "the type of the expression was checked"
    operations = []
    for operation in value:
        assert isinstance(operation, Constructed), "the type of the expression was checked"
        for inner in operation.fields.values():
            if isinstance(inner, Constructed):
                _check_names(inner, inner.made.name)
        operations.append({name: _plain(inner) for name, inner in operation.fields.items()})
    return operations


def _check_names(value: Value, path: str) -> None:
    """An object in the field `spec` of an `Object` has the type `Object.spec`; lists and maps have no names."""
    if isinstance(value, Constructed):
        if value.made.name != path:
            said = f'unexpected type name "{value.made.name}", expected "{path}"'
            raise EvaluationError(f"type mismatch: {said}, which matches field name path from root Object type")
        for name, inner in value.fields.items():
            _check_names(inner, f"{path}.{name}")
    elif isinstance(value, list | dict):
        for inner in value.values() if isinstance(value, dict) else value:
            _check_names(inner, path)


def _plain(value: Value) -> JsonValue:
    if isinstance(value, Constructed):
        return {name: _plain(inner) for name, inner in value.fields.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            raise EvaluationError(f"map keys of {show(value)} are not all strings")
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, Uint):
        return int(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise EvaluationError(f"a value of type {reflected_name(value)} cannot be part of an object")


def atomic_paths(value: JsonValue, declared: FieldType, path: str = "") -> list[str]:
    """The places of values that would replace a list, map or struct as a whole."""
    if isinstance(value, dict):
        found = [path] if declared.atomic else []
        for name, inner in value.items():
            if name in declared.fields:
                found += atomic_paths(inner, declared.fields[name].type, f"{path}.{name}")
        return found
    if isinstance(value, list) and declared.kind == "list" and declared.element is not None:
        found = [path] if declared.list_type == "atomic" else []
        for index, inner in enumerate(value):
            found += atomic_paths(inner, declared.element, f"{path}[{index}]")
        return found
    return []
