"""The plan for one pod shape: who has a say, and what could be settled once for all pods of the shape.

What shapes of one kind (`PodShape.kind`) have in common is in their `Outline`, made once for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple, Protocol

from bayplan.cluster.node_columns import NodeColumns
from bayplan.cluster.pod_info import PodInfo
from bayplan.framework.cycle import CycleState
from bayplan.framework.plugin import Plugin, PreFilterResult
from bayplan.framework.promises import Depends
from bayplan.framework.runtime.call import FilterCall, ScoreCall
from bayplan.framework.runtime.evaluation import Evaluation
from bayplan.framework.runtime.joint import JointCall
from bayplan.framework.runtime.standing import Standing
from bayplan.framework.status import Status

__all__ = [
    "NO_RESTRICTION",
    "Completion",
    "Idlers",
    "Outline",
    "Plan",
    "PreFilterOutcome",
    "PreFilterStep",
    "PreScoreStep",
    "ScoreOutline",
]

_NOBODY: frozenset[str] = frozenset()


class PreFilterStep(NamedTuple):
    """A PreFilter to call, or one whose answer is known for the shape."""

    plugin: Plugin
    ask: Callable[[CycleState, PodInfo, NodeColumns], Status | PreFilterResult | None]
    settled: Status | PreFilterResult | None
    is_settled: bool


class PreScoreStep(NamedTuple):
    """A PreScore to call, or one that is known to fail for the shape."""

    plugin: Plugin
    ask: Callable[[CycleState, PodInfo, NodeColumns], Status | None]
    failure: Status | None


class PreFilterOutcome(NamedTuple):
    rejection: Status | None
    node_names: frozenset[str] | None
    """The only nodes to look at; None for all."""
    restricted_by: tuple[str, ...]
    absent: Status | None = None
    """What is said of nodes that are not to be looked at."""
    is_pinned: bool = False
    """Only the node that the pod is pinned to is to be looked at. Which one that is its shape knows, so that all pods
    which are pinned have one outcome, and `node_names` is None."""


NO_RESTRICTION = PreFilterOutcome(None, None, ())


Idlers = Sequence[tuple[str, Callable[[PodInfo], bool]]]
"""Plugins that can tell when they have nothing to say: the names and `is_idle(pod)` of those that define it."""


class ScoreOutline(NamedTuple):
    """The half of an outline that a pod needs only once more than a few named nodes are looked at."""

    scores: list[ScoreCall]
    """Every score that has a say, in order."""
    pre_scores: list[PreScoreStep]
    """PreScores of plugins that are not remembered, and those that fail."""
    open_scores: list[ScoreCall]
    """Scores that must be asked for every decision."""
    row_scores: list[ScoreCall]
    """Remembered scores that look at the pods of a node, except those that are joined."""
    joint: JointCall | None
    signs: list[Callable[[PodInfo], Hashable]]
    """What an evaluation depends on besides the kind: who of the above looks at what of the pod."""
    follows: Depends
    """ROW where a filter or score looks at more of the pods on a node than at what they use, USE where none does."""
    last_rank: int
    dtype: Any
    """Of totals: half the width is half the memory to read in every decision; only large weights need more."""
    standing: Standing | None
    """None where pods of one kind need not agree on it."""


class Settled:
    """What is due in a decision while some plugins are idle."""

    __slots__ = ("filters", "idle", "pre_filters", "pre_scores", "scores", "skip_filter")

    def __init__(self, outline: Outline, idle: frozenset[str]) -> None:
        self.idle = idle
        self.skip_filter = idle.union(outline.skip_filter)
        self.pre_filters = [step for step in outline.pre_filters if step.is_settled or step.plugin.name not in idle]
        self.filters = [call for call in outline.open_filters if call.name not in idle]
        self.scores: list[ScoreCall] | None = None
        self.pre_scores: list[PreScoreStep] | None = None


class Outline:
    """What all pods of one kind have in common: who has a say, and what could be settled without asking again."""

    __slots__ = (
        "_settled",
        "filters",
        "glanced",
        "last_settled",
        "number",
        "open_filters",
        "pre_filters",
        "row_filters",
        "scores",
        "skip_filter",
        "versions",
        "watched",
    )

    def __init__(
        self,
        number: int,
        *,
        filters: list[FilterCall],
        pre_filters: list[PreFilterStep],
        skip_filter: set[str],
        versions: list[int],
    ) -> None:
        self.number = number
        """No other outline has it."""
        self.filters = filters
        """Every filter that has a say, in order."""
        self.pre_filters = pre_filters
        self.skip_filter = skip_filter
        self.versions = versions
        """Of all plugins, when they were asked."""
        self.open_filters = [call for call in filters if call.depends is Depends.CLUSTER]
        """Filters that must be asked for every decision."""
        self.row_filters = [call for call in filters if call.depends in (Depends.USE, Depends.ROW)]
        self.glanced = [call for call in self.row_filters if call.has_glance and call.has_one]
        """Those of them that mostly tell at a glance that nobody is rejected."""
        self.watched = [call for call in self.row_filters if call not in self.glanced]
        self.scores: ScoreOutline | None = None
        """Worked out for the first pod that needs it."""
        self._settled: dict[frozenset[str], Settled] = {}
        self.last_settled = self.settled(_NOBODY)

    def settled(self, idle: frozenset[str]) -> Settled:
        found = self._settled.get(idle)
        if found is None:
            found = self._settled[idle] = Settled(self, idle)
        self.last_settled = found
        return found


class Completion(Protocol):
    """How a plan gets what it does not need at once."""

    def scores(self, outline: Outline, pod: PodInfo) -> ScoreOutline: ...

    def evaluation(self, outline: Outline, pod: PodInfo) -> Evaluation: ...


class Plan:
    """What `Framework.plan` found out about a shape. Rebuilt when a plugin's version moves.

    Everything about scores, and the evaluation over all nodes, is worked out when first asked for: a pod that is
    pinned to one node never does.
    """

    __slots__ = (
        "_completion",
        "_evaluation",
        "_pod",
        "_settled",
        "due_filters",
        "due_pre_filters",
        "idle",
        "idle_as_of",
        "outline",
        "skip_filter",
    )

    def __init__(self, outline: Outline, pod: PodInfo, completion: Completion) -> None:
        self.outline = outline
        self._completion = completion
        self._pod = pod
        self._evaluation: Evaluation | None = None
        self.idle_as_of = (-1, -1, -1)
        # Mostly the same plugins are idle as for the last pod of the kind; `follow` says who is.
        self._settle(outline.last_settled)

    def of(self, pod: PodInfo) -> Plan:
        """The plan of a pod that is pinned to another node: the same but for what depends on the node."""
        if pod is self._pod:
            return self
        twin = Plan.__new__(Plan)
        twin.outline, twin._completion, twin._pod, twin._evaluation = self.outline, self._completion, pod, None
        twin.idle, twin.idle_as_of, twin._settled = self.idle, self.idle_as_of, self._settled
        twin.skip_filter, twin.due_filters = self.skip_filter, self.due_filters
        twin.due_pre_filters = self.due_pre_filters
        return twin

    @property
    def versions(self) -> list[int]:
        return self.outline.versions

    @property
    def filters(self) -> list[FilterCall]:
        """Every filter that has a say for this shape, in order."""
        return self.outline.filters

    @property
    def pre_filters(self) -> list[PreFilterStep]:
        return self.outline.pre_filters

    @property
    def open_filters(self) -> list[FilterCall]:
        """Filters that must be asked for every decision."""
        return self.outline.open_filters

    @property
    def evaluation(self) -> Evaluation:
        found = self._evaluation
        if found is None:
            found = self._evaluation = self._completion.evaluation(self.outline, self._pod)
        return found

    @property
    def scores(self) -> list[ScoreCall]:
        """Every score that has a say for this shape, in order."""
        return self._outlined_scores().scores

    @property
    def pre_scores(self) -> list[PreScoreStep]:
        """PreScores of plugins that are not remembered, and those that fail."""
        return self._outlined_scores().pre_scores

    @property
    def open_scores(self) -> list[ScoreCall]:
        """Scores that must be asked for every decision."""
        return self._outlined_scores().open_scores

    @property
    def due_scores(self) -> list[ScoreCall]:
        """The open ones that are not idle."""
        settled = self._settled
        if settled.scores is None:
            settled.scores = [call for call in self.open_scores if call.name not in settled.idle]
        return settled.scores

    @property
    def due_pre_scores(self) -> list[PreScoreStep]:
        settled = self._settled
        if settled.pre_scores is None:
            idle = settled.idle
            settled.pre_scores = [s for s in self.pre_scores if s.failure is not None or s.plugin.name not in idle]
        return settled.pre_scores

    def _outlined_scores(self) -> ScoreOutline:
        return self.outline.scores or self._completion.scores(self.outline, self._pod)

    def follow(self, pod: PodInfo, idlers: Idlers, as_of: tuple[int, int, int]) -> None:
        """Find out which plugins have nothing to say at the moment. They are not asked until `as_of` moves."""
        self.idle_as_of = as_of
        skipped = self.outline.skip_filter
        idle = set()
        for name, is_idle in idlers:
            try:
                if name not in skipped and is_idle(pod):
                    idle.add(name)
            except Exception:
                # Whatever is wrong will be said where it is reported: when the plugin is asked.
                continue
        if idle != self.idle:
            self._settle(self.outline.settled(frozenset(idle)))

    def _settle(self, settled: Settled) -> None:
        self._settled = settled
        self.idle, self.skip_filter = settled.idle, settled.skip_filter
        self.due_pre_filters, self.due_filters = settled.pre_filters, settled.filters
