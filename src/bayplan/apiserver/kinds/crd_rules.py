"""Defaults, validation and acceptance of CustomResourceDefinitions.

Conversion webhooks are accepted and kept, but not called; creating such a definition answers with a warning.
"""

from __future__ import annotations

import re

import re2

from bayplan.apiserver.kinds.crd_expressions import compile_rules
from bayplan.apiserver.kinds.crd_schema import compiled_pattern
from bayplan.apiserver.kinds.kind import Admission
from bayplan.apiserver.protocol import errors
from bayplan.apiserver.protocol.encoding import Json, JsonValue
from bayplan.apiserver.protocol.errors import Cause

_VERSION = re.compile(r"^[a-z]([-a-z0-9]*[a-z0-9])?\Z")
_TYPES = ("array", "boolean", "integer", "number", "object", "string")


def default_definition(document: Json) -> None:
    spec = document.setdefault("spec", {})
    names = spec.setdefault("names", {})
    if names.get("kind"):
        names.setdefault("singular", names["kind"].lower())
        names.setdefault("listKind", f"{names['kind']}List")
    spec.setdefault("conversion", {}).setdefault("strategy", "None")


def admit_definition(document: Json, old: Json | None, admission: Admission) -> None:
    """Accept the names and establish the definition at once; no other component has to confirm it."""
    names = dict(document["spec"].get("names") or {})
    stored = [version.get("name") for version in document["spec"].get("versions") or () if version.get("storage")]
    earlier = (old or {}).get("status", {}).get("storedVersions") or []
    if old is not None and old.get("spec") == document.get("spec"):
        return
    now = admission.now()
    document["status"] = {
        "conditions": [
            _condition("NamesAccepted", "NoConflicts", "no conflicts found", now),
            _condition("Established", "InitialNamesAccepted", "the initial names have been accepted", now),
        ],
        "acceptedNames": names,
        "storedVersions": earlier + [name for name in stored if name not in earlier],
    }


def _condition(kind: str, reason: str, message: str, now: str) -> Json:
    return {"type": kind, "status": "True", "lastTransitionTime": now, "reason": reason, "message": message}


def validate_definition(document: Json, old: Json | None) -> list[Cause]:
    spec = document.get("spec") or {}
    names = spec.get("names") or {}
    causes = [
        errors.required(f"spec.{path}")
        for path, value in (
            ("group", spec.get("group")),
            ("scope", spec.get("scope")),
            ("names.plural", names.get("plural")),
            ("names.kind", names.get("kind")),
        )
        if not value
    ]
    expected = f"{names.get('plural', '')}.{spec.get('group', '')}"
    if not causes and document["metadata"].get("name") != expected:
        detail = f'must be spec.names.plural+"."+spec.group: {expected}'
        causes.append(errors.invalid_value("metadata.name", document["metadata"].get("name"), detail))
    if spec.get("scope") and spec["scope"] not in ("Cluster", "Namespaced"):
        causes.append(errors.not_supported("spec.scope", spec["scope"], ["Cluster", "Namespaced"]))
    if "k8s.io" in str(spec.get("group", "")) and _is_protected(spec["group"], document):
        detail = 'protected groups must have approval annotation "api-approved.kubernetes.io"'
        causes.append(errors.required("metadata.annotations[api-approved.kubernetes.io]", detail))
    if old is not None:
        causes += _immutable(spec, old.get("spec") or {})
    return causes + _validate_versions(spec.get("versions") or [])


def warn_of_definition(document: Json) -> list[str]:
    """Warnings about parts that are stored but have no effect here."""
    warnings = []
    spec = document["spec"]
    if (spec.get("conversion") or {}).get("strategy") == "Webhook":
        warnings.append("spec.conversion.webhook: the embedded server calls no webhooks; all versions share one shape")
    return warnings


