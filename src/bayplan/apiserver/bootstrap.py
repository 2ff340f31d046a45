"""What every cluster has from the start: namespaces, priority classes, accounts, roles, the API's own service."""

from __future__ import annotations

import functools
import ipaddress
from collections.abc import Iterable

from bayplan.apiserver.protocol.encoding import Json
from bayplan.apiserver.server.api import Api
from bayplan.apiserver.server.own_objects import SYSTEM_CALLER, create_if_absent

SYSTEM_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
_RBAC = "rbac.authorization.k8s.io/v1"
_READ = ["get", "list", "watch"]


def bootstrap(api: Api, *, client_authority: str = "") -> None:
    """Create what is missing; safe to run again on a restored store."""
    for document in (*_objects(), *_authentication(client_authority)):
        create_if_absent(api, document)


def _objects() -> Iterable[Json]:
    for name in SYSTEM_NAMESPACES:
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        account = {"name": "default", "namespace": name}
        yield {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account}
    yield _priority_class("system-node-critical", 2_000_001_000, "must run on their node and are never moved off it")
    yield _priority_class("system-cluster-critical", 2_000_000_000, "must run in the cluster but may change nodes")
    yield _service()
    yield _service_network()
    yield from _roles()


def _priority_class(name: str, value: int, purpose: str) -> Json:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        "description": f"For system pods that {purpose}.",
    }


def _service() -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "labels": {"component": "apiserver", "provider": "kubernetes"},
        },
        "spec": {"clusterIP": "10.96.0.1", "ports": [{"name": "https", "port": 443, "targetPort": 6443}]},
    }


def publish_address(api: Api, host: str, port: int) -> None:
    """Name the address at which this server listens in the Endpoints and EndpointSlice of its Service.

    Clients may not write loopback addresses there; for this server, it is where it can be reached.
    """
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        address = ipaddress.ip_address("127.0.0.1")
    if address.is_unspecified:
        address = ipaddress.ip_address("127.0.0.1" if address.version == 4 else "::1")
    for document in _addresses(address, port):
        kind = api.kinds.by_kind(document["apiVersion"], document["kind"])
        assert kind is not None, "both kinds are built in"
        if api.store.get(kind.stored_as, "default", "kubernetes") is None:
            create_if_absent(api, document)
        else:
            parts = {name: value for name, value in document.items() if name != "metadata"}
            api.objects.update(kind, "default", "kubernetes", functools.partial(_with, parts), SYSTEM_CALLER)


def _addresses(address: ipaddress.IPv4Address | ipaddress.IPv6Address, port: int) -> Iterable[Json]:
    ports = [{"name": "https", "port": port, "protocol": "TCP"}]
    yield {
        "apiVersion": "v1",
        "kind": "Endpoints",
        "metadata": _named({"endpointslice.kubernetes.io/skip-mirror": "true"}),
        "subsets": [{"addresses": [{"ip": str(address)}], "ports": ports}],
    }
    yield {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": _named({"kubernetes.io/service-name": "kubernetes"}),
        "addressType": f"IPv{address.version}",
        "endpoints": [{"addresses": [str(address)], "conditions": {"ready": True}}],
        "ports": ports,
    }


def _with(parts: Json, current: Json) -> Json:
    return current | parts


def _named(labels: Json) -> Json:
    return {"name": "kubernetes", "namespace": "default", "labels": labels}


def _service_network() -> Json:
    """The addresses of Services."""
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "ServiceCIDR",
        "metadata": {"name": "kubernetes"},
        "spec": {"cidrs": ["10.96.0.0/12"]},
    }


def _roles() -> Iterable[Json]:
    everything: list[Json] = [
        {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
        {"nonResourceURLs": ["*"], "verbs": ["*"]},
    ]
    reviews: list[Json] = [
        {
            "apiGroups": ["authorization.k8s.io"],
            "resources": ["selfsubjectaccessreviews", "selfsubjectrulesreviews"],
            "verbs": ["create"],
        },
        {"apiGroups": ["authentication.k8s.io"], "resources": ["selfsubjectreviews"], "verbs": ["create"]},
    ]
    viewable = ["*"]
    yield _cluster_role("cluster-admin", everything)
    yield _cluster_role("admin", [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}])
    yield _cluster_role("edit", [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}])
    yield _cluster_role("view", [{"apiGroups": ["*"], "resources": viewable, "verbs": _READ}])
    yield _cluster_role("system:basic-user", reviews)
    yield _cluster_role("system:kube-scheduler", _scheduler_rules())
    yield _cluster_role("system:volume-scheduler", _volume_scheduler_rules())
    yield _cluster_role_binding("cluster-admin", "Group", "system:masters")
    yield _cluster_role_binding("system:basic-user", "Group", "system:authenticated")
    yield _cluster_role_binding("system:kube-scheduler", "User", "system:kube-scheduler")
    yield _cluster_role_binding("system:volume-scheduler", "User", "system:kube-scheduler")


