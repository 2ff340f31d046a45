"""Prints each decision as a line, as `bayplan up` does: the node and the score, or the reason why the pod waits.

Each line is the sentence of a claim, with the time that the decision took after it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from bayplan.cluster.pod_info import PodInfo
from bayplan.explain.claims.pods import LOGGED, Failed, Picked, Preempts, PutOnHold, RefusedLater
from bayplan.explain.claims.wording import sentence
from bayplan.framework.queued import QueuedPod
from bayplan.framework.status import Status
from bayplan.loop.decide import Decision
from bayplan.loop.observer import Observer

__all__ = ["DecisionPrinter"]

_MOST_KNOWN = 10_000


class DecisionPrinter(Observer):
    def __init__(self, say: Callable[[str], None], *, note: Callable[[LOGGED], None] | None = None) -> None:
        """`note` is called with the claim of each line."""
        self._print = say
        self._note = note
        self._last: dict[str, tuple[str, tuple[str, ...]]] = {}

    def _say(self, claim: LOGGED, more: str = "") -> None:
        if self._note is not None:
            self._note(claim)
        self._print(f"{sentence(claim)}{more}")

    def decided(self, queued: QueuedPod, decision: Decision, seconds: float) -> None:
        key = queued.key
        if decision.is_scheduled:
            self._last.pop(key, None)
            self._say(_picked(queued, decision), f" [{seconds * 1e3:.2f} ms]")
            return
        victims, node = _victims(decision)
        if self._last.get(key) != (decision.message, victims):
            # A pod that keeps failing for the same reason is reported once; one that makes others leave, each time.
            self._last[key] = (decision.message, victims)
            self._say(Failed(pod=key, message=decision.message))
            if victims:
                self._say(Preempts(pod=key, node=node, victims=victims))
            if len(self._last) > _MOST_KNOWN:
                self._last.clear()

    def held_at_permit(self, info: PodInfo, node_name: str, timeouts: Mapping[str, float]) -> None:
        # The first plugin whose time is up refuses the pod.
        soonest = min(timeouts.values(), default=0.0)
        self._say(PutOnHold(pod=info.key, node=node_name, plugins=tuple(timeouts), seconds=soonest))

    def refused_after_choice(self, info: PodInfo, node_name: str, point: str, status: Status) -> None:
        self._say(
            RefusedLater(
                pod=info.key,
                node=node_name,
                point=point,
                plugin=status.plugin,
                message=status.message,
                has_failed=not status.is_rejected,
            )
        )


def _victims(decision: Decision) -> tuple[tuple[str, ...], str]:
    """Who has to leave for the pod, and where."""
    nomination = decision.nomination
    if nomination is None or not nomination.nominated_node_name:
        return (), ""
    return tuple(victim.key for victim in nomination.victims), nomination.nominated_node_name


def _picked(queued: QueuedPod, decision: Decision) -> Picked:
    node, fitting = decision.node_name, decision.fitting_nodes
    return Picked(
        pod=queued.key,
        node=node,
        feasible=fitting,
        scored=decision.feasible_nodes if fitting != decision.feasible_nodes else 0,
        total=decision.total,
        ties=decision.ties,
        is_nominated=decision.outcome is None and node == queued.info.nominated_node_name,
    )
