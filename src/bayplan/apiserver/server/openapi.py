"""OpenAPI v3 documents, one a group and version, derived from the kinds and their types.

Enough for `kubectl explain`, for client-side schema lookups and for clients that check whether the server supports
field validation and server-side apply.
"""

from __future__ import annotations

from collections.abc import Iterable

from bayplan.apiserver.kinds.kind import ServedKind
from bayplan.apiserver.kinds.type_table import Field, FieldType, builtin_types
from bayplan.apiserver.protocol.encoding import Json

_REF = "#/components/schemas/"
_PREFIXES = {
    "meta.v1.": "io.k8s.apimachinery.pkg.apis.meta.v1.",
    "apiextensions.v1.": "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.",
}
_SCALARS: dict[str, Json] = {
    "string": {"type": "string"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "bool": {"type": "boolean"},
    "number": {"type": "number", "format": "double"},
    "quantity": {"oneOf": [{"type": "string"}, {"type": "number"}]},
    "intorstring": {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]},
    "time": {"type": "string", "format": "date-time"},
    "microtime": {"type": "string", "format": "date-time"},
    "bytes": {"type": "string", "format": "byte"},
}
_WRITE_PARAMETERS = ("dryRun", "fieldManager", "fieldValidation")
_READ_PARAMETERS = (
    "allowWatchBookmarks",
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "timeoutSeconds",
    "watch",
)
_PATCH_TYPES = (
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
)


def schema_name(type_name: str) -> str:
    for short, full in _PREFIXES.items():
        if type_name.startswith(short):
            return full + type_name[len(short) :]
    return "io.k8s.api." + type_name


def group_version_document(base: str, kinds: Iterable[ServedKind], version: str) -> Json:
    """The OpenAPI document of one group and version."""
    schemas = _Schemas()
    paths: Json = {}
    for kind in kinds:
        schemas.add_kind(kind)
        paths |= _kind_paths(base, kind)
    return {
        "openapi": "3.0.0",
        "info": {"title": "Bayplan embedded Kubernetes API", "version": version},
        "paths": paths,
        "components": {"schemas": schemas.schemas},
    }


class _Schemas:
    """Collects the schemas of kinds and of everything they refer to."""

    def __init__(self) -> None:
        self.schemas: dict[str, Json] = {}

    def add_kind(self, kind: ServedKind) -> None:
        identity = [{"group": kind.group, "version": kind.version, "kind": kind.kind}]
        name = kind_schema_name(kind)
        if kind.is_custom:
            schema = _custom_schema(kind)
            self._add(builtin_types()["meta.v1.ObjectMeta"])
        else:
            self._add(kind.type)
            schema = self.schemas[name]
        schema["x-kubernetes-group-version-kind"] = identity
        self.schemas[name] = schema
        self.schemas[name + "List"] = _list_schema(kind, name)
        self._add(builtin_types()["meta.v1.ListMeta"])

    def _add(self, declared: FieldType) -> None:
        name = schema_name(declared.name)
        if name in self.schemas:
            return
        about = declared.description or f"{declared.name.rpartition('.')[2]} of the Kubernetes API."
        schema: Json = {"type": "object", "description": about}
        self.schemas[name] = schema
        schema["properties"] = {field.name: self._field(field) for field in declared.fields.values()}
        if declared.required_fields():
            schema["required"] = declared.required_fields()
        if declared.atomic:
            schema["x-kubernetes-map-type"] = "atomic"

    def _field(self, field: Field) -> Json:
        schema = self._schema(field.type)
        if field.description:
            schema["description"] = field.description
        if field.patch_strategies:
            schema["x-kubernetes-patch-strategy"] = ",".join(sorted(field.patch_strategies))
        if field.patch_key:
            schema["x-kubernetes-patch-merge-key"] = field.patch_key
        return schema

    def _schema(self, declared: FieldType) -> Json:
        if declared.kind == "struct":
            self._add(declared)
            return {"allOf": [{"$ref": _REF + schema_name(declared.name)}], "default": {}}
        if declared.kind == "list":
            schema: Json = {"type": "array", "items": self._schema(declared.element) if declared.element else {}}
            if declared.list_type != "atomic":
                schema["x-kubernetes-list-type"] = declared.list_type
            if declared.list_keys:
                schema["x-kubernetes-list-map-keys"] = list(declared.list_keys)
            return schema
        if declared.kind == "map":
            inner = self._schema(declared.element) if declared.element else {}
            return {"type": "object", "additionalProperties": inner}
        return dict(_SCALARS.get(declared.kind, {"type": "object"}))


