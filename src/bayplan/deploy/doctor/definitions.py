"""Checks the CustomResourceDefinitions and objects of the resources that plugins watch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bayplan.deploy.bundle import Bundle
from bayplan.deploy.crds import schema_of
from bayplan.deploy.doctor.cluster_reader import ClusterReader
from bayplan.deploy.doctor.finding import Finding, Level
from bayplan.framework.resources import resource_info

__all__ = ["check_definitions", "schema_differences"]

Schema = dict[str, Any]
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_OPEN = "x-kubernetes-preserve-unknown-fields"
_SHOWN = 5


async def check_definitions(reading: ClusterReader, bundle: Bundle) -> list[Finding]:
    findings: list[Finding] = []
    for kind in bundle.watches:
        findings += await _check(reading, bundle, kind)
    return findings


async def _check(reading: ClusterReader, bundle: Bundle, kind: type[Any]) -> list[Finding]:
    info = resource_info(kind)
    users = ", ".join(plugin.name for plugin in bundle.plugins if kind in plugin.watches)
    whole = "" if info.is_owned else " --all"
    fix = f"bayplan render crds{whole}{bundle.options} | kubectl apply --server-side -f -"
    definition = await reading.json_if_any(f"{_DEFINITIONS}/{info.crd_name}")
    if definition is None:
        why = f"{users} sees no objects of this kind until it is there"
        return [Finding(Level.ERROR, "crd", f"definition `{info.crd_name}` is not installed", why, fix)]
    spec = definition["spec"]
    version = next((v for v in spec["versions"] if v["name"] == info.version and v.get("served")), None)
    if version is None:
        served = ", ".join(v["name"] for v in spec["versions"] if v.get("served"))
        what = f"definition `{info.crd_name}` does not serve {info.version}, only {served}"
        return [Finding(Level.ERROR, "crd", what, f"{users} asks for that version", fix)]
    if (spec["scope"] == "Namespaced") != info.is_namespaced:
        what = f"definition `{info.crd_name}` is {spec['scope']}, the plugin's type is not"
        return [Finding(Level.ERROR, "crd", what, f"{users} would look for objects under names they cannot have", fix)]
    theirs = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    differences = list(schema_differences(schema_of(kind), theirs))
    findings = [
        Finding(
            Level.WARNING,
            "crd",
            f"definition `{info.crd_name}` differs from the plugin's type: {difference}",
            "the API server drops or refuses what the plugin expects to read",
            fix if info.is_owned else "upgrade the project that defines it, or adapt the plugin's type",
        )
        for difference in differences[:_SHOWN]
    ]
    if info.is_owned:
        findings += _narrower(info.crd_name, schema_of(kind), theirs)
    findings += await _check_objects(reading, kind)
    return findings or [Finding(Level.OK, "crd", f"definition `{info.crd_name}` is installed and matches")]


def _narrower(name: str, ours: Schema, theirs: Schema) -> list[Finding]:
    """A warning if the definition has fields that the one derived from the plugin's type lacks."""
    lacking = [each for each in schema_differences(theirs, ours) if each.endswith("is missing there")]
    if not lacking:
        return []
    fields = ", ".join(each.removesuffix(" is missing there") for each in lacking[:_SHOWN])
    return [
        Finding(
            Level.WARNING,
            "crd",
            f"definition `{name}` has fields that the plugin's type lacks: {fields}",
            "applied over it, the definition of `bayplan render` would make the API server drop them",
            "declare the fields in the type; if another project defines the resource, leave `owned` out",
        )
    ]


async def _check_objects(reading: ClusterReader, kind: type[Any]) -> list[Finding]:
    info = resource_info(kind)
    _, rejected = await reading.objects(info.path, kind)
    return [
        Finding(
            Level.WARNING,
            "crd",
            f"{info.kind} `{each.key}` does not fit its type: {each.reason}",
            "plugins do not see it",
            f"kubectl edit {info.crd_name} {each.metadata.name}"
            + (f" --namespace {each.metadata.namespace}" if each.metadata.namespace else ""),
        )
        for each in rejected[:_SHOWN]
    ]


def schema_differences(ours: Schema, theirs: Schema, path: str = "") -> Iterator[str]:
    """What our schema has and theirs would drop or refuse."""
    if theirs.get(_OPEN) and "type" not in theirs:
        return
    here, there = _kind(ours), _kind(theirs)
    if here and here != there:
        yield f"`{path or '.'}` is {there or 'untyped'} there, {here} here"
        return
    properties = theirs.get("properties") or {}
    for name, inner in (ours.get("properties") or {}).items():
        below = f"{path}.{name}" if path else name
        if name in properties:
            yield from schema_differences(inner, properties[name], below)
        elif not theirs.get(_OPEN) and "additionalProperties" not in theirs:
            yield f"`{below}` is missing there"
    for keyword in ("additionalProperties", "items"):
        if isinstance(ours.get(keyword), dict) and isinstance(theirs.get(keyword), dict):
            yield from schema_differences(ours[keyword], theirs[keyword], f"{path}[]")


def _kind(schema: Schema) -> str:
    return str(schema.get("type", "int-or-string" if schema.get("x-kubernetes-int-or-string") else ""))
