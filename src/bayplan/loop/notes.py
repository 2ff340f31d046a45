"""Notes: attempts as the recorder keeps them, and the records that are made of them when they are read.

A note is positional and without words, because one is made for every pod. What it has in common with other notes
(filters, counts, points, failures) is shared, not copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import msgspec

from bayplan.framework.runtime.node_calls import FilterCall, ScoreCall
from bayplan.framework.times import PluginTimes
from bayplan.loop.points import Numbers, points_of
from bayplan.loop.record import (
    BY_POINTS,
    NOMINATION,
    ONLY_NODE,
    UNDER_WAY,
    DecisionRecord,
    History,
    PermitWait,
    PluginTook,
    Preemption,
    Refused,
    ScoredNode,
    Step,
)

__all__ = ["BEFORE_FILTERS", "Failure", "Note", "Restored", "funnel_of", "phases_of"]

BEFORE_FILTERS = "PreFilter"
"""Stands in a funnel for nodes that were left out before any filter looked at them."""
DRAWN = "drawn with the seed"


class Failure(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Nodes that were refused one by one or by extenders, and why an attempt found no node, if it did not."""

    refused: tuple[Refused, ...] = ()
    message: str = ""
    post_filter: str = ""
    nominated: str = ""


class Note(msgspec.Struct, gc=False):
    """An attempt as it is noted down: positional and without words, because this is made for every pod."""

    number: int
    time: float
    namespace: str
    name: str
    uid: str
    profile: str
    attempt: int
    history: History
    woken_by: str
    seconds: float
    generation: int
    nodes: int
    looked_at: int
    feasible: int
    node: str
    total: int
    ties: int
    filters: Sequence[FilterCall]
    rank_counts: Sequence[int]
    calls: Sequence[ScoreCall]
    chosen: Numbers
    runner_up: str
    runner_up_total: int
    others: Numbers
    failure: Failure | None
    marks: Sequence[tuple[str, float]]
    times: PluginTimes | None
    size: int
    preemption: Preemption | None = None
    permit: PermitWait | None = None
    outcome: str = UNDER_WAY
    outcome_seconds: float = 0.0
    stopped_at: str = ""
    stopped_by: str = ""
    error: str = ""
    scored: int = 0

    def record(self) -> DecisionRecord:
        failure = self.failure or _NO_FAILURE
        return DecisionRecord(
            number=self.number,
            time=self.time,
            pod=f"{self.namespace}/{self.name}",
            uid=self.uid,
            profile=self.profile,
            attempt=self.attempt,
            generation=self.generation,
            seconds=self.seconds,
            nodes=self.nodes,
            feasible=self.feasible,
            scored=self.scored,
            funnel=self._funnel(),
            node=self.node,
            chosen_by=self._chosen_by(),
            total=self.total,
            points=points_of(self.calls, self.chosen),
            runner_up=self._runner_up(),
            ties=self.ties,
            tie_break=DRAWN if self.ties > 1 else "",
            refused=failure.refused,
            message=failure.message or self.error,
            post_filter=failure.post_filter,
            nominated=failure.nominated,
            preemption=self.preemption,
            history=self.history,
            woken_by=self.woken_by,
            phases=phases_of(self.marks),
            times=self._times(),
            permit=self.permit,
            outcome=self.outcome,
            outcome_seconds=self.outcome_seconds,
            stopped_at=self.stopped_at,
            stopped_by=self.stopped_by,
            error=self.error,
        )

    def _chosen_by(self) -> str:
        if not self.node:
            return ""
        if self.chosen or (self.scored or self.feasible) > 1:
            # Without a plugin that scores it, nodes have as many points as each other: none.
            return BY_POINTS
        return NOMINATION if self.looked_at == 0 else ONLY_NODE

    def _runner_up(self) -> ScoredNode | None:
        if not self.runner_up:
            return None
        points = points_of(self.calls, self.others)
        return ScoredNode(node=self.runner_up, total=self.runner_up_total, points=points)

    def rejected(self) -> dict[str, int]:
        """By filter, how many nodes it was the first to reject."""
        counts = self.rank_counts
        found = {c.name: counts[c.rank] for c in self.filters if c.rank < len(counts) and counts[c.rank]}
        for group in self.failure.refused if self.failure is not None else ():
            name = group.plugin or BEFORE_FILTERS
            if name not in found or not counts:
                found[name] = found.get(name, 0) + group.count
        return found

    def _funnel(self) -> tuple[Step, ...]:
        if not self.looked_at and self.node:
            return ()
        rejected = self.rejected()
        if not self.looked_at:
            # No filter ran: what PreFilter said counts for every node.
            return funnel_of(rejected, [call.name for call in self.filters], self.nodes)
        left_out = self.nodes - self.looked_at
        if left_out > 0 and BEFORE_FILTERS not in rejected:
            rejected[BEFORE_FILTERS] = left_out
        return funnel_of(rejected, [call.name for call in self.filters], self.nodes)

    def _times(self) -> tuple[PluginTook, ...]:
        found = self.times.all() if self.times is not None else ()
        return tuple(PluginTook(plugin=time.plugin, point=time.point, seconds=time.seconds) for time in found)


class Restored(msgspec.Struct, gc=False):
    """An attempt of an earlier process."""

    past: DecisionRecord
    namespace: str
    name: str
    node: str
    size: int

    @property
    def uid(self) -> str:
        return self.past.uid

    @property
    def outcome(self) -> str:
        return self.past.outcome

    @property
    def preemption(self) -> Preemption | None:
        return self.past.preemption

    def record(self) -> DecisionRecord:
        return self.past

    def rejected(self) -> dict[str, int]:
        return {step.plugin: step.rejected for step in self.past.funnel}


_NO_FAILURE = Failure()


def phases_of(marks: Sequence[tuple[str, float]]) -> tuple[tuple[str, float], ...]:
    """From when each extension point ended to how long it took."""
    return tuple((phase, ended - began) for (_, began), (phase, ended) in pairwise(marks))


def funnel_of(rejected: dict[str, int], order: Sequence[str], nodes: int) -> tuple[Step, ...]:
    """Filters that rejected no node are left out; what is no filter (PreFilter, an extender) comes first or last."""
    known = {name: place for place, name in enumerate(order)}
    known[BEFORE_FILTERS] = -1
    left, steps = nodes, []
    for plugin in sorted(rejected, key=lambda name: known.get(name, len(order))):
        left -= rejected[plugin]
        steps.append(Step(plugin=plugin, rejected=rejected[plugin], left=max(left, 0)))
    return tuple(steps)
