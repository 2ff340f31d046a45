"""The other kinds that a decision reads: namespaces, services, the owners of pods, budgets, priority classes."""

from __future__ import annotations

import msgspec

from bayplan.api.meta import KubeObject, LabelSelector, Struct

__all__ = [
    "Namespace",
    "PodDisruptionBudget",
    "PriorityClass",
    "ReplicaSet",
    "ReplicationController",
    "Service",
    "StatefulSet",
]


class Namespace(KubeObject):
    pass


class SelectorMapSpec(Struct):
    selector: dict[str, str] | None = None


class Service(KubeObject):
    spec: SelectorMapSpec = msgspec.field(default_factory=SelectorMapSpec)


class ReplicationController(KubeObject):
    spec: SelectorMapSpec = msgspec.field(default_factory=SelectorMapSpec)


class SelectorSpec(Struct):
    selector: LabelSelector | None = None


class ReplicaSet(KubeObject):
    spec: SelectorSpec = msgspec.field(default_factory=SelectorSpec)


class StatefulSet(KubeObject):
    spec: SelectorSpec = msgspec.field(default_factory=SelectorSpec)


class PodDisruptionBudgetStatus(Struct):
    disruptions_allowed: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    disrupted_pods: dict[str, str] | None = None


class PodDisruptionBudgetSpec(SelectorSpec):
    min_available: int | str | None = None
    """A number of pods, or a percentage of those that are expected."""
    max_unavailable: int | str | None = None
    unhealthy_pod_eviction_policy: str | None = None
    """`AlwaysAllow` or `IfHealthyBudget`, which is the default."""


class PodDisruptionBudget(KubeObject):
    spec: PodDisruptionBudgetSpec = msgspec.field(default_factory=PodDisruptionBudgetSpec)
    status: PodDisruptionBudgetStatus = msgspec.field(default_factory=PodDisruptionBudgetStatus)


class PriorityClass(KubeObject):
    value: int = 0
    global_default: bool = False
    preemption_policy: str | None = None
