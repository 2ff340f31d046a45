"""Nodes, pods and volumes as plain JSON, the way a person writes them: nothing of Bayplan is used to make them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

JsonObject = dict[str, Any]

ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"


def node(name: str, *, cpu: str = "4", memory: str = "16Gi", pods: int = 110, **more: Any) -> JsonObject:
    """A ready node. `labels`, `taints` and `unschedulable` may be given."""
    room = {"cpu": cpu, "memory": memory, "pods": str(pods), "ephemeral-storage": "100Gi"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {HOSTNAME: name, **more.pop("labels", {})}},
        "spec": more,
        "status": {"allocatable": room, "capacity": room, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def pod(
    name: str,
    *,
    cpu: str = "100m",
    memory: str = "64Mi",
    labels: Mapping[str, str] | None = None,
    ports: Iterable[int] = (),
    claims: Iterable[str] = (),
    **spec: Any,
) -> JsonObject:
    """A pending pod; other fields of the spec are passed as they are."""
    container: JsonObject = {
        "name": "main",
        "image": "example.test/app:1",
        "resources": {"requests": {"cpu": cpu, "memory": memory}},
        "ports": [{"containerPort": port, "hostPort": port} for port in ports],
    }
    volumes = [{"name": f"v{i}", "persistentVolumeClaim": {"claimName": claim}} for i, claim in enumerate(claims)]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": dict(labels or {})},
        "spec": {
            "containers": [container],
            "volumes": volumes,
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": False,
            **spec,
        },
    }


def priority_class(name: str, value: int) -> JsonObject:
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}


def storage_class(name: str, *, waits: bool) -> JsonObject:
    mode = "WaitForFirstConsumer" if waits else "Immediate"
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": mode,
    }


def volume(name: str, *, storage_class: str, node_names: Iterable[str], claim: str = "") -> JsonObject:
    """A local volume on some nodes; with `claim`, bound to that claim of the default namespace already."""
    expression = {"key": HOSTNAME, "operator": "In", "values": list(node_names)}
    body: JsonObject = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage_class,
            "local": {"path": f"/data/{name}"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}},
        },
    }
    if claim:
        body["spec"]["claimRef"] = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": "default"}
        body["spec"]["claimRef"]["name"] = claim
    return body


def claim(name: str, *, storage_class: str, volume_name: str = "") -> JsonObject:
    body: JsonObject = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage_class,
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    if volume_name:
        body["spec"]["volumeName"] = volume_name
    return body


def spread(key: str, app: str, *, hard: bool, skew: int = 1) -> JsonObject:
    return {
        "maxSkew": skew,
        "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule" if hard else "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": app}},
    }


def pod_term(key: str, app: str) -> JsonObject:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}


def node_terms(key: str, *values: str) -> JsonObject:
    """The required half of a node affinity."""
    expression = {"key": key, "operator": "In", "values": list(values)}
    return {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
