"""Claims: everything that an explanation asserts, as typed data that can be put to the test.

Each sentence comes from one claim (`bayplan.explain.claims.wording`) and nothing else. A claim is about *then* (made of
a frozen record), about *now* (computed on the cluster as it is), or a supposition (what would happen *if*, found by
trying it on a copy). `tests/truth` executes every kind of claim on an embedded cluster.
"""

from __future__ import annotations

from bayplan.explain.claims.base import ClaimAboutPod, Edit, TypedClaim
from bayplan.explain.claims.devices import DEVICES, LacksDevices

__all__ = [
    "BOARDS",
    "IF",
    "LOGGED",
    "NOW",
    "THEN",
    "AwaitsVictims",
    "Chosen",
    "Claim",
    "Failed",
    "FitsNowhere",
    "Frees",
    "GoesTo",
    "HeldAtPermit",
    "HeldBack",
    "Lacks",
    "Left",
    "NoScheduler",
    "NodeAnswers",
    "NodeStands",
    "NothingHelps",
    "PendingTogether",
    "Picked",
    "Played",
    "Preempted",
    "Preempts",
    "PutOnHold",
    "RefusedLater",
    "TooLarge",
    "Unplaced",
    "Without",
    "WouldFit",
    "WouldMove",
    "WouldPreempt",
]


# Then


class Chosen(ClaimAboutPod, frozen=True, tag="chosen"):
    """The pod got the node, and this is why."""

    node: str
    by: str
    """points, only node, or nomination"""
    nodes: int
    feasible: int
    total: int = 0
    ties: int = 0
    runner_up: str = ""
    ahead: int = 0
    plugin: str = ""
    """Who made most of the difference to the runner-up."""
    victims: tuple[str, ...] = ()
    is_bound: bool = True
    scored: int = 0
    """Of the nodes that fitted, where only some were scored."""
    is_past: bool = False
    """Whether it is still there is not known."""


class Preempted(ClaimAboutPod, frozen=True, tag="preempted"):
    """The pod had to leave for another one."""

    by: str
    node: str
    time: float


class Left(ClaimAboutPod, frozen=True, tag="left"):
    """The pod was on the node. Schedulers hear no more of pods that have ended, so that it may be there or not."""

    node: str


class Unplaced(ClaimAboutPod, frozen=True, tag="unplaced"):
    """No attempt gave the pod a node, or none is recorded."""

    message: str = ""
    is_gone: bool = True
    """Whether it is in the cluster is not known from records alone."""


class RefusedLater(ClaimAboutPod, frozen=True, tag="refusedLater"):
    """A node was chosen at the last attempt, and Reserve, Permit, PreBind or Bind refused the pod."""

    node: str
    point: str
    plugin: str
    message: str
    has_failed: bool = False
    """It was no refusal but an error: the plugin did not do its work."""


class Picked(ClaimAboutPod, frozen=True, tag="picked"):
    """An attempt chose the node; the pod is not bound yet."""

    node: str
    feasible: int
    total: int = 0
    ties: int = 0
    is_nominated: bool = False
    """It had been nominated to the node, and no other was looked at."""
    scored: int = 0
    """Of the nodes that fit, where only some were scored."""


class Failed(ClaimAboutPod, frozen=True, tag="failed"):
    """An attempt found no node, for this reason in kube-scheduler's words."""

    message: str


class Preempts(ClaimAboutPod, frozen=True, tag="preempts"):
    """An attempt found no node, and these pods have to leave theirs for it."""

    node: str
    victims: tuple[str, ...]


class PutOnHold(ClaimAboutPod, frozen=True, tag="putOnHold"):
    """An attempt chose the node, and plugins let the pod wait at Permit, the first of them for so long at most."""

    node: str
    plugins: tuple[str, ...]
    seconds: float


# Now


class PendingTogether(TypedClaim, frozen=True, tag="pendingTogether"):
    """So many pods are pending, and so many of them for one reason."""

    total: int
    count: int = 0
    title: str = ""
    reason: str = ""
    """The message that they share, if they have one."""
    pods: tuple[str, ...] = ()
    """Those that are counted; some of them, where they are many."""


class NodeStands(TypedClaim, frozen=True, tag="nodeStands"):
    """What runs on a node, and how many of the pending pods it would take now."""

    node: str
    pods: int
    allowed: int
    fits: int
    waiting: int
    is_cordoned: bool = False
    coming: int = 0
    """Pods that have a place there and are not bound yet."""
    untried: int = 0
    """Pending pods beside these that were not looked at, where they are of too many kinds."""


class NodeAnswers(ClaimAboutPod, frozen=True, tag="nodeAnswers"):
    """What a node says to a pending pod: a place among the nodes that fit, or who refuses it and why."""

    node: str
    fits: bool
    place: int = 0
    total: int = 0
    plugin: str = ""
    reasons: tuple[str, ...] = ()


class GoesTo(ClaimAboutPod, frozen=True, tag="goesTo"):
    """A pod that waits would get this node."""

    node: str
    nodes: int
    feasible: int
    total: int = 0
    ties: int = 0
    runner_up: str = ""
    ahead: int = 0
    plugin: str = ""
    place: str = ""
    """Where in the queue it waits."""
    sample: int = 0
    """How many nodes are scored at a time, where that is fewer than fit: another of them may be taken."""
    is_offline: bool = False
    """Of manifests, without a running scheduler."""


