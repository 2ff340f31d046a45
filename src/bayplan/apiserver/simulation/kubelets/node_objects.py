"""Node objects for clusters that are given as a number: plausible machines in three zones."""

from __future__ import annotations

from collections.abc import Iterable

from bayplan.apiserver.protocol.encoding import Json

ZONES = ("zone-a", "zone-b", "zone-c")
KUBELET_VERSION = "v1.36.4"
DEFAULT_CAPACITY = {"cpu": "8", "memory": "32Gi", "ephemeral-storage": "100Gi", "pods": "110"}


def make_nodes(count: int, *, prefix: str = "node", capacity: Json | None = None) -> Iterable[Json]:
    """`count` nodes, named node-1 and on, spread over the zones in turn."""
    width = len(str(count))
    for index in range(count):
        name = f"{prefix}-{index + 1:0{width}d}"
        yield node_object(name, zone=ZONES[index % len(ZONES)], capacity=capacity or DEFAULT_CAPACITY)


def node_object(name: str, *, zone: str, capacity: Json) -> Json:
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "topology.kubernetes.io/region": "region-1",
        "topology.kubernetes.io/zone": zone,
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {},
        "status": {"capacity": dict(capacity), "allocatable": dict(capacity)},
    }
