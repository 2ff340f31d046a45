"""The plan for one pod shape: who has a say, and what could be settled once for all pods of the shape."""

from __future__ import annotations

from collections.abc import Callable, Iterable
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
        "_idlers",
        "_skip_filter",
        "due_filters",
        "due_pre_filters",
        "due_pre_scores",
        "due_scores",
        "evaluation",
        "filters",
        "idle",
        "idle_as_of",
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
        self.open_filters = [call for call in filters if call.depends is Depends.CLUSTER]
        """Filters that must be asked for every decision."""
        self.open_scores = [call for call in scores if not call.is_remembered]
        self.versions = versions
        self._skip_filter = skip_filter
        self._idlers = _idlers([*self.open_filters, *self.open_scores])
        self.idle_as_of = (-1, -1, -1)
        self._settle(frozenset())

    def follow(self, pod: PodInfo, as_of: tuple[int, int, int]) -> None:
        """Find out which plugins have nothing to say at the moment. They are not asked until `as_of` moves."""
        self.idle_as_of = as_of
        idle = frozenset(name for name, is_idle in self._idlers if _safely(is_idle, pod))
        if idle != self.idle:
            self._settle(idle)

    def _settle(self, idle: frozenset[str]) -> None:
        self.idle = idle
        self.skip_filter = self._skip_filter | idle
        self.due_pre_filters = [s for s in self.pre_filters if s.is_settled or s.plugin.name not in idle]
        self.due_filters = [call for call in self.open_filters if call.name not in idle]
        self.due_pre_scores = [s for s in self.pre_scores if s.failure is not None or s.plugin.name not in idle]
        self.due_scores = [call for call in self.open_scores if call.name not in idle]


def _idlers(calls: Iterable[FilterCall | ScoreCall]) -> list[tuple[str, Callable[[PodInfo], bool]]]:
    """Plugins that can tell when they have nothing to say: those that define `is_idle(pod)`."""
    found = {call.name: getattr(call.plugin, "is_idle", None) for call in calls}
    return [(name, is_idle) for name, is_idle in found.items() if is_idle is not None]


def _safely(is_idle: Callable[[PodInfo], bool], pod: PodInfo) -> bool:
    try:
        return is_idle(pod)
    except Exception:
        # Whatever is wrong will be said where it is reported: when the plugin is asked.
        return False
