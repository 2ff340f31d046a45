"""One node and what runs on it, in plain Python numbers: the one-row form of the columns.

Plugins that evaluate one node at a time get these objects. They are kept as long as the node exists, so passing five
thousand of them to a plugin costs nothing. Only the cache and overlays change them.
"""

from __future__ import annotations

from collections.abc import Iterable

from bayplan.api.node import Node, Taint
from bayplan.cluster.pod_info import PodInfo
from bayplan.cluster.resources import NATIVE, ResourceAxis

__all__ = ["HostPorts", "NodeInfo"]

_ANY_ADDRESS = "0.0.0.0"
_NO_TAINTS: list[Taint] = []
"""Shared by all nodes without taints; never written to."""


class HostPorts:
    """The host ports in use on a node. A set, not a count: the first pod that leaves frees a port two pods claimed."""

    __slots__ = ("_used",)

    def __init__(self) -> None:
        self._used: dict[tuple[str, int], set[str]] = {}

    def __len__(self) -> int:
        return len(self._used)

    def keys(self) -> Iterable[tuple[str, int]]:
        return self._used.keys()

    def add(self, protocol: str, port: int, address: str) -> None:
        self._used.setdefault((protocol or "TCP", port), set()).add(address or _ANY_ADDRESS)

    def discard(self, protocol: str, port: int, address: str) -> None:
        key = (protocol or "TCP", port)
        addresses = self._used.get(key)
        if addresses is not None:
            addresses.discard(address or _ANY_ADDRESS)
            if not addresses:
                del self._used[key]

    def conflicts(self, protocol: str, port: int, address: str) -> bool:
        addresses = self._used.get((protocol or "TCP", port))
        if not addresses:
            return False
        wanted = address or _ANY_ADDRESS
        return wanted == _ANY_ADDRESS or _ANY_ADDRESS in addresses or wanted in addresses

    def copy(self) -> HostPorts:
        twin = HostPorts()
        twin._used = {key: set(addresses) for key, addresses in self._used.items()}
        return twin


class NodeInfo:
    __slots__ = (
        "allocatable",
        "allowed_pods",
        "labels",
        "name",
        "node",
        "nonzero_cpu",
        "nonzero_memory",
        "offer",
        "pods",
        "ports",
        "requested",
        "resources",
        "row",
        "taints",
        "unschedulable",
    )

    def __init__(self, node: Node, row: int, resources: ResourceAxis) -> None:
        self.row = row
        self.name = node.name
        self.resources = resources
        self.pods: dict[str, PodInfo] = {}
        self.requested: list[int] = [0] * len(resources)
        self.nonzero_cpu = 0
        self.nonzero_memory = 0
        self.ports = HostPorts()
        self.set_node(node)

    def __repr__(self) -> str:
        return f"<NodeInfo {self.name}>"

    def set_node(self, node: Node) -> None:
        """Take over a new version of the node object; what runs on it stays."""
        self.offer, self.allowed_pods = self.resources.offer(node.status.allocatable)
        self.node = node
        self.labels: dict[str, str] = node.labels
        self.taints: list[Taint] = node.spec.taints or _NO_TAINTS
        self.unschedulable = node.spec.unschedulable
        self.allocatable: list[int] = [0] * len(self.resources)
        for place, amount in self.offer:
            self.allocatable[place] = amount
        self._widen(len(self.resources))

    @property
    def annotations(self) -> dict[str, str]:
        return self.node.annotations

    def allocatable_of(self, resource: str) -> int:
        """What the node offers of a resource (milli-cpu, bytes, counts)."""
        place = self.resources.find(resource)
        return self.allocatable[place] if place is not None and place < len(self.allocatable) else 0

    def requested_of(self, resource: str) -> int:
        """What the pods on the node request of a resource."""
        place = self.resources.find(resource)
        if place is None:
            return sum(pod.shape.counted.get(resource, 0) for pod in self.pods.values())
        return self.requested[place] if place < len(self.requested) else 0

    def free(self, resource: str) -> int:
        return self.allocatable_of(resource) - self.requested_of(resource)

    def add_pod(self, pod: PodInfo) -> None:
        """Count a pod in. For the cache and overlays only."""
        usage = pod.shape.usage
        self.pods[pod.uid] = pod
        for place, amount in usage.vector:
            if place >= len(self.requested):
                self._widen(place + 1)
            self.requested[place] += amount
        self.nonzero_cpu += usage.nonzero_cpu
        self.nonzero_memory += usage.nonzero_memory
        for port in pod.shape.host_ports:
            self.ports.add(port.protocol, port.host_port, port.host_ip)

    def remove_pod(self, pod: PodInfo) -> None:
        """Count a pod out. For the cache and overlays only."""
        usage = pod.shape.usage
        del self.pods[pod.uid]
        for place, amount in usage.vector:
            self.requested[place] -= amount
        self.nonzero_cpu -= usage.nonzero_cpu
        self.nonzero_memory -= usage.nonzero_memory
        for port in pod.shape.host_ports:
            self.ports.discard(port.protocol, port.host_port, port.host_ip)

    def place_again(self) -> None:
        """Follow a resource axis on which scalar resources moved, while no pod here requests one."""
        self.requested[len(NATIVE) :] = []
        self.set_node(self.node)

    def _widen(self, length: int) -> None:
        """Make room for resources that were named since this node was made."""
        for amounts in (self.requested, self.allocatable):
            amounts.extend([0] * (length - len(amounts)))

    def copy(self) -> NodeInfo:
        """A twin that can be changed without touching this one."""
        twin = NodeInfo.__new__(NodeInfo)
        twin.row, twin.name, twin.resources, twin.node = self.row, self.name, self.resources, self.node
        twin.labels, twin.taints, twin.unschedulable = self.labels, self.taints, self.unschedulable
        twin.offer, twin.allocatable = self.offer, list(self.allocatable)
        twin.allowed_pods, twin.pods, twin.requested = self.allowed_pods, dict(self.pods), list(self.requested)
        twin.nonzero_cpu, twin.nonzero_memory = self.nonzero_cpu, self.nonzero_memory
        twin.ports = self.ports.copy()
        return twin
