"""Empty a control plane between tests without starting a new one.

No controller manager runs here, so nothing follows owner references, waits for a kubelet or finishes a namespace:
pods are deleted with no grace period, and namespaces that tests made are emptied kind by kind and then finalized.
What the API server makes for itself (its namespaces, roles, system priority classes) stays.
"""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from typing import Any

from tests.controlplane.rest import RestClient

_SYSTEM_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
_NO_GRACE = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
_ATTEMPTS = 20

# The API server keeps its own lease among these.
_LEASES = "apis/coordination.k8s.io/v1", "leases?labelSelector=apiserver.kubernetes.io/identity!=kube-apiserver"
_NAMESPACED = (
    ("api/v1", "pods"),
    ("api/v1", "persistentvolumeclaims"),
    ("api/v1", "replicationcontrollers"),
    ("api/v1", "events"),
    ("apis/apps/v1", "daemonsets"),
    ("apis/apps/v1", "deployments"),
    ("apis/apps/v1", "replicasets"),
    ("apis/apps/v1", "statefulsets"),
    ("apis/batch/v1", "jobs"),
    ("apis/policy/v1", "poddisruptionbudgets"),
    ("apis/resource.k8s.io/v1", "resourceclaims"),
    ("apis/resource.k8s.io/v1", "resourceclaimtemplates"),
    ("apis/storage.k8s.io/v1", "csistoragecapacities"),
    _LEASES,
)
_CLUSTER_WIDE = (
    "api/v1/nodes",
    "api/v1/persistentvolumes",
    "apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "apis/resource.k8s.io/v1/deviceclasses",
    "apis/resource.k8s.io/v1/resourceslices",
    "apis/storage.k8s.io/v1/csidrivers",
    "apis/storage.k8s.io/v1/csinodes",
    "apis/storage.k8s.io/v1/storageclasses",
    "apis/storage.k8s.io/v1/volumeattachments",
)
_PRIORITY_CLASSES = "apis/scheduling.k8s.io/v1/priorityclasses"


class ClearFailed(Exception):
    """The API server refused to delete something; the message says what and why."""


def clear(client: RestClient) -> None:
    """Delete everything a test may have made: workloads, nodes, volumes, CRDs, priority classes, namespaces."""
    for namespace in _names(client, "api/v1/namespaces"):
        if namespace in _SYSTEM_NAMESPACES:
            _clear_collections(client, namespace, _NAMESPACED)
        else:
            _remove_namespace(client, namespace)
    for collection in _CLUSTER_WIDE:
        _delete(client, collection)
    for name in _names(client, _PRIORITY_CLASSES):
        if not name.startswith("system-"):
            _delete(client, f"{_PRIORITY_CLASSES}/{name}")


def _remove_namespace(client: RestClient, namespace: str) -> None:
    _clear_collections(client, namespace, _deletable_collections(client))
    path = f"api/v1/namespaces/{namespace}"
    _delete(client, path)
    document = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}, "spec": {"finalizers": []}}
    client.request("PUT", f"/{path}/finalize", document)


def _clear_collections(client: RestClient, namespace: str, collections: Any) -> None:
    for prefix, resource in collections:
        if resource == "resourceclaims":
            _unprotect(client, f"{prefix}/namespaces/{namespace}/{resource}")
        _delete(client, f"{prefix}/namespaces/{namespace}/{resource}")


def _unprotect(client: RestClient, collection: str) -> None:
    """Claims with devices are protected until a controller finds them unused."""
    for name in _names(client, collection):
        client.request("PATCH", f"/{collection}/{name}", {"metadata": {"finalizers": None}})


def _deletable_collections(client: RestClient) -> Iterator[tuple[str, str]]:
    """Every namespaced kind that the server can delete at once, custom ones included."""
    groups = client.request("GET", "/apis").body["groups"]
    for prefix in ("api/v1", *(f"apis/{group['preferredVersion']['groupVersion']}" for group in groups)):
        for resource in client.request("GET", f"/{prefix}").body["resources"]:
            if resource["namespaced"] and "deletecollection" in resource["verbs"]:
                yield prefix, resource["name"]


def _delete(client: RestClient, path: str) -> None:
    """Delete one object or collection. A large collection may outlast the server's patience: ask again."""
    for _ in range(_ATTEMPTS):
        status, body = client.request("DELETE", f"/{path}", _NO_GRACE)
        if status in (http.client.OK, http.client.ACCEPTED, http.client.NOT_FOUND):
            return
        if status not in (http.client.CONFLICT, http.client.TOO_MANY_REQUESTS) and status < 500:
            break
    raise ClearFailed(f"deleting /{path} was answered with {status}: {body}")


def _names(client: RestClient, path: str) -> list[str]:
    return [item["metadata"]["name"] for item in client.request("GET", f"/{path}").body["items"]]