def _authentication(client_authority: str) -> Iterable[Json]:
    """The ConfigMap with the client authority for extension servers, and the role that reads it."""
    name, reader = "extension-apiserver-authentication", "extension-apiserver-authentication-reader"
    metadata = {"name": name, "namespace": "kube-system"}
    data = {"client-ca-file": client_authority} if client_authority else {}
    yield {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
    rule = {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": [name], "verbs": _READ}
    place = {"name": reader, "namespace": "kube-system"}
    yield {"apiVersion": _RBAC, "kind": "Role", "metadata": place, "rules": [rule]}
    group = "rbac.authorization.k8s.io"
    yield {
        "apiVersion": _RBAC,
        "kind": "RoleBinding",
        "metadata": {"name": "system::extension-apiserver-authentication-reader", "namespace": "kube-system"},
        "roleRef": {"apiGroup": group, "kind": "Role", "name": reader},
        "subjects": [{"kind": "User", "name": "system:kube-scheduler", "apiGroup": group}],
    }


def _scheduler_rules() -> list[Json]:
    def rule(groups: list[str], resources: list[str], verbs: list[str]) -> Json:
        return {"apiGroups": groups, "resources": resources, "verbs": verbs}

    return [
        rule(["", "events.k8s.io"], ["events"], ["create", "patch", "update"]),
        rule(["coordination.k8s.io"], ["leases"], ["create", "get", "list", "update", "watch"]),
        rule([""], ["nodes", "namespaces", "services", "replicationcontrollers"], _READ),
        rule([""], ["pods"], ["delete", *_READ]),
        rule([""], ["bindings", "pods/binding"], ["create"]),
        rule([""], ["pods/status"], ["patch", "update"]),
        rule(["apps"], ["replicasets", "statefulsets"], _READ),
        rule(["policy"], ["poddisruptionbudgets"], _READ),
        rule([""], ["persistentvolumeclaims", "persistentvolumes"], _READ),
        rule(["authentication.k8s.io"], ["tokenreviews"], ["create"]),
        rule(["authorization.k8s.io"], ["subjectaccessreviews"], ["create"]),
        rule(["storage.k8s.io"], ["csinodes", "csidrivers", "csistoragecapacities", "volumeattachments"], _READ),
        rule(["resource.k8s.io"], ["deviceclasses", "resourceslices"], _READ),
        rule(["resource.k8s.io"], ["resourceclaims", "resourceclaims/status"], [*_READ, "patch", "update"]),
        rule(["resource.k8s.io"], ["resourceclaims"], ["create", "delete"]),
        rule(["resource.k8s.io"], ["resourceclaims/binding"], ["patch", "update"]),
    ]


def _volume_scheduler_rules() -> list[Json]:
    writes = ["get", "list", "patch", "update", "watch"]
    return [
        {"apiGroups": [""], "resources": ["persistentvolumes", "persistentvolumeclaims"], "verbs": writes},
        {"apiGroups": ["storage.k8s.io"], "resources": ["storageclasses"], "verbs": _READ},
    ]


def _cluster_role(name: str, rules: list[Json]) -> Json:
    labels = {"kubernetes.io/bootstrapping": "rbac-defaults"}
    return {"apiVersion": _RBAC, "kind": "ClusterRole", "metadata": {"name": name, "labels": labels}, "rules": rules}


def _cluster_role_binding(role: str, kind: str, subject: str) -> Json:
    group = "rbac.authorization.k8s.io"
    return {
        "apiVersion": _RBAC,
        "kind": "ClusterRoleBinding",
        "metadata": {"name": role, "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"}},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": kind, "name": subject, "apiGroup": group}],
    }
