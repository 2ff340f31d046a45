"""Derives CustomResourceDefinitions with structural OpenAPI v3 schemas from Python types.

The type is the only source: field names, what is required, ranges (`Annotated[int, Meta(ge=0)]`), descriptions
(docstrings and `Meta(description=...)`) and vendor keywords (`Meta(extra_json_schema=...)`) all come from it. Defaults
of fields are left to Python: in the schema they would be stored in every object and outlive a later change.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Any

import msgspec.inspect as types

from bayplan.api.meta import KubeObject, Struct
from bayplan.framework.resources import CustomResource, ResourceInfo, ResourcePart, resource_info

__all__ = ["SchemaError", "crd_document", "crd_documents", "foreign_kinds", "owned_kinds", "schema_of"]

Schema = dict[str, Any]
_APPROVAL = "api-approved.kubernetes.io"
_PROTECTED = (".k8s.io", ".kubernetes.io")
_BOUNDS = {"ge": ("minimum", False), "gt": ("minimum", True), "le": ("maximum", False), "lt": ("maximum", True)}
_UNDOCUMENTED = {base.__doc__ for base in (Struct, KubeObject, ResourcePart, CustomResource)}


class SchemaError(TypeError):
    """A type that no structural schema can describe."""


def crd_documents(kinds: Iterable[type[Any]]) -> list[Schema]:
    """One definition a resource; types that are versions of one resource share it, the first is the stored one."""
    by_name: dict[str, list[type[Any]]] = {}
    for kind in dict.fromkeys(kinds):
        by_name.setdefault(resource_info(kind).crd_name, []).append(kind)
    return [crd_document(*by_name[name]) for name in sorted(by_name)]


def owned_kinds(kinds: Iterable[type[Any]]) -> list[type[Any]]:
    """The types whose definitions may be rendered: those that declare them as their own."""
    return [kind for kind in kinds if resource_info(kind).is_owned]


def foreign_kinds(kinds: Iterable[type[Any]]) -> list[type[Any]]:
    """The types of resources that other projects define."""
    return [kind for kind in kinds if not resource_info(kind).is_owned]


def crd_document(kind: type[Any], *others: type[Any]) -> Schema:
    """The definition of a resource, from the types of its versions."""
    info = resource_info(kind)
    versions: dict[str, Schema] = {}
    for each in (kind, *others):
        name = resource_info(each).version
        version = _version(each, is_stored=not versions)
        if name in versions and versions[name]["schema"] != version["schema"]:
            raise SchemaError(
                f"`{info.crd_name}` {name} is declared by two types with different fields; keep one of them, or give "
                "the other another version"
            )
        versions.setdefault(name, version)
    metadata: Schema = {"name": info.crd_name}
    if info.approved_by:
        metadata["annotations"] = {_APPROVAL: info.approved_by}
    elif info.group.endswith(_PROTECTED):
        # The API server refuses definitions in its own groups without this annotation.
        metadata["annotations"] = {_APPROVAL: "unapproved, not part of Kubernetes"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": {
            "group": info.group,
            "names": _names(info),
            "scope": "Namespaced" if info.is_namespaced else "Cluster",
            "versions": list(versions.values()),
        },
    }


def _names(info: ResourceInfo) -> Schema:
    names: Schema = {
        "kind": info.kind,
        "listKind": f"{info.kind}List",
        "plural": info.plural,
        "singular": info.singular,
    }
    return names | ({"shortNames": list(info.short_names)} if info.short_names else {})


def _version(kind: type[Any], *, is_stored: bool) -> Schema:
    schema = schema_of(kind)
    version: Schema = {"name": resource_info(kind).version, "served": True, "storage": is_stored}
    version["schema"] = {"openAPIV3Schema": schema}
    if "status" in schema["properties"]:
        version["subresources"] = {"status": {}}
    columns = resource_info(kind).columns
    if columns:
        version["additionalPrinterColumns"] = [{"name": c.name, "type": c.type, "jsonPath": c.path} for c in columns]
    return version


def schema_of(kind: type[Any]) -> Schema:
    """The OpenAPI v3 schema of a custom resource type."""
    try:
        described = types.type_info(kind)
    except (TypeError, NameError) as error:
        raise SchemaError(f"a field of `{kind.__name__}` cannot be read: {error}") from error
    schema = _struct(described, ())
    properties = schema.get("properties", {})
    properties.pop("metadata", None)
    header: Schema = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"}}
    return schema | {"properties": header | properties}


def _schema(info: types.Type, inside: tuple[type, ...]) -> Schema:
    """`inside` are the structs around this place: a struct cannot contain itself in a structural schema."""
    if isinstance(info, types.Metadata):
        return _schema(info.type, inside) | (info.extra_json_schema or {})
    if isinstance(info, types.StructType):
        return _struct(info, inside)
    if isinstance(info, types.UnionType):
        return _union(info, inside)
    if isinstance(info, types.DictType):
        return {"type": "object", "additionalProperties": _schema(info.value_type, inside)} | _lengths(
            info, "Properties"
        )
    if isinstance(info, types.ListType | types.VarTupleType | types.SetType | types.FrozenSetType):
        return {"type": "array", "items": _schema(info.item_type, inside)} | _lengths(info, "Items")
    return _scalar(info)


def _scalar(info: types.Type) -> Schema:
    if isinstance(info, types.BoolType):
        return {"type": "boolean"}
    if isinstance(info, types.IntType):
        return {"type": "integer", "format": "int64"} | _range(info)
    if isinstance(info, types.FloatType):
        return {"type": "number"} | _range(info)
    if isinstance(info, types.StrType):
        pattern = {"pattern": info.pattern} if info.pattern else {}
        return {"type": "string"} | _lengths(info, "Length") | pattern
    if isinstance(info, types.DateTimeType):
        return {"type": "string", "format": "date-time"}
    if isinstance(info, types.EnumType):
        return _choice([member.value for member in info.cls])
    if isinstance(info, types.LiteralType):
        return _choice(list(info.values))
    if isinstance(info, types.AnyType):
        return {"x-kubernetes-preserve-unknown-fields": True}
    raise SchemaError(
        f"a field of type {type(info).__name__.removesuffix('Type')} has no place in a custom resource; use numbers, "
        "texts, lists, dicts with text keys, or structs"
    )


def _struct(info: Any, inside: tuple[type, ...]) -> Schema:
    if info.cls in inside:
        raise SchemaError(
            f"`{info.cls.__name__}` contains itself, which the API server does not allow; use `Any` for the inner one"
        )
    within = (*inside, info.cls)
    properties = {field.encode_name: _schema(field.type, within) for field in info.fields}
    schema: Schema = {"type": "object"} | _description(info.cls)
    if properties:
        schema["properties"] = properties
    required = [field.encode_name for field in info.fields if field.required]
    return schema | ({"required": required} if required else {})


def _description(cls: type) -> Schema:
    text = cls.__dict__.get("__doc__") or ""
    return {"description": inspect.cleandoc(text)} if text and text not in _UNDOCUMENTED else {}


def _union(info: types.UnionType, inside: tuple[type, ...]) -> Schema:
    members = [member for member in info.types if not isinstance(member, types.NoneType)]
    nullable = {"nullable": True} if len(members) < len(info.types) else {}
    if len(members) == 1:
        return _schema(members[0], inside) | nullable
    names = {type(member) for member in members}
    if names == {types.IntType, types.FloatType}:
        return {"type": "number"} | nullable
    if types.StrType in names and names <= {types.StrType, types.IntType, types.FloatType}:
        return {"x-kubernetes-int-or-string": True} | nullable
    return {"x-kubernetes-preserve-unknown-fields": True} | nullable


def _range(info: Any) -> Schema:
    found: Schema = {}
    for attribute, (keyword, is_exclusive) in _BOUNDS.items():
        bound = getattr(info, attribute)
        if bound is not None:
            found[keyword] = bound
            if is_exclusive:
                found[f"exclusive{keyword.capitalize()}"] = True
    return found | ({"multipleOf": info.multiple_of} if info.multiple_of is not None else {})


def _lengths(info: Any, what: str) -> Schema:
    bounds = {f"min{what}": info.min_length, f"max{what}": info.max_length}
    return {keyword: bound for keyword, bound in bounds.items() if bound is not None}


def _choice(values: list[Any]) -> Schema:
    kind = "integer" if all(isinstance(value, int) for value in values) else "string"
    return {"type": kind, "enum": values}
