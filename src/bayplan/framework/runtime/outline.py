"""What all pods of one kind (`PodShape.kind`) have in common: which plugins take part, and which answers are known.

Outline          Filter half: filters that take part, PreFilter steps, plugins to skip
├── Due          the part that has to run in a decision, while some plugins are idle
└── ScoreOutline Score half, made for the first pod for which more than a few named nodes are considered
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

from bayplan.cluster.node_columns import NodeColumns
from bayplan.cluster.pod_info import PodInfo
from bayplan.framework.cycle import CycleState
from bayplan.framework.plugin import Plugin, PreFilterResult
from bayplan.framework.promises import Depends
from bayplan.framework.runtime.node_calls import FilterCall, ScoreCall
from bayplan.framework.runtime.remembered.combined_score import CombinedScoreCall
from bayplan.framework.runtime.remembered.node_only_evaluation import NodeOnlyEvaluation
from bayplan.framework.status import Status

__all__ = [
    "NO_RESTRICTION",
    "Due",
    "FilterGroups",
    "Outline",
    "PreFilterOutcome",
    "PreFilterStep",
    "PreScoreStep",
    "ScoreOutline",
]


class PreFilterStep(NamedTuple):
    """A PreFilter to call, or one whose answer is known for the shape."""

    plugin: Plugin
    bound: Callable[[CycleState, PodInfo, NodeColumns], Status | PreFilterResult | None]
    answer: Status | PreFilterResult | None
    is_settled: bool
    """Whether `answer` holds for the shape."""


class PreScoreStep(NamedTuple):
    """A PreScore to call, or one that is known to fail for the shape."""

    plugin: Plugin
    bound: Callable[[CycleState, PodInfo, NodeColumns], Status | None]
    failure: Status | None


class PreFilterOutcome(NamedTuple):
    rejection: Status | None
    node_names: frozenset[str] | None
    """The only nodes to consider; None for all."""
    restricted_by: tuple[str, ...]
    absent: Status | None = None
    """Status of the nodes that are not considered."""
    is_pinned: bool = False
    """Only the node that the pod is pinned to is considered. The shape names it, so that all pinned pods share one
    outcome, and `node_names` is None."""


NO_RESTRICTION = PreFilterOutcome(None, None, ())


class ScoreOutline(NamedTuple):
    scores: list[ScoreCall]
    """Every score that takes part, in order."""
    pre_scores: list[PreScoreStep]
    """PreScores of plugins whose scores are not kept, and those that fail."""
    open_scores: list[ScoreCall]
    """Scores that are computed for every decision."""
    row_scores: list[ScoreCall]
    """Kept scores that depend on the pods of a node, except those that are combined."""
    combined: CombinedScoreCall | None
    signs: list[Callable[[PodInfo], Hashable]]
    """What an evaluation depends on besides the kind: `sign` of each plugin that depends on the pods of a node."""
    follows: Depends
    """ROW where a filter or score reads more of the pods on a node than what they use, USE where none does."""
    last_rank: int
    dtype: Any
    """Of totals: half the width is half the memory to read in every decision; only large weights need more."""
    node_only: NodeOnlyEvaluation | None
    """None where pods of one kind may differ in it."""


class Due:
    """What has to run in a decision while some plugins are idle."""

    __slots__ = ("filters", "idle", "pre_filters", "pre_scores", "scores", "skip_filter")

    def __init__(self, outline: Outline, idle: frozenset[str]) -> None:
        self.idle = idle
        self.skip_filter = outline.skip_filter
        self.pre_filters, self.filters = outline.pre_filters, outline.open_filters
        if idle:
            self.skip_filter = idle | outline.skip_filter
            self.pre_filters = [step for step in outline.pre_filters if step.is_settled or step.plugin.name not in idle]
            self.filters = [call for call in outline.open_filters if call.name not in idle]
        self.scores: list[ScoreCall] | None = None
        self.pre_scores: list[PreScoreStep] | None = None


class FilterGroups:
    """The filters that take part, in order, and how they run. Outlines that skip the same plugins share them."""

    __slots__ = ("filters", "open_filters", "optimistic", "row_filters", "skipped", "watched")

    def __init__(self, calls: list[FilterCall], skipped: frozenset[str]) -> None:
        self.skipped = skipped
        self.filters = [call for call in calls if call.name not in skipped]
        self.open_filters = [call for call in self.filters if call.depends is Depends.CLUSTER]
        self.row_filters = [call for call in self.filters if call.depends in (Depends.USE, Depends.ROW)]
        self.optimistic = [call for call in self.row_filters if call.has_accepts_all and call.has_one]
        self.watched = [call for call in self.row_filters if call not in self.optimistic]


class Outline:
    """Which plugins take part for pods of one kind, and the answers that hold for all of them."""

    __slots__ = (
        "_due",
        "filters",
        "last_due",
        "number",
        "open_filters",
        "optimistic",
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
        groups: FilterGroups,
        pre_filters: list[PreFilterStep],
        versions: list[int],
    ) -> None:
        self.number = number
        """No other outline has it."""
        self.filters = groups.filters
        """Every filter that takes part, in order."""
        self.pre_filters = pre_filters
        self.skip_filter = groups.skipped
        self.versions = versions
        """Of all plugins, when the outline was made."""
        self.open_filters = groups.open_filters
        """Filters that run in every decision."""
        self.row_filters = groups.row_filters
        self.optimistic = groups.optimistic
        """Those of them that mostly know, without evaluating each node, that all nodes pass."""
        self.watched = groups.watched
        self.scores: ScoreOutline | None = None
        """Made for the first pod that needs it."""
        self._due: dict[frozenset[str], Due] = {}
        self.last_due = self.due(frozenset())

    def due(self, idle: frozenset[str]) -> Due:
        """What has to run while these plugins are idle."""
        found = self._due.get(idle)
        if found is None:
            found = self._due[idle] = Due(self, idle)
        self.last_due = found
        return found
