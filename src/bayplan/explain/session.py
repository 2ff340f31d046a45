"""Pods decided one after the other on one offline cluster, each counted on the node it got.

The difference to `bayplan.explain.case.evaluate_sequence` is depth: every step is a whole report, and a pod may be held
back before the queue. Nothing is preempted; a report says what would be.
"""

from __future__ import annotations

from collections.abc import Iterable

from bayplan.api.pod import Pod
from bayplan.app.offline import OfflineScheduler
from bayplan.cluster.pod_info import PodInfo, parse_time
from bayplan.explain.case import JsonObject, UnknownProfile, decide_in_full
from bayplan.explain.report import Context, PodReport, report_of
from bayplan.explain.verdict import verdict
from bayplan.framework.points import ExtensionPoint
from bayplan.framework.queued import QueuedPod
from bayplan.framework.runtime.call import call_plugin
from bayplan.framework.runtime.framework import Framework
from bayplan.framework.status import Status
from bayplan.queue.heap import sort_key_of

__all__ = ["Session", "held_back_by", "machine_form"]


class Session:
    def __init__(self, scheduler: OfflineScheduler) -> None:
        self.scheduler = scheduler

    def evaluate(self, pod: Pod) -> PodReport:
        """Decide for one pod and count it on its node. Raises `UnknownProfile`."""
        framework = self._framework(pod)
        info = self.scheduler.info(pod)
        held_back = held_back_by(framework, info)
        if held_back is not None:
            result: JsonObject = {"nodes": {}, "scores": {}, "best": [], "message": held_back.message}
            return report_of(result, self._context(framework, info, gated_by=held_back.plugin))
        decision, result = decide_in_full(self.scheduler, pod)
        if decision.is_scheduled:
            self.scheduler.assume(info, decision.node_name)
        has_failed = decision.failure is not None
        return report_of(result, self._context(framework, info, chosen=decision.node_name, has_failed=has_failed))

    def in_queue_order(self, pods: Iterable[Pod]) -> list[Pod]:
        """The pods in the order in which the scheduler would take them, were they all waiting now."""
        queued = [(QueuedPod(self.scheduler.info(pod), _created(pod)), pod) for pod in pods]
        if not queued:
            return []
        sorters = self._framework(queued[0][1]).at(ExtensionPoint.QUEUE_SORT)
        key = sort_key_of(sorters[0])
        return [pod for _, pod in sorted(queued, key=lambda pair: key(pair[0]))]

    def _framework(self, pod: Pod) -> Framework:
        if pod.spec.scheduler_name not in self.scheduler.deciders:
            raise UnknownProfile(pod, self.scheduler.deciders)
        return self.scheduler.framework(pod.spec.scheduler_name)

    def _context(
        self, framework: Framework, info: PodInfo, *, chosen: str = "", gated_by: str = "", has_failed: bool = False
    ) -> Context:
        return Context(
            pod=info.key,
            node_count=len(self.scheduler.cache.cluster.nodes),
            filters=tuple(call.name for call in framework.filter_calls),
            weights={call.name: call.weight for call in framework.score_calls},
            chosen=chosen,
            nominated=info.nominated_node_name,
            gated_by=gated_by,
            has_failed=has_failed,
        )


def held_back_by(framework: Framework, info: PodInfo) -> Status | None:
    """What a PreEnqueue plugin says to a pod that it does not let into the queue."""
    for plugin in framework.at(ExtensionPoint.PRE_ENQUEUE):
        answer = call_plugin(plugin, "pre_enqueue", framework.complain, info)
        if isinstance(answer, Status) and not answer.is_success:
            return answer
    return None


def _created(pod: Pod) -> float:
    """Pods without a time of creation came together, before all others."""
    created = pod.metadata.creation_timestamp
    return parse_time(created) if created else 0.0


def machine_form(report: PodReport) -> JsonObject:
    """The result of a case with who, what and the verdict in front."""
    head: JsonObject = {"pod": report.pod, "outcome": report.outcome.value, "verdict": verdict(report)}
    head |= {"feasible": len(report.ranking)}
    if report.is_scheduled:
        head |= {"chosen": report.context.chosen, "total": report.total}
    return head | report.result