class FitsNowhere(ClaimAboutPod, frozen=True, tag="fitsNowhere"):
    """No node takes the pod: the plugin that keeps it from most nodes, and its reason."""

    nodes: int
    plugin: str = ""
    reason: str = ""
    refused: int = 0
    """Nodes that the plugin refuses for this reason."""
    message: str = ""
    """In kube-scheduler's words."""
    resource: str = ""
    asked: str = ""
    largest: str = ""
    """Where a resource is asked for that no node offers so much of: the most that any node offers."""


class WouldPreempt(ClaimAboutPod, frozen=True, tag="wouldPreempt"):
    """The pod fits nowhere, and would get the node if the victims left, which it may make them."""

    node: str
    victims: tuple[str, ...]
    violations: int = 0
    """Victims that a disruption budget does not allow to leave."""
    ties: int = 1
    """How many nodes would cost the same; one of them is taken."""


class AwaitsVictims(ClaimAboutPod, frozen=True, tag="awaitsVictims"):
    """The pod has preempted: it is nominated to the node, and these pods have not left it yet."""

    node: str
    victims: tuple[str, ...]


class HeldBack(ClaimAboutPod, frozen=True, tag="heldBack"):
    """PreEnqueue keeps the pod out of the queue."""

    plugin: str
    message: str
    gates: tuple[str, ...] = ()


class HeldAtPermit(ClaimAboutPod, frozen=True, tag="heldAtPermit"):
    """The pod has a node, and plugins let it wait before it is bound."""

    node: str
    plugins: tuple[str, ...]
    seconds_left: float
    reason: str = ""
    """What it waits for, as the plugins say it."""


class NoScheduler(ClaimAboutPod, frozen=True, tag="noScheduler"):
    """The pod names a scheduler that is not one of ours."""

    scheduler: str
    known: tuple[str, ...] = ()


# If


class WouldFit(ClaimAboutPod, frozen=True, tag="wouldFit"):
    """With these edits done the pod gets the node, one of so many that fit."""

    what: str
    """In words, after "if"."""
    edits: tuple[Edit, ...]
    node: str
    """Empty for a pod of a group, whose node depends on who comes first."""
    nodes: int = 1
    victims: tuple[str, ...] = ()
    before: int = 0
    """How many pods that are as important and have waited longer would take the room if they had their turns first."""
    lost: tuple[str, ...] = ()
    """Pods that the edits delete and that nobody makes again."""
    displaced: tuple[str, ...] = ()
    """Pods that the edits delete, that their controllers make again, and that find no node then."""
    against: tuple[str, ...] = ()
    """Disruption budgets that allow fewer of their pods to leave than the edits delete."""


class WouldMove(ClaimAboutPod, frozen=True, tag="wouldMove"):
    """Where a placed pod would go if it were scheduled again after a change; nowhere, if the node is empty."""

    home: str
    what: str
    node: str = ""
    drain: str = ""
    plugin: str = ""
    weight: int = 0
    victims: tuple[str, ...] = ()
    ties: int = 1
    """Where pods have to leave: how many nodes would cost the same."""


class Without(ClaimAboutPod, frozen=True, tag="without"):
    """With one plugin turned off, so many nodes would fit."""

    plugin: str
    nodes: int


class Lacks(ClaimAboutPod, frozen=True, tag="lacks"):
    """A node that has too little room, and how much it lacks."""

    node: str
    amounts: dict[str, str]
    also: tuple[str, ...] = ()
    """Other filters that reject it."""


class TooLarge(ClaimAboutPod, frozen=True, tag="tooLarge"):
    """The pod asks for more of a resource than any node offers in all."""

    resource: str
    asked: str
    largest: str = ""
    """Empty where no node offers any."""


class Frees(ClaimAboutPod, frozen=True, tag="frees"):
    """With these edits done, so many of the pending pods find a node, one after the other."""

    what: str
    edits: tuple[Edit, ...]
    count: int
    of: int
    is_limited: bool = False
    """The trial was ended before every pod had been tried."""
    lost: tuple[str, ...] = ()
    displaced: tuple[str, ...] = ()
    against: tuple[str, ...] = ()
    """All three as in `WouldFit`."""


class Played(TypedClaim, frozen=True, tag="played"):
    """What a what-if came to."""

    placed: int
    pending: int
    evicted: int
    nodes: int
    """How many nodes got some of the pods."""
    went: dict[str, str] = {}
    """Node by pod, empty for those that stay pending; of the pods that are listed."""


class NothingHelps(ClaimAboutPod, frozen=True, tag="nothingHelps"):
    """No suggestion came true on the copy; this is what stands in the way."""

    reason: str


THEN = Chosen | Preempted | Left | Unplaced | RefusedLater
LOGGED = Picked | Failed | Preempts | PutOnHold | RefusedLater
NOW = GoesTo | FitsNowhere | LacksDevices | WouldPreempt | AwaitsVictims | HeldBack | HeldAtPermit | NoScheduler
BOARDS = PendingTogether | NodeStands | NodeAnswers | Played
IF = WouldFit | WouldMove | Without | Lacks | TooLarge | Frees | NothingHelps
Claim = THEN | LOGGED | NOW | BOARDS | IF | DEVICES
