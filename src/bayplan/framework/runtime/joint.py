"""A joint score at work: asked as one, or plugin by plugin where it has no answer."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping

from bayplan.cluster.node_columns import NodeColumns
from bayplan.cluster.node_info import NodeInfo
from bayplan.cluster.pod_info import PodInfo
from bayplan.framework.cycle import CycleState
from bayplan.framework.plugin import Plugin
from bayplan.framework.points import ExtensionPoint
from bayplan.framework.promises import CombinedScore, Depends, Shares, Totals
from bayplan.framework.runtime.call import Complaint, ScoreCall
from bayplan.framework.status import Code
from bayplan.framework.times import PluginTimes

__all__ = ["JointCall", "joined"]

_NO_STATE = CycleState()


def joined(calls: list[ScoreCall], complain: Complaint) -> list[JointCall]:
    """The joint scores that plugins offer; a score is part of one at most."""
    scores: dict[str, tuple[Plugin, int]] = {call.name: (call.plugin, call.weight) for call in calls}
    found: list[JointCall] = []
    for call in calls:
        joint = call.plugin.combine_scores(scores) if call.name in scores else None
        if joint is not None and all(name in scores for name in joint.members):
            members = {call.name: call for call in calls if call.name in joint.members}
            if all(_can_be_joined(call) for call in members.values()):
                found.append(JointCall(joint, members, complain))
                for name in members:
                    del scores[name]
    return found


def _can_be_joined(call: ScoreCall) -> bool:
    return call.depends in (Depends.USE, Depends.ROW) and call.normalize is None and call.plugin.is_within_bounds


class JointCall:
    __slots__ = ("_complain", "_first", "_joint", "_name", "calls", "members", "sign")

    def __init__(self, joint: CombinedScore, members: Mapping[str, ScoreCall], complain: Complaint) -> None:
        self._joint = joint
        self.sign: Callable[[PodInfo], Hashable] = joint.sign
        self._complain = complain
        self.members = dict(members)
        self.calls = [self.members[name] for name in joint.members]
        self._name = " and ".join(self.members)
        self._first = self.calls[0]

    def totals(self, pod: PodInfo, nodes: NodeColumns, out: Totals, first: Shares) -> None:
        times = self._first.times
        began = 0.0 if times is None else times.monotonic()
        try:
            has_answer = self._joint.totals(pod, nodes, out, first)
        except Exception as exception:
            self._complain(self._name, "score", exception)
            has_answer = False
        if not has_answer:
            out[:] = 0
            for call in self.calls:
                raw = call.raw(_NO_STATE, pod, nodes)
                out += (raw * call.weight).astype(out.dtype)
                if call is self._first:
                    first[:] = raw
        elif times is not None:
            self._share(times, times.monotonic() - began)

    def _share(self, times: PluginTimes, seconds: float) -> None:
        """Nobody can tell whose the time was: each plugin gets its share."""
        for call in self.calls:
            times.add(call.name, ExtensionPoint.SCORE.label, Code.SUCCESS.label, seconds / len(self.calls))

    def one(self, pod: PodInfo, node: NodeInfo) -> tuple[int, int]:
        """The sum for one node, and the score of the first of `calls` without its weight."""
        # A cycle in which times are taken asks each plugin: reading the clock costs as much as the sum of both.
        total = None if self._first.times is not None else self._joint.total(pod, node)
        if total is None:
            scores = [call.one(_NO_STATE, pod, node) for call in self.calls]
            total = sum(score * call.weight for score, call in zip(scores, self.calls, strict=True)), scores[0]
        return total

    def parts(self, pod: PodInfo, node: NodeInfo, total: int, first: int) -> list[int]:
        """The score of each of `calls` for one node, from what `totals` or `one` said of it."""
        if len(self.calls) == 2 and self.calls[1].weight:
            return [first, (total - first * self._first.weight) // self.calls[1].weight]
        return [call.one(_NO_STATE, pod, node) for call in self.calls]
