"""Writes the type table of the embedded cluster from the Go types that Kubernetes publishes.

    python -m tests.apiconformance.go_types > src/bayplan/apiserver/kinds/types/kubernetes-1.36.txt

Reads the modules k8s.io/api, k8s.io/apimachinery and k8s.io/apiextensions-apiserver at the version of the control
plane from Go's module cache. JSON names, protobuf numbers, merge strategies and list types are in tags and comment
markers; whether a field is a pointer, and whether its zero value is written, decides what presence means.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

VERSION = "v0.36.4"
API, META, EXTENSIONS = "k8s.io/api", "k8s.io/apimachinery/pkg/apis/meta/v1", "k8s.io/apiextensions-apiserver"
GROUPS = [
    "admissionregistration",
    "apps",
    "authentication",
    "authorization",
    "autoscaling",
    "batch",
    "certificates",
    "coordination",
    "core",
    "discovery",
    "events",
    "flowcontrol",
    "networking",
    "node",
    "policy",
    "rbac",
    "resource",
    "scheduling",
    "storage",
]
PACKAGES = {
    **{f"{name}.v1": f"{API}/{name}/v1" for name in GROUPS},
    "meta.v1": META,
    "apiextensions.v1": f"{EXTENSIONS}/pkg/apis/apiextensions/v1",
}
ROOTS = [
    "admissionregistration.v1.MutatingAdmissionPolicy",
    "admissionregistration.v1.MutatingAdmissionPolicyBinding",
    "admissionregistration.v1.MutatingWebhookConfiguration",
    "admissionregistration.v1.ValidatingAdmissionPolicy",
    "admissionregistration.v1.ValidatingAdmissionPolicyBinding",
    "admissionregistration.v1.ValidatingWebhookConfiguration",
    "apiextensions.v1.CustomResourceDefinition",
    "apps.v1.ControllerRevision",
    "apps.v1.DaemonSet",
    "apps.v1.Deployment",
    "apps.v1.ReplicaSet",
    "apps.v1.StatefulSet",
    "authentication.v1.SelfSubjectReview",
    "authentication.v1.TokenRequest",
    "authentication.v1.TokenReview",
    "authorization.v1.LocalSubjectAccessReview",
    "authorization.v1.SelfSubjectAccessReview",
    "authorization.v1.SelfSubjectRulesReview",
    "authorization.v1.SubjectAccessReview",
    "autoscaling.v1.Scale",
    "batch.v1.CronJob",
    "batch.v1.Job",
    "certificates.v1.CertificateSigningRequest",
    "coordination.v1.Lease",
    "core.v1.Binding",
    "core.v1.ConfigMap",
    "core.v1.Endpoints",
    "core.v1.Event",
    "core.v1.LimitRange",
    "core.v1.Namespace",
    "core.v1.Node",
    "core.v1.PersistentVolume",
    "core.v1.PersistentVolumeClaim",
    "core.v1.Pod",
    "core.v1.PodTemplate",
    "core.v1.ReplicationController",
    "core.v1.ResourceQuota",
    "core.v1.Secret",
    "core.v1.Service",
    "core.v1.ServiceAccount",
    "discovery.v1.EndpointSlice",
    "events.v1.Event",
    "flowcontrol.v1.FlowSchema",
    "flowcontrol.v1.PriorityLevelConfiguration",
    "meta.v1.Condition",
    "meta.v1.DeleteOptions",
    "meta.v1.ListMeta",
    "networking.v1.IPAddress",
    "networking.v1.Ingress",
    "networking.v1.IngressClass",
    "networking.v1.NetworkPolicy",
    "networking.v1.ServiceCIDR",
    "node.v1.RuntimeClass",
    "policy.v1.Eviction",
    "policy.v1.PodDisruptionBudget",
    "rbac.v1.ClusterRole",
    "rbac.v1.ClusterRoleBinding",
    "rbac.v1.Role",
    "rbac.v1.RoleBinding",
    "resource.v1.DeviceClass",
    "resource.v1.ResourceClaim",
    "resource.v1.ResourceClaimTemplate",
    "resource.v1.ResourceSlice",
    "scheduling.v1.PriorityClass",
    "storage.v1.CSIDriver",
    "storage.v1.CSINode",
    "storage.v1.CSIStorageCapacity",
    "storage.v1.StorageClass",
    "storage.v1.VolumeAttachment",
]
SCALARS = {
    "string": "string",
    "bool": "bool",
    "int": "int32",
    "int32": "int32",
    "int64": "int64",
    "uint8": "int32",
    "float64": "number",
    "[]byte": "bytes",
    "meta.v1.Time": "time",
    "meta.v1.MicroTime": "microtime",
    "meta.v1.FieldsV1": "any",
    "resource.Quantity": "quantity",
    "intstr.IntOrString": "intorstring",
    "runtime.RawExtension": "any",
    "apiextensions.v1.JSON": "any",
    "types.UID": "string",
    "types.NodeName": "string",
    "apiextensions.v1.JSONSchemaPropsOrBool": "schema-or-bool",
    "apiextensions.v1.JSONSchemaPropsOrArray": "schema-or-schemas",
    "apiextensions.v1.JSONSchemaPropsOrStringArray": "schema-or-strings",
}
HEADER = """\
# Field names, types and merge rules of the Kubernetes v1.36 API, written by tests/apiconformance/go_types.py.
# One type a paragraph: `name! type flags`; `!` required, `*T` a pointer (its zero differs from its absence),
# `[T]` list, `{T}` map; a bare name is a type of the same group and version.
# `@n` is the field's number in the protobuf form (`@2.3` where it is inlined from another message).
# Flags: `always` (written even when it is zero), `map=k1,k2`, `set`, `atomic` (how server-side apply merges),
# `patch=strategy:key` (strategic merge).
"""
_FIELD = re.compile(r"^\t(?:(?P<name>\w+)\s+)?(?P<type>[\w.*\[\]]+)\s+`(?P<tags>[^`]+)`")
_TYPE = re.compile(r"^type (?P<name>\w+) (?P<what>.+?)\s*(?://.*)?$")
_IMPORTS = {"metav1": "meta.v1", "v1": "core.v1", "corev1": "core.v1", "apiv1": "core.v1"}


@dataclass
class GoField:
    """One field of a Go struct, as declared."""

    type: str
    tags: dict[str, str]
    markers: dict[str, list[str]]

    @property
    def json_name(self) -> str:
        return self.tags.get("json", "").partition(",")[0]

    @property
    def is_inline(self) -> bool:
        return not self.json_name and "inline" in self.tags.get("json", "")

    @property
    def omits_zero(self) -> bool:
        return bool({"omitempty", "omitzero"} & set(self.tags.get("json", "").split(",")))

    @property
    def number(self) -> str:
        return [*self.tags.get("protobuf", "").split(","), ""][1]


@dataclass
class GoType:
    """A declared Go type: a struct with fields, or another name for something."""

    alias: str = ""
    fields: list[GoField] = field(default_factory=list)
    markers: dict[str, list[str]] = field(default_factory=dict)


def module_folder(package: str) -> Path:
    cache = Path(subprocess.check_output(["go", "env", "GOMODCACHE"], text=True).strip())
    module = "/".join(package.split("/")[:2])
    return cache / f"{module}@{VERSION}" / package.removeprefix(module).lstrip("/")


def declared_types() -> dict[str, GoType]:
    """Every type of the packages, by the name it has in the table."""
    found: dict[str, GoType] = {}
    for short, package in PACKAGES.items():
        for path in sorted(module_folder(package).glob("*.go")):
            if not path.name.endswith("_test.go") and not path.name.startswith(("generated", "zz_generated")):
                found |= {f"{short}.{name}": one for name, one in _types_of(path.read_text(), short)}
    return found


def _types_of(text: str, package: str) -> Iterator[tuple[str, GoType]]:
    comments: list[str] = []
    current: tuple[str, GoType] | None = None
    for line in text.splitlines():
        stripped = line.strip()
        if stripped.startswith("//"):
            comments.append(stripped[2:].strip())
            continue
        declaration = _TYPE.match(line)
        if declaration is not None and declaration["what"].startswith("struct"):
            current = (declaration["name"], GoType(markers=_markers(comments)))
            if stripped.endswith("}"):
                yield current
                current = None
        elif declaration is not None and "interface" not in declaration["what"]:
            yield declaration["name"], GoType(alias=_qualified(declaration["what"].lstrip("= "), package))
        elif current is not None and line == "}":
            yield current
            current = None
        elif current is not None and (member := _FIELD.match(line)) is not None:
            tags = dict(re.findall(r'(\w+):"([^"]*)"', member["tags"]))
            current[1].fields.append(GoField(_qualified(member["type"], package), tags, _markers(comments)))
        comments = comments if not stripped and declaration is None and current is None else []


def _markers(comments: list[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for comment in comments:
        if comment.startswith("+"):
            name, _, value = comment[1:].partition("=")
            found.setdefault(name, []).append(value)
    return found


def _qualified(spelled: str, package: str) -> str:
    """A Go type with its packages named as in the table."""
    prefix = re.match(r"^(\*|\[\]|map\[[\w.]+\])", spelled)
    if prefix is not None and spelled != "[]byte":
        return prefix[0] + _qualified(spelled[prefix.end() :], package)
    if spelled in SCALARS and "." not in spelled:
        return spelled
    owner, _, name = spelled.rpartition(".")
    if not owner:
        return f"{package}.{name}"
    return f"{_IMPORTS.get(owner, owner)}.{name}"


class TableWriter:
    """Spells types and everything they refer to."""

    def __init__(self) -> None:
        self._types = declared_types()
        self._written: dict[str, list[str]] = {}

    def write(self) -> str:
        pending = list(ROOTS)
        while pending:
            name = pending.pop()
            if name not in self._written:
                self._written[name] = self._lines(name, pending)
        paragraphs = []
        for name in sorted(self._written):
            is_atomic = "atomic" in self._types[name].markers.get("structType", [])
            head = name + (" atomic" if is_atomic else "")
            paragraphs.append("\n".join([head, *sorted(self._written[name])]))
        return HEADER + "\n" + "\n\n".join(paragraphs) + "\n"

    def _lines(self, name: str, pending: list[str]) -> list[str]:
        package = name.rpartition(".")[0] + "."
        lines = []
        for number, member in self._members(self._types[name]):
            spelled = self._spelled(member.type.lstrip("*"), package, pending)
            required = "required" in member.markers or not (member.omits_zero or "optional" in member.markers)
            pointer = "*" if member.type.startswith("*") else ""
            words = [f"  {member.json_name}{'!' if required else ''}", pointer + spelled]
            words += [f"@{number}"] if number else []
            words += self._flags(member, spelled)
            lines.append(" ".join(words))
        return lines

    def _members(self, declared: GoType, prefix: str = "") -> Iterator[tuple[str, GoField]]:
        for member in declared.fields:
            if member.json_name and member.json_name != "-":
                yield prefix + member.number, member
            elif member.type == "meta.v1.TypeMeta":
                # Protobuf has the type in the envelope around the object.
                yield from (("", inner) for _, inner in self._members(self._types[member.type]))
            elif member.is_inline and member.type in self._types:
                yield from self._members(self._types[member.type], f"{prefix}{member.number}.")

    def _flags(self, member: GoField, spelled: str) -> Iterator[str]:
        markers, tags = member.markers, member.tags
        if not member.omits_zero and not member.type.startswith("*"):
            yield "always"
        if spelled.startswith("["):
            kind = (markers.get("listType") or ["atomic" if "listType" in markers else ""])[0]
            keys = markers.get("listMapKey", [])
            if kind == "map" or keys:
                yield "map=" + ",".join(keys)
            elif kind:
                yield kind
        if "atomic" in markers.get("mapType", []) or "atomic" in markers.get("structType", []):
            yield "atomic"
        if "patchStrategy" in tags:
            yield f"patch={tags['patchStrategy']}:{tags.get('patchMergeKey', '')}".rstrip(":")

    def _spelled(self, go: str, package: str, pending: list[str]) -> str:
        if go in SCALARS:
            return SCALARS[go]
        if go.startswith("[]"):
            return f"[{self._spelled(go[2:], package, pending)}]"
        if go.startswith("map["):
            return f"{{{self._spelled(go.partition(']')[2], package, pending)}}}"
        declared = self._types[go]
        if declared.alias:
            return self._spelled(declared.alias, package, pending)
        pending.append(go)
        return go.removeprefix(package)


if __name__ == "__main__":
    sys.stdout.write(TableWriter().write())
