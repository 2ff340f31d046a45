"""Custom resources: a CustomResourceDefinition becomes rows in the table of kinds, one a served version.

Follows the definitions in the store: established ones are served, changed ones replaced, deleted ones withdrawn
together with their objects.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable

from bayplan.apiserver.kinds import crd_schema
from bayplan.apiserver.kinds.columns import AGE, NAME, Cell, Column, Compute, since
from bayplan.apiserver.kinds.crd_expressions import SchemaPlace, compile_rules
from bayplan.apiserver.kinds.kind import ALL_VERBS, Kinds, Scale, Selectable, ServedKind
from bayplan.apiserver.protocol.encoding import Json, JsonValue, decode_object
from bayplan.apiserver.protocol.errors import Cause
from bayplan.apiserver.storage.store import DELETED, Change, Store

DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"
_STEP = re.compile(r"\.([A-Za-z0-9_\-$]+|\['[^']*'\])|\[(\d+)\]|\['([^']*)'\]|\[\"([^\"]*)\"\]")


class CustomResources:
    """Keeps the table of kinds equal to the definitions in the store."""

    def __init__(self, store: Store, kinds: Kinds) -> None:
        self._store = store
        self._kinds = kinds
        self.serve_all()
        store.listen(DEFINITIONS, self._on_change)

    def serve_all(self) -> None:
        """Serve every definition in the store."""
        for entry in self._store.listing(DEFINITIONS).entries:
            self._serve(decode_object(entry.raw))

    def _on_change(self, resource: str, change: Change) -> None:
        definition = decode_object(change.entry.raw)
        name = _resource_name(definition)
        self._kinds.remove_resource(name)
        if change.type != DELETED:
            self._serve(definition)

    def _serve(self, definition: Json) -> None:
        for version in definition["spec"].get("versions") or ():
            if version.get("served"):
                self._kinds.add(kind_of(definition, version))


def _resource_name(definition: Json) -> str:
    return f"{definition['spec']['names']['plural']}.{definition['spec']['group']}"


def kind_of(definition: Json, version: Json) -> ServedKind:
    """The row of one served version of a definition."""
    spec, names = definition["spec"], definition["spec"]["names"]
    schema: Json = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    subresources = version.get("subresources") or {}
    api_version = f"{spec['group']}/{version['name']}"
    storage = next((v["name"] for v in spec["versions"] if v.get("storage")), version["name"])
    hooks = _Hooks(schema, compile_rules(schema, "")[0])
    is_storage = storage == version["name"]
    return ServedKind(
        group=spec["group"],
        version=version["name"],
        kind=names["kind"],
        plural=names["plural"],
        namespaced=spec.get("scope") == "Namespaced",
        singular=names.get("singular", ""),
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        verbs=ALL_VERBS,
        type=crd_schema.object_type(schema, f"{spec['group']}.{version['name']}.{names['kind']}"),
        columns=_columns(version.get("additionalPrinterColumns")),
        status="status" in subresources,
        scale=_scale(subresources.get("scale")),
        generation=True,
        unconditional_update=False,
        selectable=_selectable(version.get("selectableFields")),
        default=hooks.default,
        validate=hooks.validate,
        prune=hooks.prune,
        schema=schema,
        is_custom=True,
        to_storage=None if is_storage else _renamer(f"{spec['group']}/{storage}"),
        from_storage=hooks.read_as(api_version) if _may_be_older(definition) else None,
    )


@dataclasses.dataclass(frozen=True, slots=True)
class _Hooks:
    """The hooks of one schema."""

    schema: Json
    rules: SchemaPlace

    def prune(self, document: Json) -> list[str]:
        return crd_schema.prune(document, self.schema)

    def default(self, document: Json) -> None:
        crd_schema.drop_nulls(document, self.schema)
        crd_schema.apply_defaults(document, self.schema)

    def read_as(self, api_version: str) -> Callable[[Json], Json]:
        """Shows stored objects in the shape of this schema: pruned, with its defaults."""

        def read(document: Json) -> Json:
            shown = document | {"apiVersion": api_version}
            self.prune(shown)
            self.default(shown)
            return shown

        return read

    def validate(self, document: Json, old: Json | None) -> list[Cause]:
        body = {name: value for name, value in document.items() if name not in ("apiVersion", "kind", "metadata")}
        required = [
            name for name in self.schema.get("required") or () if name not in ("apiVersion", "kind", "metadata")
        ]
        properties = self.schema.get("properties") or {}
        inner = {name: value for name, value in properties.items() if name not in ("apiVersion", "kind", "metadata")}
        causes = crd_schema.validate(body, self.schema | {"required": required, "properties": inner})
        return causes or ([] if self.rules.is_empty else self.rules.check(document, old))


def _may_be_older(definition: Json) -> bool:
    """Whether stored objects may have been written with another schema: of another version, or before a change."""
    return len(definition["spec"]["versions"]) > 1 or definition["metadata"].get("generation", 1) > 1


def _renamer(api_version: str) -> Callable[[Json], Json]:
    def rename(document: Json) -> Json:
        return document | {"apiVersion": api_version}

    return rename


def _scale(declared: Json | None) -> Scale | None:
    if not declared:
        return None
    return Scale(
        _dotted(declared.get("specReplicasPath", ".spec.replicas")),
        _dotted(declared.get("statusReplicasPath", ".status.replicas")),
        _dotted(declared.get("labelSelectorPath", "")),
    )


def _dotted(path: str) -> tuple[str, ...]:
    return tuple(part for part in path.split(".") if part)


def _selectable(declared: list[Json] | None) -> dict[str, Selectable]:
    paths = [_dotted(field.get("jsonPath", "")) for field in declared or ()]
    return {".".join(path): (path, "") for path in paths if path}


def _columns(declared: list[Json] | None) -> tuple[Column, ...]:
    if not declared:
        return (NAME, AGE)
    return (NAME, *(_column(column) for column in declared))


def _column(declared: Json) -> Column:
    return Column(
        name=declared.get("name", ""),
        compute=_printer(declared.get("jsonPath", ""), declared.get("type", "string")),
        type=declared.get("type", "string"),
        wide=declared.get("priority", 0) > 0,
        format=declared.get("format", ""),
        description=declared.get("description", ""),
    )


def _printer(path: str, kind: str) -> Compute:
    steps = [next(part for part in match if part) for match in _STEP.findall(path)]

    def compute(document: Json, now: float) -> Cell:
        value = _walk(document, steps)
        if kind == "date":
            return since(value, now) if value else ""
        if isinstance(value, (dict, list)):
            return str(value)
        return value if value is None or isinstance(value, (str, int, float, bool)) else str(value)

    return compute


def _walk(value: JsonValue, steps: list[str]) -> JsonValue:
    for step in steps:
        step = step.strip("[]'\"")
        if isinstance(value, list) and step.isdecimal() and len(step) < 10 and int(step) < len(value):
            value = value[int(step)]
        elif isinstance(value, dict) and step in value:
            value = value[step]
        else:
            return None
    return value
