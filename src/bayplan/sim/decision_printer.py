"""Prints each decision as a line: the node and the score, or the reason why the pod waits."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from bayplan.cluster.pod_info import PodInfo
from bayplan.framework.queued import QueuedPod
from bayplan.framework.status import Status
from bayplan.loop.decide import Decision
from bayplan.loop.observer import Observer

__all__ = ["DecisionPrinter"]

_NAMED = 3


class DecisionPrinter(Observer):
    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._last: dict[str, str] = {}

    def decided(self, queued: QueuedPod, decision: Decision, seconds: float) -> None:
        key = queued.key
        if decision.is_scheduled:
            self._last.pop(key, None)
            self._say(f"{key} -> {decision.node_name}{_closeness(decision)} [{seconds * 1e3:.2f} ms]")
        elif self._last.get(key) != decision.message:
            # A pod that keeps failing for the same reason is reported once.
            self._last[key] = decision.message
            self._say(f"{key} waits: {decision.message}")
            self._say_preemption(key, decision)
            if len(self._last) > 10_000:
                self._last.clear()

    def _say_preemption(self, key: str, decision: Decision) -> None:
        nomination = decision.nomination
        if nomination is not None and nomination.victims:
            names = ", ".join(victim.key for victim in nomination.victims[:_NAMED])
            more = f" and {len(nomination.victims) - _NAMED} more" if len(nomination.victims) > _NAMED else ""
            self._say(f"{key} preempts {names}{more} on {nomination.nominated_node_name}")

    def held_at_permit(self, info: PodInfo, node_name: str, timeouts: Mapping[str, float]) -> None:
        longest = max(timeouts.values(), default=0.0)
        self._say(f"{info.key} is held at Permit by {', '.join(timeouts)} on {node_name}, for {longest:g} s at most")

    def refused_after_choice(self, info: PodInfo, node_name: str, point: str, status: Status) -> None:
        by = f" by {status.plugin}" if status.plugin else ""
        self._say(f"{info.key} was refused {node_name} at {point}{by}: {status.message}")


def _closeness(decision: Decision) -> str:
    if decision.feasible_nodes == 1:
        return " (the only node that fits)"
    tied = f", one of {decision.ties} best" if decision.ties > 1 else ""
    return f" (score {decision.total}, {decision.feasible_nodes} nodes fit{tied})"
