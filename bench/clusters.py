"""Clusters to decide on: nodes as a cloud makes them, with pods of a few dozen Deployments already running.

Everything is a function of its arguments, so two runs measure the same thing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from bayplan.api.node import Node
from bayplan.api.pod import Pod

__all__ = ["ZONES", "full_cluster", "make_node", "make_pod", "running_cluster"]

ZONES = ("eu-1a", "eu-1b", "eu-1c")
_MEBIBYTE = 1024 * 1024
_BASE_IMAGES = [f"registry.k8s.io/base-{number}:v1" for number in range(8)]
_CPU_STEPS = (50, 100, 100, 150, 100, 250)
_MEMORY_STEPS = (128, 200, 200, 256, 200, 384)
TEMPLATES = 48
"""How many Deployments the running pods belong to."""


def make_node(number: int, *, cpu: str = "32", memory: str = "64Gi") -> Node:
    name = f"node-{number:05d}"
    images = [{"names": [image], "sizeBytes": (60 + 9 * i) * _MEBIBYTE} for i, image in enumerate(_BASE_IMAGES)]
    if number % 4 == 0:
        images.append({"names": [f"app-{number % 12}:v1"], "sizeBytes": 700 * _MEBIBYTE})
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": f"m{number % 5}.8xlarge",
        "topology.kubernetes.io/region": "eu-1",
        "topology.kubernetes.io/zone": ZONES[number % len(ZONES)],
    }
    allocatable = {"cpu": cpu, "memory": memory, "pods": "110", "ephemeral-storage": "100Gi"}
    status = {"allocatable": allocatable, "capacity": allocatable, "images": images}
    return msgspec.convert({"metadata": {"name": name, "labels": labels}, "status": status}, Node)


def make_pod(name: str, *, labels: dict[str, str], cpu: str = "100m", memory: str = "200Mi", **spec: Any) -> Pod:
    """A pod as the API server holds it; `spec` takes wire names, `extended` amounts of extended resources."""
    status, extended = spec.pop("status", {}), spec.pop("extended", {})
    owner = {"kind": "ReplicaSet", "name": labels.get("app", name), "apiVersion": "apps/v1", "controller": True}
    container = {
        "name": "app",
        "image": spec.pop("image", "registry.k8s.io/base-1:v1"),
        "resources": {"requests": {"cpu": cpu, "memory": memory, **extended}},
    }
    body = {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{name}",
            "labels": labels,
            "ownerReferences": [owner],
        },
        "spec": {"containers": [container], "tolerations": _default_tolerations(), **spec},
        "status": status,
    }
    return msgspec.convert(body, Pod)


def _default_tolerations() -> list[dict[str, Any]]:
    """What admission adds to every pod."""
    keys = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
    return [{"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300} for key in keys]


def running_cluster(nodes: int, *, pods_per_node: int = 10) -> Iterator[Node | Pod]:
    """Nodes with room, each with some pods of the Deployments."""
    for number in range(nodes):
        yield make_node(number)
    for number in range(nodes * pods_per_node):
        template = (number * 7) % TEMPLATES
        yield make_pod(
            f"running-{number}",
            labels={"app": f"app-{template}", "tier": f"tier-{template % 4}", "pod-template-hash": f"h{template}"},
            cpu=f"{_CPU_STEPS[template % len(_CPU_STEPS)]}m",
            memory=f"{_MEMORY_STEPS[template % len(_MEMORY_STEPS)]}Mi",
            image=f"app-{template % 12}:v1",
            nodeName=f"node-{number % nodes:05d}",
            status={"phase": "Running", "startTime": "2026-01-01T00:00:00Z"},
        )


def full_cluster(nodes: int) -> Iterator[Node | Pod]:
    """Nodes without room: ten pods of low priority on each take all of its cpu."""
    for number in range(nodes):
        yield make_node(number, cpu="4", memory="16Gi")
    for number in range(nodes * 10):
        template = (number // nodes + number) % 10
        yield make_pod(
            f"low-{number}",
            labels={"app": f"low-{template}"},
            cpu="400m",
            memory="200Mi",
            nodeName=f"node-{number % nodes:05d}",
            priority=template % 5,
            status={"phase": "Running", "startTime": f"2026-01-{1 + template:02d}T00:00:{number % 60:02d}Z"},
        )
