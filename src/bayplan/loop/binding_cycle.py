"""The binding cycle: one pod, from an assumed node to a binding that the API server has.

It runs beside the main path: on tasks that bindings share where there is nothing to wait for, else on its own task.
Whatever fails here undoes the attempt, wakes pods that the freed room may help, and requeues the pod.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any

import msgspec

from bayplan.cluster.pod_info import PodInfo
from bayplan.framework.cycle import CycleState
from bayplan.framework.events import ActionType, ClusterEvent, Resource
from bayplan.framework.plugin import Plugin
from bayplan.framework.points import ExtensionPoint
from bayplan.framework.runtime.call import POINT_LABELS, await_plugin, caller
from bayplan.framework.status import SKIP, SUCCESS, Error, Status
from bayplan.framework.times import PluginTimes
from bayplan.loop.attempt import Attempt, with_reason
from bayplan.loop.decide_with_extenders import Extenders
from bayplan.loop.points import EXTENDER
from bayplan.loop.profile import Shared
from bayplan.observe.failures import described

__all__ = ["BindingCycle", "activate", "start_binding"]

_SHORT_WAIT_SECONDS = 0.2
"""A shorter wait at Permit is not published as nominatedNodeName; for a group of pods that would double the writes."""
_PRE_BIND, _BIND = ExtensionPoint.PRE_BIND.label, ExtensionPoint.BIND.label
_FREED = ClusterEvent(Resource.ASSIGNED_POD, ActionType.DELETE)


class BindingCycle(msgspec.Struct, frozen=True):
    """An attempt with a node. With nothing to do but to bind, it is work for the shared tasks (`BriefWork`)."""

    attempt: Attempt
    assumed: PodInfo
    state: CycleState
    node_name: str

    @property
    def name(self) -> str:
        return f"bind {self.assumed.key}"

    def run(self) -> Coroutine[Any, Any, None]:
        return _settle(self, _bind(self))

    def abandon(self) -> None:
        self.attempt.abandon()


def start_binding(binding: BindingCycle, *, is_held: bool) -> None:
    """Run the rest beside the main path. `is_held`: a plugin makes the pod wait at Permit."""
    shared, profile = binding.attempt.shared, binding.attempt.profile
    due = _pre_flight(binding)
    if is_held or due or not profile.binds_at_once:
        shared.start_task(binding.name, _settle(binding, _wait_and_bind(binding, due)))
    else:
        shared.queue.done(binding.assumed.uid)
        shared.start_brief(binding)


async def _settle(binding: BindingCycle, work: Coroutine[Any, Any, Status]) -> None:
    """Run the work and handle its outcome; only cancellation is raised."""
    try:
        status = await work
    except asyncio.CancelledError:
        binding.attempt.abandon()
        raise
    except Exception as exception:
        status = Error(described(exception), exception=exception)
    if status.is_success:
        _succeeded(binding)
    else:
        _failed(binding.attempt, status)


async def _wait_and_bind(binding: BindingCycle, due: list[Plugin] | Status) -> Status:
    if isinstance(due, Status):
        return due
    shared, uid = binding.attempt.shared, binding.assumed.uid
    held = shared.held_pods.get(uid)
    if due or (held is not None and not await held.settles_within(_SHORT_WAIT_SECONDS, shared.clock)):
        await _publish_expected_node(binding)
    if held is not None:
        status = await _wait_at_permit(binding, held.began)
        if not status.is_success:
            return status
    shared.queue.done(uid)
    if due:
        status = await _pre_bind(binding, due)
        if not status.is_success:
            return status
    return await _bind(binding)


async def _bind(binding: BindingCycle) -> Status:
    shared, profile = binding.attempt.shared, binding.attempt.profile
    if not shared.may_write():
        return Error("this replica no longer leads; the pod is left to the next leader")
    if profile.extenders is not None and (done := await _bind_by_extender(binding, profile.extenders)) is not None:
        return done
    began, status = shared.clock.monotonic(), SKIP
    for plugin in profile.binding:
        status = await _answer(plugin, "bind", binding)
        if not status.is_skip:
            status = status if status.is_success else binding.attempt.refusal(_BIND, status)
            break
    _measured(binding, _BIND, status, began)
    return binding.attempt.refusal(_BIND, Error("no Bind plugin binds it")) if status.is_skip else status


async def _bind_by_extender(binding: BindingCycle, extenders: Extenders) -> Status | None:
    """None when none of them binds the pod."""
    try:
        return SUCCESS if await extenders.bind(binding.assumed, binding.node_name) else None
    except Exception as exception:
        status = Error(described(exception), exception=exception).by(EXTENDER)
        binding.attempt.refusal(_BIND, status)
        return status


def _measured(binding: BindingCycle, point: str, status: Status, began: float) -> Status:
    """Pass the status on, after the observer got the time that the extension point took."""
    attempt = binding.attempt
    seconds = attempt.shared.clock.monotonic() - began
    attempt.shared.observer.extension_point_ran(point, status.code.label, attempt.profile.name, seconds)
    return status


def _pre_flight(binding: BindingCycle) -> list[Plugin] | Status:
    """The PreBind plugins that have something to do."""
    profile, state = binding.attempt.profile, binding.state
    complain, call = profile.framework.complain, caller(state)
    due: list[Plugin] = []
    for plugin in profile.pre_binding:
        if plugin not in profile.with_pre_flight:
            due.append(plugin)
            continue
        answer = call(plugin, "pre_bind_pre_flight", complain, state, binding.assumed, binding.node_name)
        if isinstance(answer, Status) and answer.is_skip:
            continue
        if isinstance(answer, Status) and not answer.is_success:
            return binding.attempt.refusal("PreBindPreFlight", answer)
        due.append(plugin)
    return due


async def _publish_expected_node(binding: BindingCycle) -> None:
    """Write the node into the pod's status while its binding takes time; a failure of this write changes nothing."""
    shared = binding.attempt.shared
    if not shared.may_write():
        return
    try:
        await shared.api.patch_pod_status(binding.assumed, nominated_node_name=binding.node_name)
    except Exception as exception:
        shared.observer.plugin_failed("", "nominatedNodeName", exception)


