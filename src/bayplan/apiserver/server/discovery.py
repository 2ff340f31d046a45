"""Discovery: version, API groups, resources, OpenAPI. All derived from the table of kinds."""

from __future__ import annotations

import hashlib
import platform

from bayplan.apiserver.kinds.kind import Kinds, ServedKind
from bayplan.apiserver.objects.subresources import subresources_of
from bayplan.apiserver.protocol import errors
from bayplan.apiserver.protocol.encoding import Json, decode_object, encode
from bayplan.apiserver.protocol.exchange import JSON_TYPE, ApiAnswer, Request, json_answer
from bayplan.apiserver.server.openapi import group_version_document
from bayplan.apiserver.server.openapi_v2 import PROTOBUF, document_v2, protobuf_of, wants_protobuf

KUBERNETES_VERSION = "v1.36.4"
_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
# Subresources that are a kind of their own.
_SUBRESOURCE_KINDS = {
    "binding": ("", "v1", "Binding"),
    "eviction": ("policy", "v1", "Eviction"),
    "scale": ("autoscaling", "v1", "Scale"),
    "token": ("authentication.k8s.io", "v1", "TokenRequest"),
}
_SUBRESOURCE_VERBS = {
    "status": ["get", "patch", "update"],
    "scale": ["get", "patch", "update"],
    "log": ["get"],
    "finalize": ["update"],
}


def version_document() -> Json:
    major, minor, _ = KUBERNETES_VERSION.lstrip("v").split(".")
    return {
        "major": major,
        "minor": minor,
        "emulationMajor": major,
        "emulationMinor": minor,
        "gitVersion": f"{KUBERNETES_VERSION}+bayplan",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "python",
        "platform": f"{platform.system().lower()}/{platform.machine()}",
    }


class Discovery:
    """Answers every path that is not about objects."""

    def __init__(self, kinds: Kinds) -> None:
        self._kinds = kinds
        self._documents: dict[str, bytes] = {}
        self._generation = -1

    def answer(self, parts: list[str], request: Request) -> ApiAnswer:
        if self._generation != self._kinds.generation:
            self._documents.clear()
            self._generation = self._kinds.generation
        if parts in (["api"], ["apis"]) and _wants_aggregated(request.headers.get("accept", "")):
            document = self._aggregated(core=parts == ["api"])
            return ApiAnswer(200, encode(document), _AGGREGATED)
        if parts[0] == "openapi":
            return self._openapi(parts[1:], request.headers.get("accept", ""))
        document_or_none = self._document(parts)
        if document_or_none is None:
            raise errors.unknown_path()
        return json_answer(document_or_none)

    def _document(self, parts: list[str]) -> Json | None:
        groups = self._kinds.groups()
        if parts == [""]:
            return {"paths": self._paths()}
        if parts == ["version"]:
            return version_document()
        if parts == ["api"]:
            return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}
        if parts == ["apis"]:
            listed = [_group(name, versions) for name, versions in groups.items() if name]
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": listed}
        if parts == ["api", "v1"]:
            return self._resource_list("", "v1")
        if parts[0] == "apis" and len(parts) == 2 and groups.get(parts[1]):
            return {"apiVersion": "v1", **_group(parts[1], groups[parts[1]]), "kind": "APIGroup"}
        if parts[0] == "apis" and len(parts) == 3 and parts[2] in groups.get(parts[1], []):
            return self._resource_list(parts[1], parts[2])
        return None

    def _paths(self) -> list[str]:
        versions = [_path(name, version) for name, found in self._kinds.groups().items() for version in found]
        named = [f"/apis/{name}" for name in self._kinds.groups() if name]
        own = ["/api", "/apis", "/healthz", "/livez", "/openapi/v2", "/openapi/v3", "/readyz", "/version"]
        return sorted([*versions, *named, *own])

    def _resource_list(self, group: str, version: str) -> Json:
        resources: list[Json] = []
        for kind in self._kinds.in_group_version(group, version):
            resources.append(_resource(kind))
            resources += [_subresource(kind, name) for name in subresources_of(kind)]
        group_version = f"{group}/{version}" if group else version
        return {
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": group_version,
            "resources": sorted(resources, key=lambda resource: resource["name"]),
        }

    def _aggregated(self, *, core: bool) -> Json:
        items = []
        for group, versions in self._kinds.groups().items():
            if (group == "") is core:
                items.append(
                    {
                        "metadata": {"name": group, "creationTimestamp": None}
                        if group
                        else {"creationTimestamp": None},
                        "versions": [self._aggregated_version(group, version) for version in versions],
                    }
                )
        return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}

    def _aggregated_version(self, group: str, version: str) -> Json:
        resources = [_aggregated_resource(kind) for kind in self._kinds.in_group_version(group, version)]
        return {"version": version, "resources": resources, "freshness": "Current"}

    # ---- OpenAPI

    def _openapi(self, rest: list[str], accept: str) -> ApiAnswer:
        if rest == ["v2"]:
            return self._openapi_v2(as_protobuf=wants_protobuf(accept))
        if rest == ["v3"]:
            return json_answer({"paths": {path: self._openapi_reference(path) for path in self._openapi_paths()}})
        path = "/".join(rest[1:])
        if not rest or rest[0] != "v3" or path not in self._openapi_paths():
            raise errors.unknown_path()
        return ApiAnswer(200, self._openapi_document(path))

    def _openapi_v2(self, *, as_protobuf: bool) -> ApiAnswer:
        name = "v2 protobuf" if as_protobuf else "v2"
        if name not in self._documents:
            documents = (decode_object(self._openapi_document(path)) for path in self._openapi_paths())
            document = document_v2(documents, KUBERNETES_VERSION)
            self._documents[name] = protobuf_of(document) if as_protobuf else encode(document)
        return ApiAnswer(200, self._documents[name], PROTOBUF if as_protobuf else JSON_TYPE)

    def _openapi_paths(self) -> dict[str, tuple[str, str]]:
        groups = self._kinds.groups().items()
        return {_path(name, version).lstrip("/"): (name, version) for name, found in groups for version in found}

    def _openapi_reference(self, path: str) -> Json:
        digest = hashlib.sha256(f"{KUBERNETES_VERSION}/{self._generation}/{path}".encode()).hexdigest()
        return {"serverRelativeURL": f"/openapi/v3/{path}?hash={digest.upper()}"}

    def _openapi_document(self, path: str) -> bytes:
        if path not in self._documents:
            group, version = self._openapi_paths()[path]
            kinds = self._kinds.in_group_version(group, version)
            self._documents[path] = encode(group_version_document(f"/{path}", kinds, KUBERNETES_VERSION))
        return self._documents[path]


