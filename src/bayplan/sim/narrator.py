"""Prints each decision as a line: the node and the score, or the reason why the pod waits."""

from __future__ import annotations

from collections.abc import Callable

from bayplan.framework.queued import QueuedPod
from bayplan.loop.decide import Decision
from bayplan.loop.observer import Observer

__all__ = ["Narrator"]


class Narrator(Observer):
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
            if len(self._last) > 10_000:
                self._last.clear()


def _closeness(decision: Decision) -> str:
    if decision.feasible_nodes == 1:
        return " (the only node that fits)"
    tied = f", one of {decision.ties} best" if decision.ties > 1 else ""
    return f" (score {decision.total}, {decision.feasible_nodes} nodes fit{tied})"
