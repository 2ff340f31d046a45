"""A combined score at work: computed in one pass, or plugin by plugin where it has no answer."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import numpy as np

from bayplan.cluster.node_columns import NodeColumns
from bayplan.cluster.node_info import NodeInfo
from bayplan.cluster.node_table import NodeTable
from bayplan.cluster.pod_info import PodInfo
from bayplan.framework.cycle import CycleState
from bayplan.framework.plugin import Plugin
from bayplan.framework.points import ExtensionPoint
from bayplan.framework.promises import UNSIGNED, CombinedScore, Depends, Shares, Totals
from bayplan.framework.runtime.call import Complaint, call_promise
from bayplan.framework.runtime.node_calls import ScoreCall
from bayplan.framework.status import Code
from bayplan.framework.times import PluginTimes

__all__ = ["CombinedScoreCall", "combined_scores"]

_NO_STATE = CycleState()


def combined_scores(calls: list[ScoreCall], complain: Complaint) -> list[CombinedScoreCall]:
    """The combined scores that plugins offer; a score is part of one at most."""
    scores: dict[str, tuple[Plugin, int]] = {call.name: (call.plugin, call.weight) for call in calls}
    found: list[CombinedScoreCall] = []
    for call in calls:
        offered = call_promise(call.plugin, "combine_scores", complain, scores) if call.name in scores else None
        if offered is not None and all(name in scores for name in offered.members):
            members = {call.name: call for call in calls if call.name in offered.members}
            if all(_can_be_combined(call) for call in members.values()):
                found.append(CombinedScoreCall(offered, members, complain))
                for name in members:
                    del scores[name]
    return found


def _can_be_combined(call: ScoreCall) -> bool:
    return call.depends in (Depends.USE, Depends.ROW) and call.normalize is None and call.plugin.is_within_bounds


class CombinedScoreCall:
    __slots__ = ("_combined", "_complain", "_first", "_name", "calls", "members")

    def __init__(self, combined: CombinedScore, members: Mapping[str, ScoreCall], complain: Complaint) -> None:
        self._combined = combined
        self._complain = complain
        self.members = dict(members)
        self.calls = [self.members[name] for name in combined.members]
        self._name = " and ".join(self.members)
        self._first = self.calls[0]

    def sign(self, pod: PodInfo) -> Hashable:
        """What of the pod the sum depends on."""
        try:
            return self._combined.sign(pod)
        except Exception as exception:
            self._complain(self._name, "combine_scores", exception)
            return UNSIGNED

    def totals(self, pod: PodInfo, nodes: NodeColumns, out: Totals, first: Shares | None) -> None:
        times = self._first.times
        began = 0.0 if times is None else times.monotonic()
        try:
            has_answer = self._combined.totals(pod, nodes, out, first)
        except Exception as exception:
            self._complain(self._name, "combine_scores", exception)
            has_answer = False
        if not has_answer:
            out[:] = 0
            for call in self.calls:
                raw = call.raw(_NO_STATE, pod, nodes)
                out += (raw * call.weight).astype(out.dtype)
                if first is not None and call is self._first:
                    first[:] = raw
        elif times is not None:
            self._share(times, times.monotonic() - began)

    def _share(self, times: PluginTimes, seconds: float) -> None:
        """Divide the time of one pass evenly among the plugins."""
        for call in self.calls:
            times.add(call.name, ExtensionPoint.SCORE.label, Code.SUCCESS.label, seconds / len(self.calls))

    def one(self, pod: PodInfo, node: NodeInfo) -> tuple[int, int]:
        """The sum for one node, and the score of the first of `calls` without its weight."""
        # A measured cycle scores by plugin: reading the clock costs as much as the sum of both.
        if self._first.times is None:
            try:
                found = self._combined.total(pod, node)
                if found is not None:
                    return found
            except Exception as exception:
                self._complain(self._name, "combine_scores", exception)
        scores = [call.one(_NO_STATE, pod, node) for call in self.calls]
        return sum(score * call.weight for score, call in zip(scores, self.calls, strict=True)), scores[0]

    def learn(self, pod: PodInfo, table: NodeTable, first: Shares, row: int | None) -> None:
        """Write the scores of the first of `calls` for one row, or for all."""
        if row is not None:
            first[row] = self.one(pod, table.at(row))[1]
            return
        nodes = NodeColumns(table)
        self.totals(pod, nodes, np.empty(len(nodes), dtype=np.int32), first[: table.size])

    def parts(self, pod: PodInfo, node: NodeInfo, total: int, first: int) -> list[int]:
        """The score of each of `calls` for one node, from the results of `totals` or `one`."""
        if len(self.calls) == 2 and self.calls[1].weight:
            return [first, (total - first * self._first.weight) // self.calls[1].weight]
        return [call.one(_NO_STATE, pod, node) for call in self.calls]
