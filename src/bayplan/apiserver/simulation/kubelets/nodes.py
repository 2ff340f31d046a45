"""Simulated nodes: the objects of a cluster that is given as a number, and what a kubelet reports about its node."""

from __future__ import annotations

from collections.abc import Iterable

from bayplan.apiserver.objects.conditions import set_condition
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


def node_ip(name: str) -> str:
    number = sum(byte * 131**index for index, byte in enumerate(name.encode())) % 65024
    return f"172.18.{number >> 8}.{number % 254 + 1}"


def ready_node(node: Json, now: str) -> Json:
    """The node with everything that a fresh kubelet reports."""
    name = node["metadata"]["name"]
    status = node.setdefault("status", {})
    if not status.get("capacity"):
        status["capacity"] = dict(DEFAULT_CAPACITY)
    status.setdefault("allocatable", dict(status["capacity"]))
    for kind in ("MemoryPressure", "DiskPressure", "PIDPressure"):
        reason = f"KubeletHasSufficient{kind.removesuffix('Pressure')}"
        message = f"kubelet has no {kind.removesuffix('Pressure').lower()} pressure"
        set_condition(status, kind, "False", now=now, reason=reason, message=message)
    set_condition(status, "Ready", "True", now=now, reason="KubeletReady", message="kubelet is posting ready status")
    for condition in status["conditions"]:
        condition.pop("lastProbeTime", None)
        condition["lastHeartbeatTime"] = now
    addresses = [{"type": "InternalIP", "address": node_ip(name)}, {"type": "Hostname", "address": name}]
    status.setdefault("addresses", addresses)
    status.setdefault("nodeInfo", _node_info(name))
    return node


def extended_capacity(node: Json) -> Json:
    """The amounts of the node's extended resources, as its capacity says."""
    capacity = node.get("status", {}).get("capacity") or {}
    return {name: amount for name, amount in capacity.items() if "/" in name}


def follow_capacity(node: Json, names: Iterable[str]) -> Json:
    """The node with these extended resources allocatable as far as its capacity goes."""
    capacity = extended_capacity(node)
    allocatable = node["status"].setdefault("allocatable", {})
    for name in names:
        allocatable.pop(name, None)
        if name in capacity:
            allocatable[name] = capacity[name]
    return node


def _node_info(name: str) -> Json:
    return {
        "architecture": "amd64",
        "bootID": name,
        "containerRuntimeVersion": "simulated://1.0",
        "kernelVersion": "simulated",
        "kubeProxyVersion": "",
        "kubeletVersion": KUBELET_VERSION,
        "machineID": name,
        "operatingSystem": "linux",
        "osImage": "Bayplan simulated node",
        "systemUUID": name,
    }
