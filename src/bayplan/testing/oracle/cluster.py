"""The oracle's cluster: API objects in plain lists. Everything is looked up by walking them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from bayplan.api.meta import KubeObject
from bayplan.api.node import Node
from bayplan.api.pod import Pod
from bayplan.api.quantity import milli_value, value
from bayplan.api.workload import Namespace
from bayplan.testing.oracle.usage import Amounts, counted, nonzero

__all__ = ["UNRESOLVABLE", "UNSCHEDULABLE", "OracleCluster", "Verdict", "allocatable", "used", "used_nonzero"]


@dataclass(frozen=True)
class Verdict:
    """Why a node was rejected. `plugin` is empty for nodes that were not looked at."""

    plugin: str
    code: str
    reasons: tuple[str, ...]


UNSCHEDULABLE = "Unschedulable"
UNRESOLVABLE = "UnschedulableAndUnresolvable"


@dataclass(frozen=True)
class OracleCluster:
    """Nodes and what runs on them. `pods` on nodes that are not there count for nothing."""

    nodes: tuple[Node, ...]
    pods: tuple[Pod, ...] = ()
    waiting: tuple[Pod, ...] = ()
    """Pods without a node; those with a nomination matter."""
    objects: tuple[KubeObject, ...] = field(default=())

    @classmethod
    def of(cls, objects: Iterable[KubeObject]) -> OracleCluster:
        """Sort objects into their places, as a scheduler that lists them would."""
        given = list(objects)
        pods = [item for item in given if isinstance(item, Pod) and not item.is_finished]
        return cls(
            nodes=tuple(item for item in given if isinstance(item, Node)),
            pods=tuple(p for p in pods if p.spec.node_name),
            waiting=tuple(p for p in pods if not p.spec.node_name),
            objects=tuple(item for item in given if not isinstance(item, Node | Pod)),
        )

    def node(self, name: str) -> Node | None:
        return next((node for node in self.nodes if node.name == name), None)

    def pods_on(self, node: Node) -> list[Pod]:
        return [pod for pod in self.pods if pod.spec.node_name == node.name]

    def placed(self) -> list[tuple[Pod, Node]]:
        """Every running pod with its node."""
        by_name = {node.name: node for node in self.nodes}
        return [(pod, by_name[pod.spec.node_name]) for pod in self.pods if pod.spec.node_name in by_name]

    def of_kind(self, kind: type[KubeObject], namespace: str | None = None) -> list[KubeObject]:
        return [i for i in self.objects if type(i) is kind and (namespace is None or i.namespace == namespace)]

    def namespace_labels(self, name: str) -> dict[str, str]:
        return next((item.labels for item in self.of_kind(Namespace) if item.name == name), {})

    def with_pods(self, pods: Iterable[Pod]) -> OracleCluster:
        """The same cluster with other running pods."""
        return replace(self, pods=tuple(pods))


def allocatable(node: Node) -> Amounts:
    """What a node offers; a resource it does not name is not there."""
    return {n: milli_value(q) if n == "cpu" else value(q) for n, q in (node.status.allocatable or {}).items()}


def used(pods: Iterable[Pod]) -> Amounts:
    total: Amounts = {}
    for pod in pods:
        for name, amount in counted(pod).items():
            total[name] = total.get(name, 0) + amount
    return total


def used_nonzero(pods: Iterable[Pod]) -> Amounts:
    total = {"cpu": 0, "memory": 0}
    for pod in pods:
        amounts = nonzero(pod)
        total["cpu"] += amounts["cpu"]
        total["memory"] += amounts["memory"]
    return total
