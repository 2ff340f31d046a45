"""What terminal, browser and programs are given about one pod or one node: plain data, small whatever the cluster.

What was decided (`Decided`, made of a frozen record) and what holds at present (`Now`, computed) are different types
and stand apart; every sentence comes from a claim about one of them. All names on the wire are camelCase. What is put
out as JSON carries `VERSION`; its JSON Schemas are published (`bayplan.explain.schemas`).
"""

from __future__ import annotations

from typing import Any

import msgspec

from bayplan.explain.claims import IF, NOW, THEN, NodeAnswers, NodeStands
from bayplan.explain.device_claims import HasDevices
from bayplan.explain.device_report import DeviceReport, NodeDevice
from bayplan.explain.edits import Edit
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
    "NodeExplanation",
    "Now",
    "PendingHere",
    "PodExplanation",
    "QueueState",
    "ResourceFill",
    "RunningPod",
    "Suggestion",
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
    """What changes; empty where it takes another configuration or a drained node."""
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
    """placed, binding, pending, gated, held, or gone"""
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
