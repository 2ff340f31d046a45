"""The part of JSON Schema that our published schema uses, to check outputs with."""

from __future__ import annotations

from typing import Any

_TYPES: dict[str, Any] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "number": (int, float),
    "integer": int,
    "null": type(None),
}


def problems(value: Any, schema: dict[str, Any], root: dict[str, Any], path: str = "$") -> list[str]:
    """What of a value is not as the schema says, by path."""
    if "$ref" in schema:
        return problems(value, root["$defs"][schema["$ref"].rsplit("/", 1)[-1]], root, path)
    if "anyOf" in schema:
        if any(not problems(value, option, root, path) for option in schema["anyOf"]):
            return []
        return [f"{path}: {value!r} is none of the options"]
    if "enum" in schema:
        return [] if value in schema["enum"] else [f"{path}: {value!r} is not one of {schema['enum']}"]
    if "const" in schema and value != schema["const"]:
        return [f"{path}: {value!r} is not {schema['const']!r}"]
    return _by_type(value, schema, root, path)


def _by_type(value: Any, schema: dict[str, Any], root: dict[str, Any], path: str) -> list[str]:
    kind = schema.get("type")
    if kind is None:
        return []
    if not isinstance(value, _TYPES[kind]) or (kind in ("integer", "number") and isinstance(value, bool)):
        return [f"{path}: {value!r} is no {kind}"]
    found: list[str] = []
    if kind == "object":
        found += [f"{path}: `{name}` is missing" for name in schema.get("required", ()) if name not in value]
        known, others = schema.get("properties", {}), schema.get("additionalProperties", True)
        for name, inner in value.items():
            if name in known:
                found += problems(inner, known[name], root, f"{path}.{name}")
            elif isinstance(others, dict):
                found += problems(inner, others, root, f"{path}.{name}")
            elif known:
                found.append(f"{path}: `{name}` is not in the schema")
    if kind == "array":
        places = schema.get("prefixItems", ())
        for place, inner in enumerate(value):
            expected = places[place] if place < len(places) else schema.get("items", {})
            if isinstance(expected, dict):
                found += problems(inner, expected, root, f"{path}[{place}]")
    return found