def _is_protected(group: str, document: Json) -> bool:
    protected = group.endswith((".k8s.io", ".kubernetes.io")) or group in ("k8s.io", "kubernetes.io")
    return protected and "api-approved.kubernetes.io" not in (document["metadata"].get("annotations") or {})


def _immutable(spec: Json, old: Json) -> list[Cause]:
    causes = []
    for path, new_value, old_value in (
        ("spec.group", spec.get("group"), old.get("group")),
        ("spec.scope", spec.get("scope"), old.get("scope")),
        ("spec.names.kind", (spec.get("names") or {}).get("kind"), (old.get("names") or {}).get("kind")),
    ):
        if new_value != old_value:
            causes.append(errors.invalid_value(path, new_value, "field is immutable"))
    return causes


def _validate_versions(versions: list[Json]) -> list[Cause]:
    if not versions:
        return [errors.required("spec.versions")]
    causes: list[Cause] = []
    if sum(bool(version.get("storage")) for version in versions) != 1:
        detail = "must have exactly one version marked as storage version"
        causes.append(errors.invalid_value("spec.versions", len(versions), detail))
    for index, version in enumerate(versions):
        where = f"spec.versions[{index}]"
        if not _VERSION.match(str(version.get("name", ""))):
            causes.append(errors.invalid_value(f"{where}.name", version.get("name", ""), "must be a DNS-1035 label"))
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        if not isinstance(schema, dict):
            causes.append(errors.required(f"{where}.schema.openAPIV3Schema", "schemas are required"))
        elif schema.get("type") != "object":
            detail = "must be object at the root"
            causes.append(errors.invalid_value(f"{where}.schema.openAPIV3Schema.type", schema.get("type"), detail))
        else:
            problems = _validate_schema(schema, f"{where}.schema.openAPIV3Schema", 0)
            causes += problems or compile_rules(schema, f"{where}.schema.openAPIV3Schema")[1]
    return causes


def _validate_schema(schema: JsonValue, path: str, depth: int) -> list[Cause]:
    """Structural rules: every place has a type, and the parts of a schema are schemas."""
    if not isinstance(schema, dict):
        return [errors.invalid_value(path, str(schema), "must be a schema")]
    if depth > 100:
        return [errors.invalid_value(path, "", "must not be nested more than 100 levels deep")]
    causes: list[Cause] = []
    kind = schema.get("type")
    is_open = schema.get("x-kubernetes-int-or-string") or schema.get("x-kubernetes-preserve-unknown-fields")
    if not kind and not is_open:
        causes.append(errors.required(f"{path}.type", "must not be empty for specified object fields"))
    elif kind and kind not in _TYPES:
        causes.append(errors.not_supported(f"{path}.type", kind, _TYPES))
    if schema.get("uniqueItems"):
        detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        causes.append(errors.forbidden_field(f"{path}.uniqueItems", detail))
    if schema.get("pattern"):
        causes += _validate_pattern(schema["pattern"], f"{path}.pattern")
    if not isinstance(schema.get("properties", {}), dict):
        return [*causes, errors.invalid_value(f"{path}.properties", "", "must be an object")]
    for name, inner in schema.get("properties", {}).items():
        causes += _validate_schema(inner, f"{path}.properties[{name}]", depth + 1)
    if "items" in schema:
        causes += _validate_schema(schema["items"], f"{path}.items", depth + 1)
    elif kind == "array":
        causes.append(errors.required(f"{path}.items", "must be specified"))
    if isinstance(schema.get("additionalProperties"), dict):
        causes += _validate_schema(schema["additionalProperties"], f"{path}.additionalProperties", depth + 1)
    return causes


def _validate_pattern(pattern: JsonValue, path: str) -> list[Cause]:
    try:
        compiled_pattern(str(pattern))
    except re2.error as problem:
        detail = f"must be a valid regular expression, but isn't: {problem}"
        return [errors.invalid_value(path, str(pattern), detail)]
    return []
