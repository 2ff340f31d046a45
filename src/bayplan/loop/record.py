"""The record of one attempt to schedule a pod: what was decided then, as frozen plain data.

Nothing in a record is computed again later: it says what held when the decision was made. What holds at present is
another type (`bayplan.explain.model`), so that a sentence is about the one or about the other. Records are written by
`bayplan.loop.recorder` and read by `bayplan.explain`; on the wire all names are camelCase, times are seconds since the
epoch.
"""

from __future__ import annotations

import msgspec

__all__ = [
    "CandidateKey",
    "DecisionRecord",
    "History",
    "PermitWait",
    "PluginTook",
    "Points",
    "Preemption",
    "Refused",
    "ScoredNode",
    "Step",
    "Victim",
]

UNDER_WAY = "under way"
BY_POINTS = "points"
ONLY_NODE = "only node"
NOMINATION = "nomination"

History = tuple[tuple[float, str, str], ...]
"""(time, queue entered, cause), oldest first."""


class Step(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    """One filter of the funnel: how many nodes it was the first to reject, and how many were left."""

    plugin: str
    rejected: int
    left: int


class Points(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    """What one plugin gave to a node."""

    weighted: int
    normalized: int
    raw: int | None = None
    """None for extenders, which give points and nothing before."""
    weight: int = 1


class ScoredNode(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    node: str
    total: int
    points: dict[str, Points] = {}
    """By plugin; plugins that skipped the pod are left out."""


class Refused(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    """Nodes that one plugin refused for the same reasons."""

    plugin: str
    """Empty where PreFilter left the nodes out."""
    code: str
    reasons: tuple[str, ...]
    count: int
    sample: tuple[str, ...] = ()
    """Names of some of them."""


class Victim(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    """A pod that had to leave."""

    pod: str
    uid: str = ""
    priority: int = 0


class CandidateKey(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    """One criterion of preemption: its lowest value, and how many candidate nodes had it."""

    key: str
    value: float
    left: int


class Preemption(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    """Who had to leave for the pod, where, and what decided between the nodes where that was possible."""

    node: str
    victims: tuple[Victim, ...] = ()
    victim_count: int = 0
    candidates: int = 0
    keys: tuple[CandidateKey, ...] = ()
    """In the order in which candidates are compared; it ends with the one that left a single node, if any did."""
    attempt: int = 0
    """The attempt that preempted."""
    time: float = 0.0

    @property
    def ties(self) -> int:
        """How many nodes were as good by every criterion; one of them was taken."""
        return self.keys[-1].left if self.keys else 1


class PermitWait(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    """The pod was held at Permit."""

    plugins: dict[str, float] = {}
    """Those that made it wait, and their time limits in seconds."""
    seconds: float = 0.0
    """How long it waited; 0 while it does."""
    result: str = ""
    """Success, or the code of the refusal; empty while it waits."""


class PluginTook(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    plugin: str
    point: str
    """As in metrics: PreFilter, Filter, Score, ..."""
    seconds: float


class DecisionRecord(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    number: int
    time: float
    pod: str
    uid: str
    profile: str
    attempt: int = 1
    generation: int = 0
    """Of the cluster that was decided on."""
    seconds: float = 0.0
    """How long the decision took."""
    nodes: int = 0
    """How many nodes the cluster had."""
    feasible: int = 0
    """How many of them fitted."""
    scored: int = 0
    """How many of these were scored, where a sample was (`percentageOfNodesToScore`); 0 where all were."""
    funnel: tuple[Step, ...] = ()
    """Filters that rejected no node are left out."""
    node: str = ""
    """Empty when no node was found."""
    chosen_by: str = ""
    """`points`; `only node`: one node fitted and nothing was scored; `nomination`: the node it had been nominated to
    still fitted and no other was looked at."""
    total: int = 0
    points: dict[str, Points] = {}
    """Of the chosen node; empty where nothing was scored."""
    runner_up: ScoredNode | None = None
    ties: int = 0
    """How many nodes had the highest total."""
    tie_break: str = ""
    """How one of several was taken; empty where there was nothing to break."""
    refused: tuple[Refused, ...] = ()
    """Of attempts that failed: groups of refusals, most nodes first."""
    message: str = ""
    """Why not, as kube-scheduler says it."""
    post_filter: str = ""
    """What PostFilter said."""
    nominated: str = ""
    preemption: Preemption | None = None
    """Of the attempt that preempted, and of the one that then got the node."""
    history: History = ()
    woken_by: str = ""
    phases: tuple[tuple[str, float], ...] = ()
    """(extension point, seconds) in the order in which they ran; of measured attempts and of those that failed."""
    times: tuple[PluginTook, ...] = ()
    """By plugin, in cycles that are measured, one of ten at most. Plugins whose remembered answers were used took no
    time."""
    permit: PermitWait | None = None
    outcome: str = UNDER_WAY
    """under way, bound, unschedulable, or error"""
    outcome_seconds: float = 0.0
    """From the start of the attempt to its outcome."""
    stopped_at: str = ""
    """The extension point after the choice that refused the pod: Reserve, Permit, PreBind or Bind."""
    stopped_by: str = ""
    """The plugin that did."""
    error: str = ""
    """What it said."""

    @property
    def is_scored(self) -> bool:
        return self.chosen_by == BY_POINTS

    @property
    def victims(self) -> tuple[Victim, ...]:
        return self.preemption.victims if self.preemption is not None else ()