def kind_schema_name(kind: ServedKind) -> str:
    if not kind.is_custom:
        return schema_name(kind.type.name)
    return ".".join([*reversed(kind.group.split(".")), kind.version, kind.kind])


def _custom_schema(kind: ServedKind) -> Json:
    properties: Json = dict(kind.schema.get("properties") or {})
    properties["apiVersion"] = {
        "type": "string",
        "description": "APIVersion defines group and version of this object.",
    }
    properties["kind"] = {"type": "string", "description": "The kind of this object."}
    reference = {"$ref": _REF + schema_name("meta.v1.ObjectMeta")}
    properties["metadata"] = {"allOf": [reference], "description": "Standard object's metadata."}
    return {**kind.schema, "type": "object", "properties": properties}


def _list_schema(kind: ServedKind, name: str) -> Json:
    return {
        "type": "object",
        "description": f"A list of {kind.kind} objects.",
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"allOf": [{"$ref": _REF + schema_name("meta.v1.ListMeta")}]},
            "items": {"type": "array", "items": {"allOf": [{"$ref": _REF + name}]}},
        },
        "required": ["items"],
        "x-kubernetes-group-version-kind": [{"group": kind.group, "version": kind.version, "kind": kind.list_kind}],
    }


def _kind_paths(base: str, kind: ServedKind) -> Json:
    collection = f"{base}/namespaces/{{namespace}}/{kind.plural}" if kind.namespaced else f"{base}/{kind.plural}"
    paths = {collection: _operations(kind, {"get": "list", "post": "create", "delete": "deletecollection"})}
    if "get" in kind.verbs:
        item = {"get": "get", "put": "update", "patch": "patch", "delete": "delete"}
        paths[collection + "/{name}"] = _operations(kind, item)
    if kind.namespaced and "list" in kind.verbs:
        paths[f"{base}/{kind.plural}"] = _operations(kind, {"get": "list"})
    return paths


def _operations(kind: ServedKind, verbs: dict[str, str]) -> Json:
    return {method: _operation(kind, verb) for method, verb in verbs.items() if verb in kind.verbs}


_ACTIONS = {"create": "post", "update": "put"}


def _operation(kind: ServedKind, verb: str) -> Json:
    is_write = verb in ("create", "update", "patch")
    names = _WRITE_PARAMETERS if is_write else _READ_PARAMETERS if verb in ("list", "deletecollection") else ()
    names = (*names, "force") if verb == "patch" else names
    reference = {"$ref": _REF + kind_schema_name(kind) + ("List" if verb == "list" else "")}
    operation: Json = {
        "operationId": f"{verb}{kind.kind}",
        "parameters": [{"name": name, "in": "query", "schema": {"type": "string"}} for name in names],
        "responses": {"200": {"description": "OK", "content": {"application/json": {"schema": reference}}}},
        "x-kubernetes-action": _ACTIONS.get(verb, verb),
        "x-kubernetes-group-version-kind": {"group": kind.group, "version": kind.version, "kind": kind.kind},
    }
    if verb == "patch":
        operation["requestBody"] = {
            "content": {media_type: {"schema": {"type": "object"}} for media_type in _PATCH_TYPES}
        }
    elif is_write:
        operation["requestBody"] = {"content": {"*/*": {"schema": reference}}}
    return operation
