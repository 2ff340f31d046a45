"""What terminal, browser and programs are given: plain data, small whatever the cluster. No engine is imported here.

What was decided (`Decided`, made of a frozen record) and what holds at present (`Now`, computed) are different types
and stand apart; every sentence comes from a claim about one of them. All names on the wire are camelCase. What is put
out as JSON carries `VERSION`; its JSON Schemas are published (`bayplan.explain.schemas`).
"""

from __future__ import annotations

from typing import Any

import msgspec

from bayplan.explain.claims.base import Edit
from bayplan.explain.claims.devices import ABOUT_NODE, ABOUT_ONE, HasDevices
from bayplan.explain.claims.pods import IF, NOW, THEN, NodeAnswers, NodeStands, PendingTogether, Played
from bayplan.loop.record import (
    DecisionRecord,
    PermitWait,
    PluginTook,
    Points,
    Preemption,
    Refused,
    ScoredNode,
    Step,
    Victim,
)

__all__ = [
    "VERSION",
    "Changes",
    "Decided",
    "DeviceFact",
    "DeviceReport",
    "EvictedPod",
    "NodeDevice",
    "NodeDeviceReport",
    "NodeExplanation",
    "NodeFact",
    "Now",
    "PendingBoard",
    "PendingCause",
    "PendingHere",
    "Placement",
    "PodExplanation",
    "QueueState",
    "RequestDevices",
    "ResourceFill",
    "RunningPod",
    "Suggestion",
    "Waiting",
    "WhatIf",
    "decided_of",
]

VERSION = "bayplan.dev/explain/v1"


