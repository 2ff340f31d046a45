"""An explanation as plain data: what terminal, browser and programs are given about one pod or one node.

Small whatever the size of the cluster: counts, samples and the best nodes. Who wants every node asks for `result`,
which has the shape of the golden cases. All names on the wire are camelCase.
"""

from __future__ import annotations

import msgspec

from bayplan.explain.case import JsonObject
from bayplan.loop.record import DecisionRecord, PluginTook, Preemption, Refused, ScoredNode

__all__ = [
    "Explanation",
    "Funnel",
    "Lead",
    "NodeExplanation",
    "PendingHere",
    "QueueState",
    "ResourceFill",
    "RunningPod",
    "Step",
    "Victims",
]


class _Wire(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    """How everything here is written."""


class Step(_Wire):
    """One filter: how many nodes it was the first to reject, and how many were left."""

    plugin: str
    rejected: int
    left: int


Funnel = list[Step]


class Lead(_Wire):
    """How far the chosen node is ahead of the next one, and which plugin made most of the difference."""

    runner_up: str
    points: int
    plugin: str = ""


class Victims(_Wire):
    node: str
    pods: list[str]


class QueueState(_Wire):
    """Where the pod waits, since when, and what for."""

    place: str = ""
    """active, backoff, unschedulable, gated, in-flight; empty when the queue does not know the pod"""
    since: float = 0.0
    attempts: int = 0
    rejected_by: list[str] = []
    gated_by: str = ""
    backoff_until: float | None = None
    story: list[tuple[float, str, str]] = []


class Explanation(_Wire):
    pod: str
    state: str
    """placed, binding, pending, gated, or gone"""
    verdict: str
    uid: str = ""
    profile: str = ""
    node: str = ""
    """Where the pod is, or, with `fits`, where it would go now."""
    fits: bool = False
    """A pending pod that would find a node on the cluster as it is now."""
    message: str = ""
    as_of: float = 0.0
    from_record: bool = False
    """Worked out when the pod was placed; otherwise on the cluster as it is now."""
    node_count: int = 0
    feasible: int = 0
    funnel: Funnel = []
    refused: list[Refused] = []
    best: list[ScoredNode] = []
    weights: dict[str, int] = {}
    tie_count: int = 0
    ties: list[str] = []
    """Some of the nodes that share the highest total."""
    phases: tuple[tuple[str, float], ...] = ()
    """(extension point, seconds) in the order in which they ran."""
    times: tuple[PluginTook, ...] = ()
    """By plugin and extension point; of attempts that are past, one in ten at most is measured."""
    lead: Lead | None = None
    victims: Victims | None = None
    preemption: Preemption | None = None
    """Who left for this pod, when it got its node."""
    evicted: DecisionRecord | None = None
    """The attempt of another pod for which this one had to leave."""
    queue: QueueState | None = None
    attempts: list[DecisionRecord] = []
    result: JsonObject | None = None
    """Every node, on the cluster as it is now."""


class ResourceFill(_Wire):
    resource: str
    requested: int
    """milli-cpu, bytes or counts"""
    allocatable: int


class RunningPod(_Wire):
    pod: str
    cpu_milli: int
    memory_bytes: int
    priority: int
    is_assumed: bool = False


class PendingHere(_Wire):
    """What a node says to one kind of pending pod."""

    pod: str
    """One of them."""
    count: int
    fits: bool
    plugin: str = ""
    reasons: list[str] = []
    total: int = 0
    place: int = 0
    """Among the nodes that fit, the best being 1."""


class NodeExplanation(_Wire):
    node: str
    verdict: str
    zone: str = ""
    unschedulable: bool = False
    taints: list[str] = []
    labels: dict[str, str] = {}
    resources: list[ResourceFill] = []
    pod_count: int = 0
    allowed_pods: int = 0
    pods: list[RunningPod] = []
    """Some of them, the largest first."""
    pending: list[PendingHere] = []
    attempts: list[DecisionRecord] = []
    """Recent decisions for this node."""
