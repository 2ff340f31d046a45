"""The one seam through which plugins are called: exceptions become statuses, answers get the plugin's name.

A plugin that raises does not stop the scheduler. The failure is reported once, with its traceback, to whoever listens,
and counts as an Error status of that plugin.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import numpy as np

from bayplan.cluster.axes import Int64N
from bayplan.cluster.node_columns import NodeColumns
from bayplan.cluster.node_info import NodeInfo
from bayplan.cluster.pod_info import PodInfo
from bayplan.framework.cycle import CycleState
from bayplan.framework.normalize import MAX_NODE_SCORE, Normalizer
from bayplan.framework.plugin import Plugin
from bayplan.framework.points import ExtensionPoint, defines
from bayplan.framework.promises import ByValue, Depends
from bayplan.framework.status import SUCCESS, Error, Status
from bayplan.framework.times import PluginTimes
from bayplan.framework.verdicts import StatusTable, Verdicts

__all__ = ["POINT_LABELS", "Complaint", "FilterCall", "PluginFailure", "ScoreCall", "call_plugin", "caller", "failed"]

Complaint = Callable[[str, str, BaseException], None]
"""(plugin, extension point, exception): told once for every exception that a plugin raised."""


_FILTER, _SCORE = ExtensionPoint.FILTER.label, ExtensionPoint.SCORE.label
_NORMALIZE = "ScoreExtensionNormalize"
POINT_LABELS = {method: point.label for point in ExtensionPoint for method in point.methods} | {
    "unreserve": "Unreserve",
    "pre_bind_pre_flight": "PreBindPreFlight",
}
"""Method of a plugin to the name of its extension point in metrics."""


class PluginFailure(Exception):
    """A plugin answered with an Error status where the cycle cannot go on."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.message)
        self.status = status


def call_plugin(plugin: Plugin, method: str, complain: Complaint, *arguments: Any) -> Any:
    """Call a method; an exception becomes an Error status said by the plugin."""
    try:
        answer = getattr(plugin, method)(*arguments)
    except Exception as exception:
        return failed(plugin, method, complain, exception)
    return answer.by(plugin.name) if isinstance(answer, Status) else answer


def caller(state: CycleState) -> Callable[..., Any]:
    """How to call the plugins of a cycle: `call_plugin`, with the clock at hand where the cycle is measured."""
    return call_plugin if state.times is None else partial(_call_timed, state.times)


def _call_timed(times: PluginTimes, plugin: Plugin, method: str, complain: Complaint, *arguments: Any) -> Any:
    return times.ask(plugin.name, POINT_LABELS[method], call_plugin, plugin, method, complain, *arguments)


def failed(plugin: Plugin, method: str, complain: Complaint, exception: Exception) -> Status:
    """Report an exception and turn it into an Error status said by the plugin."""
    complain(plugin.name, method, exception)
    return _failure(exception).by(plugin.name)


def _failure(exception: BaseException) -> Status:
    return Error(f"{type(exception).__name__}: {exception}", exception=exception)


