"""The scheduling cycle: one pod, from the queue to a node it is assumed on.

Nothing here awaits, but for the answers of extenders where a profile has them. What may take time (waiting at Permit,
volumes, the binding itself) happens in the binding cycle, which this starts.
"""

from __future__ import annotations

from bayplan.cluster.pod_info import PodInfo
from bayplan.framework.cycle import CycleState
from bayplan.framework.diagnosis import Diagnosis
from bayplan.framework.queued import QueuedPod
from bayplan.framework.runtime.call import caller
from bayplan.framework.status import SUCCESS, Code, Error, Status
from bayplan.loop.binding_cycle import Binding, activate, start_binding, unreserve
from bayplan.loop.decide import Decision, decide
from bayplan.loop.extending import decide_with_extenders
from bayplan.loop.failure import CLEAR_NOMINATION, report_failure
from bayplan.loop.profile import Profile, Shared

__all__ = ["asks_extenders", "schedule_one", "schedule_with_extenders"]

_ONE_MUST_WAIT = "one or more plugins asked to wait and no plugin rejected pod"


def schedule_one(shared: Shared, queued: QueuedPod) -> None:
    """Try one pod: decide, assume, reserve, ask for permission, and start its binding."""
    profile = shared.profiles.get(queued.info.scheduler_name)
    if profile is None or _is_skipped(shared, profile, queued):
        shared.queue.done(queued.uid)
        return
    began = shared.clock.monotonic()
    _act_on(shared, profile, queued, decide(profile.decider, queued.info), began)


def asks_extenders(shared: Shared, queued: QueuedPod) -> bool:
    profile = shared.profiles.get(queued.info.scheduler_name)
    return profile is not None and profile.extenders is not None


async def schedule_with_extenders(shared: Shared, queued: QueuedPod) -> None:
    """As `schedule_one`, for a pod that extenders are asked about: the cluster goes on changing while they answer."""
    profile = shared.profiles.get(queued.info.scheduler_name)
    if profile is None or profile.extenders is None or _is_skipped(shared, profile, queued):
        shared.queue.done(queued.uid)
        return
    info, began = queued.info, shared.clock.monotonic()

    def is_wanted() -> bool:
        current = shared.get_pod(info.namespace, info.name)
        return current is not None and current.uid == info.pod.uid and not current.spec.node_name

    decision = await decide_with_extenders(profile.extenders, profile.decider, info, is_wanted=is_wanted)
    if decision is None:
        shared.queue.done(queued.uid)
    else:
        _act_on(shared, profile, queued, decision, began)


def _act_on(shared: Shared, profile: Profile, queued: QueuedPod, decision: Decision, began: float) -> None:
    """Assume what was decided and start the binding, or report why nothing was."""
    shared.observer.decided(queued, decision, shared.clock.monotonic() - began)
    if not decision.is_scheduled:
        _not_scheduled(shared, profile, queued, decision, began)
        return
    assumed = shared.cache.assume(queued.info, decision.node_name)
    shared.queue.nominator.delete(queued.info)
    status = _reserve_and_permit(shared, profile, decision.state, assumed, decision.node_name)
    if not status.is_success and not status.is_wait:
        _give_up(shared, profile, queued, assumed, decision, status, began)
        return
    activate(shared, decision.state)
    binding = Binding(shared, profile, queued, assumed, decision.state, decision.node_name, began)
    start_binding(binding, is_held=status.is_wait)


def _is_skipped(shared: Shared, profile: Profile, queued: QueuedPod) -> bool:
    """Pods that are being deleted, and pods whose binding is still under way, are not tried."""
    info = queued.info
    if info.is_terminating:
        note = f"skip schedule deleting pod: {info.key}"
        profile.recorder.event(info, kind="Warning", reason="FailedScheduling", action="Scheduling", note=note)
        return True
    return shared.cache.pod(info.uid) is not None


def _not_scheduled(shared: Shared, profile: Profile, queued: QueuedPod, decision: Decision, began: float) -> None:
    diagnosis, failure = decision.diagnosis, decision.failure
    nomination: str | None = CLEAR_NOMINATION
    if diagnosis is not None:
        result = decision.nomination
        nomination = result.nominated_node_name if result is not None else CLEAR_NOMINATION
        if result is not None and result.victims:
            shared.observer.preempted(len(result.victims))
    status = failure if failure is not None else Status(Code.UNSCHEDULABLE, (decision.message,))
    report_failure(shared, profile, queued, status, diagnosis=diagnosis, nominated_node_name=nomination, began=began)


def _reserve_and_permit(
    shared: Shared, profile: Profile, state: CycleState, assumed: PodInfo, node_name: str
) -> Status:
    """Success, Wait (the pod is then held), or the status of the plugin that objected."""
    complain, call = profile.framework.complain, caller(state)
    for plugin in profile.reserving:
        status = call(plugin, "reserve", complain, state, assumed, node_name)
        if isinstance(status, Status) and not status.is_success:
            return _explained("Reserve", status)
    timeouts: dict[str, float] = {}
    for plugin in profile.permitting:
        status = call(plugin, "permit", complain, state, assumed, node_name)
        if not isinstance(status, Status) or status.is_success:
            continue
        if not status.is_wait:
            return _explained("Permit", status)
        timeouts[plugin.name] = status.timeout_seconds
    if not timeouts:
        return SUCCESS
    shared.waiting.hold(assumed, node_name, timeouts)
    return Status(Code.WAIT, (_ONE_MUST_WAIT,))


def _explained(point: str, status: Status) -> Status:
    if status.is_rejected:
        return status
    return Error(f'running {point} plugin "{status.plugin}": {status.message}', exception=status.exception)


def _give_up(
    shared: Shared,
    profile: Profile,
    queued: QueuedPod,
    assumed: PodInfo,
    decision: Decision,
    status: Status,
    began: float,
) -> None:
    """Undo what was reserved and assumed, and send the pod back."""
    unreserve(profile, decision.state, assumed, decision.node_name)
    shared.cache.forget(assumed.uid)
    diagnosis = Diagnosis.of_one_node(status) if status.is_rejected else None
    report_failure(
        shared, profile, queued, status, diagnosis=diagnosis, nominated_node_name=CLEAR_NOMINATION, began=began
    )
