"""One attempt to schedule one pod: what it works on, what it did so far, and how that is undone.

    decide ──▶ assume ──▶ Reserve ──▶ Permit ──▶ PreBind ──▶ Bind        the steps of an attempt
                 └───────────┴──────────┴───────────┴─── undo ──▶ nothing reserved, held or assumed

`undo` is the only way back, whatever ended the attempt. After it a pod is requeued with its reasons (`report_failure`),
requeued without any (`requeue`, after a defect of the scheduler itself), or left alone (`abandon`, when the process
ends). Every event and condition about an attempt is written from here, and only while this replica leads.
"""

from __future__ import annotations

from bayplan.cluster.pod_info import PodInfo
from bayplan.framework.cycle import CycleState
from bayplan.framework.diagnosis import Diagnosis
from bayplan.framework.points import ExtensionPoint
from bayplan.framework.queued import QueuedPod
from bayplan.framework.runtime.call import caller
from bayplan.framework.status import Error, Status, reason_of
from bayplan.loop.decide import Decision
from bayplan.loop.profile import Profile, Shared

__all__ = ["CLEAR_NOMINATION", "Attempt", "failure_at", "with_reason"]

CLEAR_NOMINATION = ""


class Attempt:
    __slots__ = ("assumed", "began", "is_refused_at_bind", "node_name", "profile", "queued", "shared", "state")

    def __init__(self, shared: Shared, profile: Profile, queued: QueuedPod) -> None:
        self.shared = shared
        self.profile = profile
        self.queued = queued
        self.began = shared.clock.monotonic()
        self.state: CycleState | None = None
        """Of the decision for a node; None without one. The decision itself is not kept while the pod is bound: its
        rows are as long as the cluster, and with hundreds of bindings under way the next one would always be written to
        memory that the processor's caches do not hold."""
        self.node_name = ""
        self.assumed: PodInfo | None = None
        """The pod as it counts on its node; None before `assume` and after `undo`."""
        self.is_refused_at_bind = False

    def assume(self, decision: Decision) -> PodInfo:
        """Count the pod on the node that was decided on."""
        self.state, self.node_name = decision.state, decision.node_name
        self.assumed = assumed = self.shared.cache.assume(self.queued.info, decision.node_name)
        return assumed

    def undo(self) -> PodInfo | None:
        """Release what the attempt holds, the latest first; the pod whose room became free by it, if any did.

        Unreserve runs in reverse order and for every plugin that defines it, whether or not its Reserve was reached.
        A second call does nothing.
        """
        assumed, state = self.assumed, self.state
        if assumed is None or state is None:
            return None
        self.assumed = None
        self.shared.held_pods.release(assumed.uid)
        complain, call = self.profile.framework.complain, caller(state)
        for plugin in self.profile.unreserving:
            call(plugin, "unreserve", complain, state, assumed, self.node_name)
        return self.shared.cache.forget(assumed.uid)

    def abandon(self) -> None:
        """Undo, without another try: the process ends."""
        self.undo()
        self.shared.queue.done(self.queued.uid)

    def requeue(self) -> None:
        """Undo and try again after a back-off, as after any error."""
        self.undo()
        self.shared.queue.add_unschedulable_if_not_present(self.queued)

    def report_failure(
        self,
        status: Status,
        *,
        diagnosis: Diagnosis | None = None,
        nominated_node_name: str | None = CLEAR_NOMINATION,
    ) -> None:
        """Requeue the pod with its reasons, then write event and PodScheduled condition.

        Without a diagnosis, a rejection is that of the one node that was chosen; one at Bind is about no node, so that
        the pod backs off as after an error. A nomination of None stays as it is.
        """
        shared, queued = self.shared, self.queued
        shared.observer.attempt_failed(queued, status, shared.clock.monotonic() - self.began)
        if diagnosis is None and status.is_rejected and self.state is not None and not self.is_refused_at_bind:
            diagnosis = Diagnosis.of_one_node(status)
        info = queued.info
        current = shared.get_pod(info.namespace, info.name)
        if current is not None and current.uid != info.pod.uid:
            shared.queue.done(info.uid)
            return
        if current is None or current.spec.node_name:
            shared.queue.done(info.uid)
        else:
            info = shared.cache.info(current)
            shared.queue.add_unschedulable_if_not_present(
                queued,
                unschedulable_plugins=diagnosis.unschedulable_plugins if diagnosis is not None else (),
                pending_plugins=diagnosis.pending_plugins if diagnosis is not None else (),
                info=info,
            )
        shared.queue.nominations.add(info, nominated_node_name)
        message = diagnosis.message if diagnosis is not None else status.message
        self.record_event(info, kind="Warning", reason="FailedScheduling", action="Scheduling", note=message)
        if current is not None and shared.may_write():
            reason = "Unschedulable" if status.is_rejected else "SchedulerError"
            shared.status.report(current, reason=reason, message=message, nominated_node_name=nominated_node_name)

    def refusal(self, point: str, status: Status) -> Status:
        """The status of an attempt whose chosen node a plugin refused. Notifies the observers."""
        status = with_reason(status)
        if self.assumed is not None:
            self.shared.observer.refused_after_choice(self.assumed, self.node_name, point, status)
        self.is_refused_at_bind = point == ExtensionPoint.BIND.label
        return failure_at(point, status)

    def record_event(self, info: PodInfo, *, kind: str, reason: str, action: str, note: str) -> None:
        """An event about the pod, unless the lease is lost: the next leader may have placed the pod by now."""
        if self.shared.may_write():
            self.profile.recorder.event(info, kind=kind, reason=reason, action=action, note=note)


def failure_at(point: str, status: Status) -> Status:
    """A rejection as it is; anything else that is no success as an error that names the plugin."""
    if status.is_rejected:
        return status
    if not status.plugin:
        return Error(status.message, exception=status.exception)
    text = f'running {point} plugin "{status.plugin}": {reason_of(status)}'
    return Error(text, exception=status.exception).by(status.plugin)


def with_reason(status: Status) -> Status:
    """The status with a reason: what people and records say about a refusal is made of it."""
    if status.message.strip(", "):
        return status
    return Status(status.code, (reason_of(status),), plugin=status.plugin, exception=status.exception)
