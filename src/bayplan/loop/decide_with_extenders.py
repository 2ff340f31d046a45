"""Deciding with extenders: the decision stays a plain function, and the waiting happens around it.

A decision that needs an answer of an extender and does not have it ends with `Unanswered`. The request is sent while
the event loop goes on; then the pod is decided again from the start, on the cluster as it is by then, with the answers
so far. So the last run never waits, and the state that it decides on is current.

    decide ──▶ Unanswered ──▶ request (await) ──▶ decide ──▶ … ──▶ Decision

An answer covers the nodes of its request. Nodes that became feasible since are requested as well, up to three times;
after that the decision is made among the nodes that have an answer, as in a scheduler that requests only once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import structlog

from bayplan.api.node import Node
from bayplan.cluster.axes import Int64N, Rows
from bayplan.cluster.pod_info import PodInfo
from bayplan.cluster.state import ClusterState
from bayplan.framework.runtime.call import PluginFailure, Suspension
from bayplan.framework.status import Error, Status, Unresolvable, Unschedulable
from bayplan.loop.decide import Decider, Decision, decide
from bayplan.loop.extender import Extender
from bayplan.preemption.candidates import Candidate

__all__ = ["EXTENDER", "ExtenderAnswers", "Extenders", "decide_with_extenders"]

_log = structlog.get_logger()
EXTENDER = "Extender"
"""The name under which extenders reject pods."""
_MOST_QUESTIONS = 3
"""Of one kind, for one pod, in one attempt."""


class Unanswered(Suspension):
    """Ends a decision that cannot go on without an answer."""

    def __init__(self, ask: Callable[[], Awaitable[None]]) -> None:
        super().__init__("an answer of an extender is missing")
        self.ask = ask


class Extenders:
    """All extenders of a configuration in the order of their requests: those that are not ignorable first."""

    def __init__(self, extenders: Sequence[Extender], cluster: ClusterState) -> None:
        self.all = tuple(sorted(extenders, key=lambda extender: extender.is_ignorable))
        self.cluster = cluster
        self.current: ExtenderAnswers | None = None
        """The answers of the decision under way, for the plugin that preempts."""

    async def bind(self, pod: PodInfo, node_name: str) -> bool:
        """Whether an extender bound the pod; False when none binds it. Raises when the one that should fails."""
        for extender in self.all:
            if not extender.bind_verb or not extender.is_interested(pod):
                continue
            try:
                await extender.bind(pod, node_name)
            except Exception as error:
                if not extender.is_ignorable:
                    raise
                _skip(extender, "bind", pod, error)
                continue
            return True
        return False


async def decide_with_extenders(
    extenders: Extenders, decider: Decider, pod: PodInfo, *, is_wanted: Callable[[], bool] = lambda: True
) -> Decision | None:
    """As `decide`, with requests to extenders in between; None once the pod is no longer wanted."""
    answers = ExtenderAnswers(extenders, pod)
    asking = replace(decider, extenders=(answers,))
    while is_wanted():
        extenders.current = answers
        answers.start_over()
        try:
            return decide(asking, pod)
        except Unanswered as unanswered:
            question = unanswered.ask
        finally:
            extenders.current = None
        await question()
    return None


@dataclass(slots=True, eq=False)
class _Filtering:
    """The answer about some nodes."""

    asked: frozenset[str]
    refused: dict[str, Status] = field(default_factory=dict)
    kept: frozenset[str] = frozenset()
    failure: Status | None = None


@dataclass(slots=True)
class _Scoring:
    asked: frozenset[str]
    added: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class _Preempting:
    asked: frozenset[str]
    agreed: dict[str, Candidate] = field(default_factory=dict)
    failure: str = ""


class ExtenderAnswers:
    """The answers so far in one attempt for one pod. Implements `decide.ExtenderPort` for all extenders at once."""

    def __init__(self, extenders: Extenders, pod: PodInfo) -> None:
        self._pod = pod
        self._table = extenders.cluster.nodes
        self._interested = [extender for extender in extenders.all if extender.is_interested(pod)]
        self._filtering: list[_Filtering] = []
        self._failed: list[_Filtering] = []
        """Failed answers that this run has used already; a further request is made for the same nodes."""
        self._scoring: list[_Scoring] = []
        self._preempting: list[_Preempting] = []

    def start_over(self) -> None:
        """Decide again from the start, with the answers so far."""
        self._failed.clear()

    # filter

    def filter(self, pod: PodInfo, rows: Rows) -> tuple[Rows, list[tuple[Status, Rows]]]:
        filters = [extender for extender in self._interested if extender.filter_verb]
        if not filters or not len(rows):
            return rows, []
        names = self._names(rows)
        answer = next((a for a in self._filtering if a.asked.issuperset(names) and a not in self._failed), None)
        if answer is None:
            if len(self._filtering) < _MOST_QUESTIONS:
                raise Unanswered(lambda: self._ask_filters(filters, names))
            answer = self._filtering[-1]
        if answer.failure is not None:
            self._failed.append(answer)
            raise PluginFailure(answer.failure)
        return self._split(rows, names, answer)

    def _split(self, rows: Rows, names: list[str], answer: _Filtering) -> tuple[Rows, list[tuple[Status, Rows]]]:
        kept = [row for row, name in zip(rows.tolist(), names, strict=True) if name in answer.kept]
        refused: dict[Status, list[int]] = {}
        for row, name in zip(rows.tolist(), names, strict=True):
            if name in answer.refused:
                refused.setdefault(answer.refused[name], []).append(row)
        return np.array(kept, dtype=np.intp), [(s, np.array(group, dtype=np.intp)) for s, group in refused.items()]

    async def _ask_filters(self, filters: list[Extender], names: list[str]) -> None:
        """One after the other, each with the nodes that the ones before kept."""
        answer = _Filtering(frozenset(names))
        self._filtering.append(answer)
        left = names
        for extender in filters:
            if not left:
                break
            try:
                filtered = await extender.filter(self._pod, self._nodes(left))
            except Exception as error:
                if not extender.is_ignorable:
                    answer.failure = Error(str(error), exception=error).by(EXTENDER)
                    _log.warning("an extender failed", extender=extender.name, pod=self._pod.key, error=str(error))
                    return
                _skip(extender, "filter", self._pod, error)
                continue
            for name, message in filtered.failed.items():
                answer.refused[name] = Unschedulable(message).by(EXTENDER)
            for name, message in filtered.unresolvable.items():
                answer.refused[name] = Unresolvable(message).by(EXTENDER)
            kept = set(filtered.kept)
            left = [name for name in left if name in kept]
        answer.kept = frozenset(left)

    # prioritize

    def prioritize(self, pod: PodInfo, rows: Rows) -> Int64N | None:
        scorers = [extender for extender in self._interested if extender.prioritize_verb]
        if not scorers:
            return None
        names = self._names(rows)
        answer = next((a for a in self._scoring if a.asked.issuperset(names)), None)
        if answer is None:
            if len(self._scoring) < _MOST_QUESTIONS:
                raise Unanswered(lambda: self._ask_scores(scorers, names))
            answer = self._scoring[-1]
        return np.array([answer.added.get(name, 0) for name in names], dtype=np.int64)

    async def _ask_scores(self, scorers: list[Extender], names: list[str]) -> None:
        """All at once; an extender that fails adds nothing."""
        answer = _Scoring(frozenset(names))
        self._scoring.append(answer)
        nodes = self._nodes(names)
        results = await asyncio.gather(
            *(extender.prioritize(self._pod, nodes) for extender in scorers), return_exceptions=True
        )
        for extender, result in zip(scorers, results, strict=True):
            if isinstance(result, BaseException):
                if not isinstance(result, Exception):
                    raise result
                _skip(extender, "prioritize", self._pod, result)
                continue
            for name, amount in result.items():
                answer.added[name] = answer.added.get(name, 0) + amount

    # preempt

    def preempt(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """The candidates that the extenders agree with. Raises ValueError when one that must answer does not."""
        asked = [extender for extender in self._interested if extender.preempt_verb]
        if not asked or not candidates:
            return list(candidates)
        by_name = {candidate.node_name: candidate for candidate in candidates}
        answer = next((a for a in self._preempting if a.asked.issuperset(by_name)), None)
        if answer is None:
            if len(self._preempting) < _MOST_QUESTIONS:
                raise Unanswered(lambda: self._ask_preemption(asked, by_name))
            answer = self._preempting[-1]
        if answer.failure:
            raise ValueError(answer.failure)
        return [answer.agreed[name] for name in by_name if name in answer.agreed]

    async def _ask_preemption(self, asked: list[Extender], candidates: dict[str, Candidate]) -> None:
        answer = _Preempting(frozenset(candidates))
        self._preempting.append(answer)
        left = candidates
        for extender in asked:
            if not left:
                break
            try:
                agreed = await extender.preempt(self._pod, left, self._table.info)
                left = self._with_victims(extender, agreed)
            except Exception as error:
                if not extender.is_ignorable:
                    answer.failure = str(error)
                    return
                _skip(extender, "preempt", self._pod, error)
        answer.agreed = left

    def _with_victims(self, extender: Extender, agreed: dict[str, Candidate]) -> dict[str, Candidate]:
        for name, candidate in agreed.items():
            if not candidate.victims and not extender.is_ignorable:
                raise ValueError(f'expected at least one victim pod on node "{name}"')
        return {name: candidate for name, candidate in agreed.items() if candidate.victims}

    # Rows and names

    def _names(self, rows: Rows) -> list[str]:
        return [self._table.at(row).name for row in rows.tolist()]

    def _nodes(self, names: Sequence[str]) -> dict[str, Node]:
        """Nodes that still exist: one may have been deleted while an earlier extender answered."""
        infos = ((name, self._table.info(name)) for name in names)
        return {name: info.node for name, info in infos if info is not None}


def _skip(extender: Extender, verb: str, pod: PodInfo, error: BaseException) -> None:
    _log.warning("an extender failed and is ignored", extender=extender.name, verb=verb, pod=pod.key, error=str(error))
