"""Pods evaluated one after the other on one offline cluster, each counted on the node it got: `bayplan evaluate`.

Every step is a whole explanation of now, and a pod may be held back before the queue. Nothing is preempted; the answer
says what would be.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bayplan.api.pod import Pod
from bayplan.app.offline import OfflineScheduler
from bayplan.cluster.pod_info import PodInfo
from bayplan.explain.builders import held_back_claim, now_claim, now_of
from bayplan.explain.claims.base import JsonObject
from bayplan.explain.claims.pods import NOW, GoesTo, HeldBack, WouldPreempt
from bayplan.explain.claims.wording import sentence
from bayplan.explain.model import Now
from bayplan.explain.offline.case import UnknownProfile, decide_in_full
from bayplan.explain.whatif.placing import created, held_back_by, queue_order
from bayplan.framework.queued import QueuedPod
from bayplan.framework.runtime.framework import Framework

__all__ = ["EVERY_NODE", "Evaluated", "Evaluator", "machine_form"]

EVERY_NODE = 1_000_000
_OF_EVERY_NODE = ("nodes", "scores")


@dataclass(frozen=True, kw_only=True)
class Evaluated:
    """What the scheduler would do with one pod."""

    pod: str
    claim: NOW
    now: Now
    has_failed: bool
    """Something went wrong, or there are no nodes at all; not a verdict about the pod."""
    result: JsonObject

    @property
    def verdict(self) -> str:
        return sentence(self.claim)

    @property
    def is_scheduled(self) -> bool:
        return bool(self.now.node)

    @property
    def outcome(self) -> str:
        """scheduled, preempts, gated, failed, or pending"""
        if isinstance(self.claim, GoesTo):
            return "scheduled"
        if isinstance(self.claim, WouldPreempt):
            return "preempts"
        if isinstance(self.claim, HeldBack):
            return "gated"
        return "failed" if self.has_failed else "pending"


class Evaluator:
    def __init__(self, scheduler: OfflineScheduler, *, most: int = EVERY_NODE) -> None:
        """`most`: of the best nodes that are kept of each answer, and with fewer than all, no result of every node."""
        self.scheduler = scheduler
        self._most = most

    def evaluate(self, pod: Pod) -> Evaluated:
        """Decide for one pod and count it on its node. Raises `UnknownProfile`."""
        framework = self._framework(pod)
        info = self.scheduler.info(pod)
        held_back = held_back_by(framework, info)
        if held_back is not None:
            result: JsonObject = {"nodes": {}, "scores": {}, "best": [], "message": held_back.message}
            now = Now(message=held_back.message, nodes=len(framework.cluster.nodes))
            return self._evaluated(info, held_back_claim(info, held_back), now, result)
        decision, result = decide_in_full(self.scheduler, pod)
        if self._most < EVERY_NODE:
            result = {name: value for name, value in result.items() if name not in _OF_EVERY_NODE}
        now = now_of(framework, decision, most=self._most)
        claim = now_claim(framework, info, decision, now, is_offline=True, sample=decision.feasible_nodes)
        if decision.is_scheduled:
            self.scheduler.assume(info, decision.node_name)
        return self._evaluated(info, claim, now, result, has_failed=decision.failure is not None)

    def _evaluated(
        self, info: PodInfo, claim: NOW, now: Now, result: JsonObject, *, has_failed: bool = False
    ) -> Evaluated:
        return Evaluated(pod=info.key, claim=claim, now=now, has_failed=has_failed, result=result)

    def in_queue_order(self, pods: Iterable[Pod]) -> list[Pod]:
        """The pods in the order in which the scheduler would take them, were they all waiting now."""
        pods = list(pods)
        queued = [QueuedPod(self.scheduler.info(pod), created(pod)) for pod in pods]
        return [pods[place] for place in queue_order(self._framework(pods[0]), queued)] if pods else []

    def _framework(self, pod: Pod) -> Framework:
        if pod.spec.scheduler_name not in self.scheduler.deciders:
            raise UnknownProfile(pod, self.scheduler.deciders)
        return self.scheduler.framework(pod.spec.scheduler_name)


def machine_form(found: Evaluated) -> JsonObject:
    """The result of a case with who, what and the verdict in front."""
    head: JsonObject = {"pod": found.pod, "outcome": found.outcome, "verdict": found.verdict}
    head |= {"feasible": found.now.feasible}
    if found.is_scheduled:
        head |= {"chosen": found.now.node, "total": found.now.best[0].total if found.now.best else 0}
    return head | found.result