async def _wait_at_permit(binding: BindingCycle, began: float) -> Status:
    """`began`: when the wait did."""
    shared, assumed = binding.attempt.shared, binding.assumed
    status = await shared.held_pods.wait(assumed.uid)
    seconds = shared.clock.monotonic() - began
    shared.observer.permit_waited(status.code.label, seconds)
    shared.observer.left_permit(assumed, status.code.label, seconds)
    if not status.is_success:
        status = with_reason(status)
        shared.observer.refused_after_choice(assumed, binding.node_name, "Permit", status)
    return status


async def _pre_bind(binding: BindingCycle, due: list[Plugin]) -> Status:
    """Run the PreBind plugins; neighbours that allow it run side by side."""
    began = binding.attempt.shared.clock.monotonic()
    for group in _groups(due):
        if len(group) == 1:
            statuses = [await _answer(group[0], "pre_bind", binding)]
        else:
            statuses = await asyncio.gather(*(_answer(plugin, "pre_bind", binding) for plugin in group))
        for status in statuses:
            if not status.is_success:
                return _measured(binding, _PRE_BIND, binding.attempt.refusal("PreBind", status), began)
    return _measured(binding, _PRE_BIND, SUCCESS, began)


def _groups(plugins: Sequence[Plugin]) -> list[list[Plugin]]:
    groups: list[list[Plugin]] = []
    for plugin in plugins:
        if groups and plugin.allow_parallel_pre_bind and groups[-1][-1].allow_parallel_pre_bind:
            groups[-1].append(plugin)
        else:
            groups.append([plugin])
    return groups


def _answer(plugin: Plugin, method: str, binding: BindingCycle) -> Coroutine[Any, Any, Status]:
    times, complain = binding.state.times, binding.attempt.profile.framework.complain
    arguments = (binding.state, binding.assumed, binding.node_name)
    answer = await_plugin(plugin, method, complain, *arguments, is_cancelled=_is_cancelled)
    return answer if times is None else _timed(times, plugin, method, answer)


async def _timed(times: PluginTimes, plugin: Plugin, method: str, answer: Coroutine[Any, Any, Status]) -> Status:
    began = times.monotonic()
    status = await answer
    times.add(plugin.name, POINT_LABELS[method], status.code.label, times.monotonic() - began)
    return status


def _is_cancelled(exception: BaseException) -> bool:
    """Whether this task is cancelled; a plugin may also fail with the cancellation of a task of its own."""
    task = asyncio.current_task()
    return isinstance(exception, asyncio.CancelledError) and (task is None or task.cancelling() > 0)


def _succeeded(binding: BindingCycle) -> None:
    attempt, assumed, node_name = binding.attempt, binding.assumed, binding.node_name
    shared = attempt.shared
    shared.observer.bound(attempt.queued, node_name, shared.clock.monotonic() - attempt.began)
    note = f"Successfully assigned {assumed.key} to {node_name}"
    attempt.record_event(assumed, kind="Normal", reason="Scheduled", action="Binding", note=note)
    complain = attempt.profile.framework.complain
    for plugin in attempt.profile.post_binding:
        caller(binding.state)(plugin, "post_bind", complain, binding.state, assumed, node_name)
    activate(shared, binding.state)


def _failed(attempt: Attempt, status: Status) -> None:
    """Free the room and requeue the pod. After an error other pods are woken first; after a rejection, only others."""
    queue, freed = attempt.shared.queue, attempt.undo()
    if freed is not None and not status.is_rejected:
        queue.move_all(_FREED, old=freed)
    attempt.report_failure(status)
    if freed is not None and status.is_rejected:
        queue.move_all(_FREED, old=freed, predicate=lambda other: other.uid != freed.uid)


def activate(shared: Shared, state: CycleState) -> None:
    """Move the pods that plugins named during the cycle to the active queue."""
    if state.pods_to_activate:
        shared.queue.activate(state.pods_to_activate.values())
        state.pods_to_activate.clear()
