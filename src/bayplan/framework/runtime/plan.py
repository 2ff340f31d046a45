"""The plan for one pod shape: who has a say, and what could be settled once for all pods of the shape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from bayplan.framework.cycle import CycleState
from bayplan.framework.depends import Depends
from bayplan.framework.plugin import Plugin, PreFilterResult
from bayplan.framework.runtime.call import FilterCall, ScoreCall
from bayplan.framework.runtime.evaluation import Evaluation
from bayplan.framework.status import Status
from bayplan.snapshot.columns import NodeColumns
from bayplan.snapshot.pod_info import PodInfo

__all__ = ["NO_RESTRICTION", "Idlers", "Plan", "PreFilterOutcome", "PreFilterStep", "PreScoreStep", "Rest"]


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


class Rest(NamedTuple):
    """What a plan needs once more than a few named nodes are looked at."""

    evaluation: Evaluation
    scores: list[ScoreCall]
    pre_scores: list[PreScoreStep]


Idlers = Sequence[tuple[str, Callable[[PodInfo], bool]]]
"""Plugins that can tell when they have nothing to say: the names and `is_idle(pod)` of those that define it."""


class Plan:
    """What `Framework.plan` found out about a shape. Rebuilt when a plugin's version moves.

    Everything about scores, and the evaluation over all nodes, is worked out when first asked for: a pod that is
    pinned to one node never does.
    """

    __slots__ = (
        "_complete",
        "_due_pre_scores",
        "_due_scores",
        "_rest",
        "_skip_filter",
        "due_filters",
        "due_pre_filters",
        "filters",
        "idle",
        "idle_as_of",
        "open_filters",
        "pre_filters",
        "skip_filter",
        "versions",
    )

    def __init__(
        self,
        *,
        filters: list[FilterCall],
        pre_filters: list[PreFilterStep],
        skip_filter: set[str],
        versions: list[int],
        complete: Callable[[list[FilterCall]], Rest],
    ) -> None:
        self.filters = filters
        """Every filter that has a say for this shape, in order."""
        self.pre_filters = pre_filters
        self.open_filters = [call for call in filters if call.depends is Depends.CLUSTER]
        """Filters that must be asked for every decision."""
        self.versions = versions
        self._complete = complete
        self._rest: Rest | None = None
        self._due_pre_scores: list[PreScoreStep] | None = None
        self._due_scores: list[ScoreCall] | None = None
        self._skip_filter = skip_filter
        self.idle_as_of = (-1, -1, -1)
        self._settle(frozenset())

    @property
    def evaluation(self) -> Evaluation:
        return (self._rest or self._completed()).evaluation

    @property
    def scores(self) -> list[ScoreCall]:
        """Every score that has a say for this shape, in order."""
        return (self._rest or self._completed()).scores

    @property
    def pre_scores(self) -> list[PreScoreStep]:
        """PreScores of plugins that are not remembered, and those that fail."""
        return (self._rest or self._completed()).pre_scores

    @property
    def open_scores(self) -> list[ScoreCall]:
        """Scores that must be asked for every decision."""
        return [call for call in self.scores if not call.is_remembered]

    @property
    def due_scores(self) -> list[ScoreCall]:
        """The open ones that are not idle."""
        if self._due_scores is None:
            self._due_scores = [call for call in self.open_scores if call.name not in self.idle]
        return self._due_scores

    @property
    def due_pre_scores(self) -> list[PreScoreStep]:
        if self._due_pre_scores is None:
            idle = self.idle
            self._due_pre_scores = [s for s in self.pre_scores if s.failure is not None or s.plugin.name not in idle]
        return self._due_pre_scores

    def _completed(self) -> Rest:
        self._rest = self._complete(self.filters)
        return self._rest

    def follow(self, pod: PodInfo, idlers: Idlers, as_of: tuple[int, int, int]) -> None:
        """Find out which plugins have nothing to say at the moment. They are not asked until `as_of` moves."""
        self.idle_as_of = as_of
        idle = frozenset(name for name, is_idle in idlers if name not in self._skip_filter and _safely(is_idle, pod))
        if idle != self.idle:
            self._settle(idle)

    def _settle(self, idle: frozenset[str]) -> None:
        self.idle = idle
        self.skip_filter = self._skip_filter | idle
        self.due_pre_filters = [s for s in self.pre_filters if s.is_settled or s.plugin.name not in idle]
        self.due_filters = [call for call in self.open_filters if call.name not in idle]
        self._due_pre_scores = self._due_scores = None


def _safely(is_idle: Callable[[PodInfo], bool], pod: PodInfo) -> bool:
    try:
        return is_idle(pod)
    except Exception:
        # Whatever is wrong will be said where it is reported: when the plugin is asked.
        return False
