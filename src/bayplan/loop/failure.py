"""Failure: an attempt did not end in a binding. The pod goes back to the queue with its reasons, and people hear."""

from __future__ import annotations

from bayplan.framework.diagnosis import Diagnosis
from bayplan.framework.queued import QueuedPod
from bayplan.framework.status import Status
from bayplan.loop.profile import Profile, Shared

__all__ = ["CLEAR_NOMINATION", "report_failure"]

CLEAR_NOMINATION = ""


def report_failure(
    shared: Shared,
    profile: Profile,
    queued: QueuedPod,
    status: Status,
    *,
    diagnosis: Diagnosis | None,
    nominated_node_name: str | None,
    began: float,
) -> None:
    """Requeue the pod, then tell: event and PodScheduled condition. A nomination of None leaves it as it is."""
    shared.observer.attempt_failed(queued, status, shared.clock.monotonic() - began)
    message = diagnosis.message if diagnosis is not None else status.message
    reason = "Unschedulable" if status.is_rejected else "SchedulerError"
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
    shared.queue.nominator.add(info, nominated_node_name)
    profile.recorder.event(info, kind="Warning", reason="FailedScheduling", action="Scheduling", note=message)
    if current is not None:
        shared.status.report(current, reason=reason, message=message, nominated_node_name=nominated_node_name)
