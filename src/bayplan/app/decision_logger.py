"""What the scheduler does with each pod, as lines of the log, by klog's levels.

    2   what was decided for each pod; where a decision took long, the time by plugin
    4   moves in the queue
    5   which nodes each filter rejected
    10  the score of each node by plugin

Below 2 a pod costs three comparisons. The verbosity may change at any time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import structlog

from bayplan.app.live import LiveScheduler
from bayplan.cluster.pod_info import PodInfo
from bayplan.framework.queued import QueuedPod
from bayplan.framework.status import Status
from bayplan.loop.decide import Decision
from bayplan.loop.observer import Observer
from bayplan.observe.logs import Log

__all__ = ["DecisionLogger"]

_log = structlog.get_logger()
_DECISIONS, _MOVES, _FILTERS, SCORES = 2, 4, 5, 10
_MOST_NAMES = 50
_MOST_PLUGINS = 8


class DecisionLogger(Observer):
    """Give it to the loop as an observer, its `moved` to the queue, and the scheduler to `attach`."""

    def __init__(self, log: Log, *, slow_seconds: float = 0.1) -> None:
        self._verbosity_of = log
        self._slow_seconds = slow_seconds
        self._live: LiveScheduler | None = None

    def attach(self, live: LiveScheduler) -> None:
        self._live = live
        self.follow_verbosity()

    def follow_verbosity(self) -> None:
        """Keep what the level needs, after it has changed."""
        if self._live is not None:
            self._live.keep_scores(self._verbosity_of.is_shown(SCORES))

    def moved(self, queued: QueuedPod, place: str, cause: str) -> None:
        if self._verbosity_of.verbosity >= _MOVES:
            _log.info("pod moved in the queue", v=_MOVES, pod=queued.key, to=place, cause=cause)

    def decided(self, queued: QueuedPod, decision: Decision, seconds: float) -> None:
        verbosity = self._verbosity_of.verbosity
        if verbosity < _DECISIONS:
            return
        if verbosity >= _FILTERS:
            self._log_filters(decision)
        if verbosity >= SCORES:
            self._log_scores(decision)
        if decision.is_scheduled:
            _log.info("node chosen", v=_DECISIONS, pod=queued.key, node=decision.node_name, **_closeness(decision))
        else:
            _log.info("no node found", v=_DECISIONS, pod=queued.key, message=decision.message, **_nomination(decision))
        if seconds >= self._slow_seconds:
            self._log_slow(decision, seconds)

    def _log_filters(self, decision: Decision) -> None:
        for status, rows in decision.rejected_groups():
            _log.info(
                "nodes rejected",
                v=_FILTERS,
                pod=decision.pod.key,
                plugin=status.plugin,
                reasons=list(status.reasons),
                count=len(rows),
                nodes=[self._node_name(row) for row in rows[:_MOST_NAMES].tolist()],
            )

    def _log_scores(self, decision: Decision) -> None:
        scores = decision.scores
        if scores is None:
            return
        shares = {plugin: share.tolist() for plugin, share in scores.shares.items()}
        for place, (row, total) in enumerate(zip(scores.rows.tolist(), scores.totals.tolist(), strict=True)):
            by_plugin = {plugin: share[place] for plugin, share in shares.items()}
            node = self._node_name(row)
            _log.info("node scored", v=SCORES, pod=decision.pod.key, node=node, total=total, weighted=by_plugin)

    def _node_name(self, row: int) -> str:
        assert self._live is not None  # attached before the first decision
        return self._live.cache.cluster.nodes.at(row).name

    def _log_slow(self, decision: Decision, seconds: float) -> None:
        """By plugin if this cycle was measured; the next one will be."""
        taken = sorted(decision.plugin_times, key=lambda time: -time.seconds)[:_MOST_PLUGINS]
        times = {f"{time.plugin}.{time.point}": _milliseconds(time.seconds) for time in taken} or _phases(decision)
        _log.info("slow decision", v=_DECISIONS, pod=decision.pod.key, took=_milliseconds(seconds), of_which=times)
        if self._live is not None:
            self._live.sampling.measure_next()

    def bound(self, queued: QueuedPod, node_name: str, seconds: float) -> None:
        if self._verbosity_of.verbosity >= _DECISIONS:
            _log.info("pod bound", v=_DECISIONS, pod=queued.key, node=node_name, took=_milliseconds(seconds))

    def attempt_failed(self, queued: QueuedPod, status: Status, seconds: float) -> None:
        if self._verbosity_of.verbosity >= _DECISIONS and not status.is_rejected:
            _log.info("attempt failed", v=_DECISIONS, pod=queued.key, plugin=status.plugin, message=status.message)

    def held_at_permit(self, info: PodInfo, node_name: str, timeouts: Mapping[str, float]) -> None:
        if self._verbosity_of.verbosity >= _DECISIONS:
            waits = {plugin: f"{seconds:g}s" for plugin, seconds in timeouts.items()}
            _log.info("pod waits at Permit", v=_DECISIONS, pod=info.key, node=node_name, at_most=waits)

    def left_permit(self, info: PodInfo, result: str, seconds: float) -> None:
        if self._verbosity_of.verbosity >= _DECISIONS:
            _log.info("pod left Permit", v=_DECISIONS, pod=info.key, result=result, took=_milliseconds(seconds))

    def refused_after_choice(self, info: PodInfo, node_name: str, point: str, status: Status) -> None:
        if self._verbosity_of.verbosity >= _DECISIONS:
            _log.info(
                "pod refused after the choice of a node",
                v=_DECISIONS,
                pod=info.key,
                node=node_name,
                point=point,
                plugin=status.plugin,
                message=status.message,
            )


def _closeness(decision: Decision) -> dict[str, Any]:
    found: dict[str, Any] = {"feasible": decision.feasible_nodes, "evaluated": decision.evaluated_nodes}
    if decision.feasible_nodes > 1:
        found |= {"score": decision.total, "ties": decision.ties}
    return found


def _nomination(decision: Decision) -> dict[str, Any]:
    nomination = decision.nomination
    if nomination is None or not nomination.nominated_node_name:
        return {}
    return {"nominated": nomination.nominated_node_name, "victims": [victim.key for victim in nomination.victims]}


def _phases(decision: Decision) -> dict[str, str]:
    marks = decision.marks
    return {phase: _milliseconds(ended - marks[place][1]) for place, (phase, ended) in enumerate(marks[1:])}


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:.1f}ms"