def _wants_aggregated(accept: str) -> bool:
    return any("as=APIGroupDiscoveryList" in clause and "v=v2" in clause.split(";") for clause in accept.split(","))


def _path(group: str, version: str) -> str:
    return f"/apis/{group}/{version}" if group else f"/api/{version}"


def _group(name: str, versions: list[str]) -> Json:
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def _resource(kind: ServedKind) -> Json:
    found: Json = {
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": list(kind.verbs),
    }
    if kind.short_names:
        found["shortNames"] = list(kind.short_names)
    if kind.categories:
        found["categories"] = list(kind.categories)
    if len(kind.verbs) > 1:
        found["storageVersionHash"] = hashlib.sha256(kind.resource.encode()).hexdigest()[:12]
    return found


def _subresource_verbs(name: str) -> list[str]:
    return _SUBRESOURCE_VERBS.get(name, ["create"])


def _subresource(kind: ServedKind, name: str) -> Json:
    group, version, own_kind = _SUBRESOURCE_KINDS.get(name, ("", "", kind.kind))
    found: Json = {
        "name": f"{kind.plural}/{name}",
        "singularName": "",
        "namespaced": kind.namespaced,
        "kind": own_kind,
        "verbs": _subresource_verbs(name),
    }
    if group:
        found |= {"group": group, "version": version}
    return found


def _aggregated_resource(kind: ServedKind) -> Json:
    found: Json = {
        "resource": kind.plural,
        "responseKind": {"group": kind.group, "version": kind.version, "kind": kind.kind},
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": list(kind.verbs),
    }
    if kind.short_names:
        found["shortNames"] = list(kind.short_names)
    if kind.categories:
        found["categories"] = list(kind.categories)
    subresources = [_aggregated_subresource(kind, name) for name in subresources_of(kind)]
    return found | {"subresources": subresources} if subresources else found


def _aggregated_subresource(kind: ServedKind, name: str) -> Json:
    group, version, own_kind = _SUBRESOURCE_KINDS.get(name, (kind.group, kind.version, kind.kind))
    response = {"group": group, "version": version, "kind": own_kind}
    return {"subresource": name, "responseKind": response, "verbs": _subresource_verbs(name)}