class FilterCall:
    """A filter plugin in column form and in one-node form, whichever it defines."""

    __slots__ = (
        "_accepts_all",
        "_complain",
        "_statuses",
        "depends",
        "has_columns",
        "has_failed",
        "has_glance",
        "has_one",
        "name",
        "plugin",
        "rank",
        "times",
        "vetted",
    )
    has_any_failed: ClassVar[bool] = False
    """Whether any filter ever answered with an Error: while none did, nobody has to look at each."""

    def __init__(self, plugin: Plugin, rank: int, complain: Complaint) -> None:
        self.plugin = plugin
        self.name = plugin.name
        self.rank = rank
        self.depends = plugin.depends if plugin.filter_depends is None else plugin.filter_depends
        self.has_one = defines(plugin, "filter")
        self._accepts_all = plugin.accepts_all if defines(plugin, "accepts_all") else None
        self.has_glance = self._accepts_all is not None
        self.has_columns = defines(plugin, "filter_nodes")
        self.has_failed = False
        """Whether an answer was ever an Error; only then are remembered columns searched for one."""
        self.vetted: tuple[Status, ...] | None = None
        """Statuses of an answer that were looked at: each of them rejects."""
        self._statuses = StatusTable()
        self._complain = complain
        self.times: PluginTimes | None = None
        """Set while a cycle is measured."""

    def note_failure(self) -> None:
        self.has_failed = FilterCall.has_any_failed = True

    def accepts_all(self, pod: PodInfo, nodes: NodeColumns) -> bool:
        """Whether it is known without a look at each that every node passes, those not at issue included."""
        if self._accepts_all is None:
            return False
        if self.times is not None:
            return self.times.ask_once(self, _FILTER, self.accepts_all, pod, nodes)
        try:
            return self._accepts_all(pod, nodes)
        except Exception:
            # Whatever is wrong will be said where it is reported: when the filter is asked.
            return False

    def verdicts(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Verdicts:
        if self.times is not None:
            return self.times.ask_once(self, _FILTER, self.verdicts, state, pod, nodes)
        if not self.has_columns:
            return self._lifted(state, pod, nodes)
        try:
            verdicts: Verdicts = self.plugin.filter_nodes(state, pod, nodes)
        except Exception as exception:
            self._complain(self.name, "filter_nodes", exception)
            self.note_failure()
            return Verdicts(np.ones(len(nodes), dtype=np.int32), (SUCCESS, _failure(exception)).__getitem__)
        return verdicts

    def one(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        """One node. Only for plugins that define `filter`."""
        if self.times is not None:
            return self.times.ask_once(self, _FILTER, self.one, state, pod, node)
        try:
            status: Status | None = self.plugin.filter(state, pod, node)
        except Exception as exception:
            return self.raised(exception)
        if status is not None and not status.is_rejected and not status.is_success:
            self.note_failure()
        return status

    def raised(self, exception: Exception) -> Status:
        """Report what `filter` raised; the status that it counts as."""
        self._complain(self.name, "filter", exception)
        self.note_failure()
        return _failure(exception)

    def _lifted(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Verdicts:
        ids = np.zeros(len(nodes), dtype=np.int32)
        number, one = self._statuses.number, self.one
        for position, info in enumerate(nodes.infos()):
            if info is not None:
                status = one(state, pod, info)
                if status is not None:
                    ids[position] = number(status)
        return Verdicts(ids, self._statuses.status)


class ScoreCall:
    """A score plugin in column form and in one-node form, with its weight and normaliser."""

    __slots__ = (
        "_by_value",
        "_complain",
        "depends",
        "has_columns",
        "has_one",
        "is_remembered",
        "name",
        "normalize",
        "normalizer",
        "plugin",
        "times",
        "weight",
    )

    def __init__(self, plugin: Plugin, weight: int, complain: Complaint) -> None:
        self.plugin = plugin
        self.name = plugin.name
        self.weight = weight
        self.depends = plugin.depends if plugin.score_depends is None else plugin.score_depends
        self.has_one = defines(plugin, "score")
        self.has_columns = defines(plugin, "score_nodes")
        self._by_value = plugin.score_by_value if defines(plugin, "score_by_value") else None
        self.normalize = plugin.normalize if defines(plugin, "normalize") else None
        self.normalizer: Normalizer | None = self.normalize if isinstance(self.normalize, Normalizer) else None
        self.is_remembered = self.depends is not Depends.CLUSTER and (
            self.normalize is None or self.normalizer is not None
        )
        """Whether the final score of a row can be mended alone: no normaliser, or one with known bounds."""
        self._complain = complain
        self.times: PluginTimes | None = None
        """Set while a cycle is measured."""

    def raw(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Int64N:
        if self.times is not None:
            return self.times.ask_once(self, _SCORE, self.raw, state, pod, nodes)
        try:
            if self.has_columns:
                scores: Int64N = self.plugin.score_nodes(state, pod, nodes)
                return scores if scores.dtype == np.int64 else scores.astype(np.int64)
            return self._lifted(state, pod, nodes)
        except PluginFailure:
            raise
        except Exception as exception:
            self._complain(self.name, "score", exception)
            raise self._refused(f"{type(exception).__name__}: {exception}", exception) from exception

    def by_value(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> ByValue | None:
        """What `raw` would say, by the values of a label; None where the plugin must be asked for all nodes."""
        if self._by_value is None:
            return None
        if self.times is not None:
            return self.times.ask_once(self, _SCORE, self.by_value, state, pod, nodes)
        try:
            return self._by_value(state, pod, nodes)
        except Exception:
            # Whatever is wrong will be said where it is reported: when the plugin is asked for all nodes.
            return None

    def one(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        if self.times is not None:
            return self.times.ask_once(self, _SCORE, self.one, state, pod, node)
        try:
            score: int = self.plugin.score(state, pod, node)
        except Exception as exception:
            self._complain(self.name, "score", exception)
            raise self._refused(f"{type(exception).__name__}: {exception}", exception) from exception
        return score

    def normalized(self, state: CycleState, pod: PodInfo, scores: Int64N) -> Int64N:
        if self.normalize is None or not len(scores):
            return scores
        if self.times is not None:
            return self.times.ask_once(self, _NORMALIZE, self.normalized, state, pod, scores)
        try:
            result: Int64N = np.asarray(self.normalize(state, pod, scores), dtype=np.int64)
        except Exception as exception:
            self._complain(self.name, "normalize", exception)
            raise self._refused(f"{type(exception).__name__}: {exception}", exception) from exception
        return result

    def share(self, state: CycleState, pod: PodInfo, raw: Int64N, dtype: Any) -> Any:
        """Normalised over these nodes, checked and weighted."""
        normalizer = self.normalizer
        if normalizer is not None and normalizer.takes_negative and self.times is None and len(raw):
            return normalizer.weighted(raw, normalizer.bounds(raw), self.weight, dtype)
        scores = self.normalized(state, pod, raw)
        self.check(scores)
        return (scores if self.weight == 1 else scores * self.weight).astype(dtype)

    def check(self, scores: Int64N) -> None:
        """Scores must be within 0 to 100 once normalised."""
        # Read without a sign, numbers below zero are the largest of all: one pass finds both kinds.
        if len(scores) and int(scores.view(np.uint64).max()) > MAX_NODE_SCORE:
            bad = int(scores[(scores < 0) | (scores > 100)][0])
            reason = f'plugin "{self.name}" returns an invalid score {bad}, '
            reason += "it should in the range of [0, 100] after normalizing"
            raise PluginFailure(Error(f"running Score plugins: {reason}").by(self.name))

    def _refused(self, text: str, exception: BaseException) -> PluginFailure:
        reason = f'running Score plugins: plugin "{self.name}" failed with: {text}'
        return PluginFailure(Error(reason, exception=exception).by(self.name))

    def _lifted(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Int64N:
        one = self.plugin.score
        scores = [0 if info is None else one(state, pod, info) for info in nodes.infos()]
        return np.array(scores, dtype=np.int64)