class Decided(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Then: what an attempt decided, as it was recorded."""

    time: float
    attempt: int
    outcome: str
    """under way, bound, unschedulable, or error"""
    node: str
    """Empty when no node was found."""
    chosen_by: str
    """points; only node (one fitted and nothing was scored); nomination; empty without a node"""
    total: int
    points: dict[str, Points]
    runner_up: ScoredNode | None
    ties: int
    """How many nodes had the highest total."""
    tie_break: str
    feasible: int
    scored: int
    """How many of these were scored, where a sample was; 0 where all were."""
    nodes: int
    funnel: tuple[Step, ...]
    victims: tuple[Victim, ...]
    preemption: Preemption | None
    refused: tuple[Refused, ...]
    message: str
    """In kube-scheduler's words."""
    post_filter: str
    permit: PermitWait | None
    stopped_at: str
    """Reserve, Permit, PreBind or Bind, where one of them refused the pod after the choice."""
    stopped_by: str
    error: str


def decided_of(record: DecisionRecord) -> Decided:
    return Decided(**{name: getattr(record, name) for name in Decided.__struct_fields__})


class Now(msgspec.Struct, kw_only=True, rename="camel"):
    """What would be decided on the cluster as it is, if the pod were tried now."""

    time: float = 0.0
    node: str = ""
    """Where the pod would go; empty when nowhere."""
    message: str = ""
    """Why not, in kube-scheduler's words."""
    nodes: int = 0
    feasible: int = 0
    funnel: tuple[Step, ...] = ()
    refused: list[Refused] = []
    best: list[ScoredNode] = []
    """The node first, then the others with the highest totals."""
    ties: int = 0
    tied: list[str] = []
    """Some of the nodes that share the highest total."""
    preemption: Preemption | None = None
    """Who would have to leave, where the pod may make them."""
    devices: DeviceReport | None = None
    """Where devices keep it from nodes: what each device of the nearest ones is to it."""
    phases: tuple[tuple[str, float], ...] = ()
    """(extension point, seconds) in the order in which they ran."""
    times: tuple[PluginTook, ...] = ()


class QueueState(msgspec.Struct, kw_only=True, rename="camel"):
    """Where the pod waits, since when, and what for."""

    place: str = ""
    """active, backoff, unschedulable, gated, in-flight, permit; empty when the queue does not know the pod"""
    since: float = 0.0
    attempts: int = 0
    rejected_by: list[str] = []
    gated_by: str = ""
    backoff_until: float | None = None
    history: list[tuple[float, str, str]] = []


class Suggestion(msgspec.Struct, kw_only=True, rename="camel"):
    """A change that was tried on a copy, and what came of it."""

    sentence: str
    edits: list[Edit] = []
    """What changes; empty where it takes another configuration, or a cordoned node and another attempt."""
    commands: list[str] = []
    """What makes the edits, in a shell, in this order; an API server accepts them as they are."""
    how: str = ""
    """What of the edits no command makes."""
    node: str = ""
    """Where the pod would then go; empty when nowhere."""
    nodes: int = 1
    """How many nodes would then fit."""
    claim: IF | None = None


class Changes(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    """What would let a pending pod run, or move a placed one."""

    pod: str
    is_placed: bool = False
    schedulable: bool = False
    """It would find a node as things are: nothing needs to change."""
    suggestions: list[Suggestion] = []
    nearest: list[Suggestion] = []
    """Nodes that lack the least."""
    without: list[Suggestion] = []
    """How many nodes would fit without one plugin."""
    note: str = ""
    """What the answer leaves out."""


class PodExplanation(msgspec.Struct, kw_only=True, rename="camel"):
    pod: str
    state: str
    """placed, binding, pending, gated, held, or gone; unknown where records alone are read"""
    verdict: str
    """The dominant reason in one sentence."""
    version: str = VERSION
    uid: str = ""
    profile: str = ""
    node: str = ""
    """Where the pod is; empty while it is nowhere."""
    claim: THEN | NOW | None = None
    """What the verdict says."""
    decision: Decided | None = None
    """Then."""
    now: Now | None = None
    devices: list[HasDevices] = []
    """What a placed pod has, by resource claim."""
    queue: QueueState | None = None
    attempts: list[DecisionRecord] = []
    """The newest first."""
    suggestions: list[Suggestion] = []
    nearest: list[Suggestion] = []
    without: list[Suggestion] = []
    note: str = ""
    result: dict[str, Any] | None = None
    """Every node on the cluster as it is now, in the form of the golden cases."""


class ResourceFill(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    resource: str
    requested: int
    """milli-cpu, bytes or counts"""
    allocatable: int


class RunningPod(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    pod: str
    cpu_milli: int
    memory_bytes: int
    priority: int
    is_assumed: bool = False


class PendingHere(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    """The verdict on a node for one kind of pending pod."""

    pod: str
    """One of them."""
    count: int
    fits: bool
    plugin: str = ""
    reasons: list[str] = []
    total: int = 0
    place: int = 0
    """Among the nodes that fit, the best being 1."""
    claim: NodeAnswers | None = None


class NodeExplanation(msgspec.Struct, kw_only=True, rename="camel"):
    node: str
    verdict: str
    version: str = VERSION
    claim: NodeStands | None = None
    """What the verdict says."""
    zone: str = ""
    unschedulable: bool = False
    taints: list[str] = []
    labels: dict[str, str] = {}
    resources: list[ResourceFill] = []
    pod_count: int = 0
    allowed_pods: int = 0
    pods: list[RunningPod] = []
    """Some of them, the largest first."""
    devices: list[NodeDevice] = []
    pending: list[PendingHere] = []
    attempts: list[DecisionRecord] = []
    """Recent decisions for this node."""


# Devices


class DeviceFact(msgspec.Struct, kw_only=True, rename="camel"):
    device: str
    state: str
    """free, taken, tainted, refused, short or elsewhere"""
    phrase: str
    """After the name of the device."""
    claim: ABOUT_ONE


class RequestDevices(msgspec.Struct, kw_only=True, rename="camel"):
    """The devices of a node for one request, or for one alternative of a request."""

    request: str
    """`claim/request`"""
    device_class: str
    asked: int
    """0 for all devices."""
    usable: int
    devices: list[DeviceFact]


class NodeFact(msgspec.Struct, kw_only=True, rename="camel"):
    sentence: str
    claim: ABOUT_NODE


class NodeDeviceReport(msgspec.Struct, kw_only=True, rename="camel"):
    node: str
    missing: int
    """How many devices too few would do; 0 where it is something else."""
    requests: list[RequestDevices]
    facts: list[NodeFact]
    """About the node as a whole: constraints, pools, claims that are out of reach."""
    error: str = ""


class DeviceReport(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    """Nodes that were refused for their devices, those where the fewest are missing first."""

    nodes: list[NodeDeviceReport]
    refused: int
    """How many there are."""
    looked_at: int
    """How many of them were looked at."""


class NodeDevice(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    """A device of a node, whatever pods request."""

    device: str
    state: str
    """free, taken, shared (and perhaps not used up) or tainted"""
    owners: list[str] = []
    """Resource claims that have it."""
    users: list[str] = []
    """Pods for which these are reserved."""
    taints: list[str] = []


# Pending pods


class Waiting(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    """A pending pod, as the queue has it."""

    pod: str
    place: str = ""
    since: float = 0.0
    attempts: int = 0
    rejected_by: list[str] = []
    """Who refused it at its last attempt."""


class PendingCause(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    title: str
    plugin: str
    reasons: list[str] = []
    count: int = 0
    pods: list[Waiting] = []
    """Some of them, longest waiting first."""
    message: str = ""
    """The message of one of them."""
    claim: PendingTogether | None = None


class PendingBoard(msgspec.Struct, kw_only=True, rename="camel"):
    verdict: str
    version: str = VERSION
    total: int = 0
    causes: list[PendingCause] = []
    """Most pods first."""
    change: Suggestion | None = None
    """The one that would free the most."""
    frees: int = 0
    """How many of the pending pods would then find a node, one after the other."""
    claim: PendingTogether | None = None
    """What the verdict says."""


# Scenarios


class Placement(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    pod: str
    node: str = ""
    total: int = 0
    message: str = ""
    origin: str = "pending"
    """pending, added, evicted, deleted (and made again), or the node that the pod was drained from"""


class EvictedPod(msgspec.Struct, kw_only=True, rename="camel"):
    pod: str
    node: str
    by: str
    """The pod that would take its place."""


class WhatIf(msgspec.Struct, kw_only=True, rename="camel"):
    verdict: str
    version: str = VERSION
    claim: Played | None = None
    """What the verdict says, and of which pods."""
    node_count: int
    placed: list[Placement] = []
    pending: list[Placement] = []
    placed_count: int = 0
    pending_count: int = 0
    evicted: list[EvictedPod] = []
    evicted_count: int = 0
    note: str = ""
    """What the answer leaves out."""
    nodes_used: dict[str, int] = {}
    """How many of the pods each node got."""
