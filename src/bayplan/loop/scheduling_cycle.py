"""The scheduling cycle: one pod, from the queue to a node it is assumed on.

Nothing here awaits, but for the answers of extenders where a profile has them. What may take time (waiting at Permit,
volumes, the binding itself) happens in the binding cycle, which this starts.
"""

from __future__ import annotations

from bayplan.framework.runtime.call import caller
from bayplan.framework.status import SUCCESS, Code, Status
from bayplan.loop.attempt import CLEAR_NOMINATION, Attempt
from bayplan.loop.binding_cycle import BindingCycle, activate, start_binding
from bayplan.loop.decide import Decision, decide
from bayplan.loop.decide_with_extenders import Extenders, decide_with_extenders

__all__ = ["schedule_one", "schedule_with_extenders"]

_ONE_MUST_WAIT = "one or more plugins asked to wait and no plugin rejected pod"


def schedule_one(attempt: Attempt) -> None:
    """Try one pod: decide, assume, reserve, run Permit, and start its binding."""
    if _is_skipped(attempt):
        attempt.shared.queue.done(attempt.queued.uid)
        return
    _act_on(attempt, decide(attempt.profile.decider, attempt.queued.info))


async def schedule_with_extenders(attempt: Attempt, extenders: Extenders) -> None:
    """As `schedule_one`, for a profile with extenders: the cluster goes on changing while they answer."""
    shared, info = attempt.shared, attempt.queued.info
    if _is_skipped(attempt):
        shared.queue.done(info.uid)
        return

    def is_wanted() -> bool:
        current = shared.get_pod(info.namespace, info.name)
        return current is not None and current.uid == info.pod.uid and not current.spec.node_name

    decision = await decide_with_extenders(extenders, attempt.profile.decider, info, is_wanted=is_wanted)
    if decision is None:
        shared.queue.done(info.uid)
    else:
        _act_on(attempt, decision)


def _is_skipped(attempt: Attempt) -> bool:
    """Pods that are being deleted, and pods whose binding is still under way, are not tried."""
    info = attempt.queued.info
    if info.is_terminating:
        note = f"skip schedule deleting pod: {info.key}"
        attempt.record_event(info, kind="Warning", reason="FailedScheduling", action="Scheduling", note=note)
        return True
    return attempt.shared.cache.pod(info.uid) is not None


def _act_on(attempt: Attempt, decision: Decision) -> None:
    """Assume the pod on the chosen node and start its binding, or report why there is none."""
    shared, queued = attempt.shared, attempt.queued
    shared.observer.decided(queued, decision, shared.clock.monotonic() - attempt.began)
    if not decision.is_scheduled:
        _report_rejection(attempt, decision)
        return
    binding = BindingCycle(attempt, attempt.assume(decision), decision.state, decision.node_name)
    shared.queue.nominations.delete(queued.info)
    status = _reserve_and_permit(binding)
    if not status.is_success and not status.is_wait:
        attempt.undo()
        attempt.report_failure(status)
        return
    activate(shared, decision.state)
    start_binding(binding, is_held=status.is_wait)


def _report_rejection(attempt: Attempt, decision: Decision) -> None:
    diagnosis, failure = decision.diagnosis, decision.failure
    nomination: str | None = CLEAR_NOMINATION
    if diagnosis is not None:
        result = decision.nomination
        nomination = result.nominated_node_name if result is not None else CLEAR_NOMINATION
        if result is not None and result.victims:
            attempt.shared.observer.preempted(len(result.victims))
    status = failure if failure is not None else Status(Code.UNSCHEDULABLE, (decision.message,))
    attempt.report_failure(status, diagnosis=diagnosis, nominated_node_name=nomination)


def _reserve_and_permit(binding: BindingCycle) -> Status:
    """Success, Wait (the pod is then held), or the status of the plugin that objected."""
    attempt, assumed, state, node_name = binding.attempt, binding.assumed, binding.state, binding.node_name
    profile = attempt.profile
    complain, call = profile.framework.complain, caller(state)
    for plugin in profile.reserving:
        status = call(plugin, "reserve", complain, state, assumed, node_name)
        if isinstance(status, Status) and not status.is_success:
            return attempt.refusal("Reserve", status)
    timeouts: dict[str, float] = {}
    reasons: dict[str, str] = {}
    for plugin in profile.permitting:
        status = call(plugin, "permit", complain, state, assumed, node_name)
        if not isinstance(status, Status) or status.is_success:
            continue
        if not status.is_wait:
            return attempt.refusal("Permit", status)
        timeouts[plugin.name], reasons[plugin.name] = status.timeout_seconds, status.message
    if not timeouts:
        return SUCCESS
    held = attempt.shared.held_pods.hold(assumed, node_name, timeouts, reasons)
    attempt.shared.observer.held_at_permit(assumed, node_name, held.timeouts)
    return Status(Code.WAIT, (_ONE_MUST_WAIT,))
