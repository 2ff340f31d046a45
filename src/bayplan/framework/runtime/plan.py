"""The plan for one pod shape: who has a say, and what could be settled once for all pods of the shape."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from bayplan.framework.cycle import CycleState
from bayplan.framework.depends import Depends
from bayplan.framework.plugin import Plugin, PreFilterResult
from bayplan.framework.runtime.call import FilterCall, ScoreCall
from bayplan.framework.runtime.evaluation import Evaluation
from bayplan.framework.status import Status
from bayplan.snapshot.columns import NodeColumns
from bayplan.snapshot.pod_info import PodInfo

__all__ = ["NO_RESTRICTION", "Plan", "PreFilterOutcome", "PreFilterStep", "PreScoreStep"]


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


NO_RESTRICTION = PreFilterOutcome(None, None, ())


class Plan:
    """What `Framework.plan` found out about a shape. Rebuilt when a plugin's version moves."""

    __slots__ = (
        "evaluation",
        "filters",
        "open_filters",
        "open_scores",
        "pre_filters",
        "pre_scores",
        "scores",
        "skip_filter",
        "versions",
    )

    def __init__(
        self,
        *,
        evaluation: Evaluation,
        filters: list[FilterCall],
        scores: list[ScoreCall],
        pre_filters: list[PreFilterStep],
        pre_scores: list[PreScoreStep],
        skip_filter: set[str],
        versions: list[int],
    ) -> None:
        self.evaluation = evaluation
        self.filters = filters
        """Every filter that has a say for this shape, in order."""
        self.scores = scores
        """Every score that has a say for this shape, in order."""
        self.pre_filters = pre_filters
        self.pre_scores = pre_scores
        """PreScores of plugins that are not remembered, and those that fail."""
        self.skip_filter = skip_filter
        self.open_filters = [call for call in filters if call.depends is Depends.CLUSTER]
        """Filters that must be asked for every decision."""
        self.open_scores = [call for call in scores if not call.is_remembered]
        self.versions = versions
