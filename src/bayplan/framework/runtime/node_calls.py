"""Filter and Score plugins as the engine calls them: in column form or node by node, whichever they define.

The rules are those of `call`: an exception and a wrong answer become a complaint and an Error status. They are written
out here because these methods run for every node.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from bayplan.cluster.axes import Int64N
from bayplan.cluster.node_columns import NodeColumns
from bayplan.cluster.node_info import NodeInfo
from bayplan.cluster.pod_info import PodInfo
from bayplan.framework.answers import check_answer
from bayplan.framework.cycle import CycleState
from bayplan.framework.normalize import MAX_NODE_SCORE, Normalizer
from bayplan.framework.plugin import Plugin
from bayplan.framework.points import ExtensionPoint, defines
from bayplan.framework.promises import ByValue, Depends
from bayplan.framework.reading import Premises, reading_of, stated_depends
from bayplan.framework.runtime.call import (
    Complaint,
    KeptScoreFailure,
    PluginFailure,
    error_status,
    failed,
    not_given,
)
from bayplan.framework.status import SUCCESS, Error, Status, reason_of
from bayplan.framework.times import PluginTimes
from bayplan.framework.verdicts import StatusTable, Verdicts

__all__ = ["FilterCall", "ScoreCall", "checked", "explained"]

_FILTER, _SCORE = ExtensionPoint.FILTER.label, ExtensionPoint.SCORE.label
_MOST_STATUSES = 4096
"""A plugin whose reasons name the pod has new ones for every pod."""
_NORMALIZE = "ScoreExtensionNormalize"
_INTS = {int}
_INT64 = np.iinfo(np.int64)


def checked(status: Status) -> Status:
    """A filter may reject; anything else ends the cycle."""
    status = explained(status)
    if not status.is_rejected:
        raise PluginFailure(status)
    return status


def explained(status: Status) -> Status:
    """A rejection as it is; anything else as the failure of the filter that it is."""
    if status.is_rejected:
        return status
    reason = f'running "{status.plugin}" filter plugin: {reason_of(status)}'
    return Error(reason, exception=status.exception).by(status.plugin)


class FilterCall:
    """A filter plugin in column form and in one-node form, whichever it defines."""

    __slots__ = (
        "_complain",
        "_statuses",
        "depends",
        "has_accepts_all",
        "has_columns",
        "has_failed",
        "has_one",
        "name",
        "plugin",
        "premises",
        "rank",
        "times",
        "vetted",
    )
    has_any_failed: ClassVar[bool] = False
    """Whether any filter ever answered with an Error: until then, kept answers need no search for errors."""

    def __init__(self, plugin: Plugin, rank: int, complain: Complaint) -> None:
        self.plugin = plugin
        self.name = plugin.name
        self.rank = rank
        self.depends, self.premises = _kept_by(plugin, "filter")
        self.has_one = defines(plugin, "filter")
        self.has_columns = defines(plugin, "filter_nodes")
        self.has_accepts_all = defines(plugin, "accepts_all")
        self.has_failed = False
        """Whether an answer was ever an Error; only then are kept columns searched for one."""
        self.vetted: tuple[Status, ...] | None = None
        """Statuses of an answer that were checked: each of them rejects."""
        self._statuses = StatusTable()
        self._complain = complain
        self.times: PluginTimes | None = None
        """Set while a cycle is measured."""

    def withdraw(self) -> None:
        """Compute this filter for every decision from now on: what was derived from its code does not hold."""
        self.depends, self.premises = Depends.CLUSTER, None
        self.plugin.version += 1

    def note_failure(self) -> None:
        self.has_failed = FilterCall.has_any_failed = True

    def accepts_all(self, pod: PodInfo, nodes: NodeColumns) -> bool:
        """Whether the plugin promises that every node passes, those not in `nodes` included."""
        if not self.has_accepts_all:
            return False
        if self.times is not None:
            return self.times.measure_once(self, _FILTER, self.accepts_all, pod, nodes)
        try:
            answer: Any = self.plugin.accepts_all(pod, nodes)
            if answer is not True and answer is not False:
                check_answer(self.name, "accepts_all", answer)
        except BaseException as exception:
            answer = not_given(self.plugin, "accepts_all", self._complain, exception, pod, nodes)
        return bool(answer)

    def verdicts(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Verdicts:
        """The verdict on each position."""
        if self.times is not None:
            return self.times.measure_once(self, _FILTER, self.verdicts, state, pod, nodes)
        if not self.has_columns:
            return self._node_by_node(state, pod, nodes)
        try:
            verdicts = self.plugin.filter_nodes(state, pod, nodes)
            if type(verdicts) is not Verdicts:
                check_answer(self.name, "filter_nodes", verdicts)
            ids = verdicts.ids
            if type(ids) is not np.ndarray or ids.dtype.kind not in "iub" or ids.shape != (len(nodes),):
                raise _wrong_column(self.name, "filter_nodes", ids, len(nodes))
        except BaseException as exception:
            status = self.raised(exception, "filter_nodes")
            return Verdicts(np.ones(len(nodes), dtype=np.int32), (SUCCESS, status).__getitem__)
        return verdicts

    def status_of(self, lookup: Callable[[int], Status], number: int) -> Status:
        """What a number in an answer stands for, with the plugin's name; an Error where the plugin does not say."""
        try:
            status: object = lookup(number)
            if isinstance(status, Status):
                return status.by(self.name)
            raise TypeError(f"plugin `{self.name}`: `filter_nodes` has {status!r:.60} for {number}, not a `Status`")
        except BaseException as exception:
            return self.raised(exception, "filter_nodes")

    def one(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        """The answer for one node. Only for plugins that define `filter`."""
        if self.times is not None:
            return self.times.measure_once(self, _FILTER, self.one, state, pod, node)
        try:
            status = self.plugin.filter(state, pod, node)
            if status is None:
                return None
            if type(status) is not Status:
                check_answer(self.name, "filter", status)
        except BaseException as exception:
            return self.raised(exception)
        if not status.is_rejected and not status.is_success:
            self.note_failure()
        return status

    def raised(self, exception: BaseException, method: str = "filter") -> Status:
        """Report an exception; the status that it counts as."""
        self.note_failure()
        return failed(self.plugin, method, self._complain, exception)

    def _node_by_node(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Verdicts:
        if len(self._statuses) > _MOST_STATUSES:
            # Answers that are kept refer to the table that they were made with.
            self._statuses = StatusTable()
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
        "_complain",
        "_has_by_value",
        "_may_withdraw",
        "depends",
        "has_columns",
        "has_one",
        "is_remembered",
        "name",
        "normalize",
        "normalizer",
        "plugin",
        "premises",
        "times",
        "weight",
    )

    def __init__(self, plugin: Plugin, weight: int, complain: Complaint) -> None:
        self.plugin = plugin
        self.name = plugin.name
        self.weight = weight
        self.depends, self.premises = _kept_by(plugin, "score")
        self.has_one = defines(plugin, "score")
        self.has_columns = defines(plugin, "score_nodes")
        self._has_by_value = defines(plugin, "score_by_value")
        self.normalize = plugin.normalize if defines(plugin, "normalize") else None
        self.normalizer: Normalizer | None = self.normalize if isinstance(self.normalize, Normalizer) else None
        self.is_remembered = self.depends is not Depends.CLUSTER and (
            self.normalize is None or self.normalizer is not None
        )
        """Whether the final score of one row can be updated alone: no normaliser, or one with known bounds."""
        self._may_withdraw = self.premises is not None
        self._complain = complain
        self.times: PluginTimes | None = None
        """Set while a cycle is measured."""

    @property
    def keeps_raw(self) -> bool:
        """Whether raw scores are kept although the plugin normalises them, in its own way, in every decision."""
        return self.depends is not Depends.CLUSTER and not self.is_remembered

    def raw(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Int64N:
        """The raw score of each position."""
        if self.times is not None:
            return self.times.measure_once(self, _SCORE, self.raw, state, pod, nodes)
        if not self.has_columns:
            return self._node_by_node(state, pod, nodes)
        try:
            return self._whole("score_nodes", self.plugin.score_nodes(state, pod, nodes), len(nodes))
        except BaseException as exception:
            raise self._failure("score_nodes", exception) from exception

    def by_value(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> ByValue | None:
        """The scores by the values of a label; None where the plugin has to score each node."""
        if not self._has_by_value:
            return None
        if self.times is not None:
            return self.times.measure_once(self, _SCORE, self.by_value, state, pod, nodes)
        try:
            found = self.plugin.score_by_value(state, pod, nodes)
            if found is not None and type(found) is not ByValue:
                check_answer(self.name, "score_by_value", found)
        except BaseException as exception:
            found = not_given(self.plugin, "score_by_value", self._complain, exception, state, pod, nodes)
        return found

    def one(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        """The raw score of one node."""
        if self.times is not None:
            return self.times.measure_once(self, _SCORE, self.one, state, pod, node)
        try:
            score = self.plugin.score(state, pod, node)
            if type(score) is not int:
                check_answer(self.name, "score", score)
            if not _INT64.min <= score <= _INT64.max:
                raise OverflowError(f"plugin `{self.name}`: the score {score} does not fit into 64 bits")
        except BaseException as exception:
            raise self._failure("score", exception) from exception
        return score

    def normalized(self, state: CycleState, pod: PodInfo, scores: Int64N) -> Int64N:
        """The scores after the plugin's `normalize`."""
        if self.normalize is None or not len(scores):
            return scores
        if self.times is not None:
            return self.times.measure_once(self, _NORMALIZE, self.normalized, state, pod, scores)
        try:
            return self._whole("normalize", self.normalize(state, pod, scores), len(scores))
        except BaseException as exception:
            raise self._failure("normalize", exception) from exception

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

    def _whole(self, method: str, scores: Int64N, length: int) -> Int64N:
        """An array of as many whole numbers; a wrong answer otherwise."""
        if type(scores) is not np.ndarray or scores.dtype.kind not in "iu" or scores.shape != (length,):
            check_answer(self.name, method, scores)
            raise _wrong_column(self.name, method, scores, length)
        return scores if scores.dtype == np.int64 else scores.astype(np.int64)

    def _failure(self, method: str, exception: BaseException) -> PluginFailure:
        """Report an exception; what to raise in its place."""
        if self._may_withdraw:
            # A kept column holds all nodes; without it, only those that pass the filters are scored, perhaps without
            # the failing one.
            self.withdraw()
            return KeptScoreFailure(Error(f'the kept scores of plugin "{self.name}" were withdrawn').by(self.name))
        failed(self.plugin, method, self._complain, exception)
        reason = f'running Score plugins: plugin "{self.name}" failed with: {error_status(exception).message}'
        return PluginFailure(Error(reason, exception=exception).by(self.name))

    def withdraw(self) -> None:
        """Compute this score for every decision from now on: what was derived from its code does not hold."""
        self.depends, self.premises, self.is_remembered, self._may_withdraw = Depends.CLUSTER, None, False, False
        self.plugin.version += 1

    def _node_by_node(self, state: CycleState, pod: PodInfo, nodes: NodeColumns) -> Int64N:
        score = self.plugin.score
        try:
            scores = [0 if info is None else score(state, pod, info) for info in nodes.infos()]
            if not _INTS.issuperset(map(type, scores)):
                for each in scores:
                    check_answer(self.name, "score", each)
            return np.array(scores, dtype=np.int64)
        except BaseException as exception:
            raise self._failure("score", exception) from exception


def _kept_by(plugin: Plugin, method: str) -> tuple[Depends, Premises | None]:
    """What answers depend on, and the premises of that; None where the author states it."""
    stated = stated_depends(plugin, method)
    if stated is not None:
        return stated, None
    found = reading_of(plugin, method)
    return found.depends, found.premises


def _wrong_column(plugin: str, method: str, column: Any, length: int) -> TypeError:
    """What is wrong with a column that does not hold one whole number for each node."""
    if type(column) is not np.ndarray:
        problem = f"answered with a {type(column).__name__}, expected a plain array of NumPy"
    elif column.dtype.kind not in "iu":
        problem = f"returned numbers of type {column.dtype}, expected int64"
    elif column.ndim != 1:
        problem = f"answered with an array of {column.ndim} dimensions, expected one"
    else:
        problem = f"answered for {len(column)} nodes, expected {length}"
    return TypeError(f"plugin `{plugin}`: `{method}` {problem}")
