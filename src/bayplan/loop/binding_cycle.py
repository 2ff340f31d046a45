"""The binding cycle: one pod, from an assumed node to a binding that the API server has.

A task per pod. Whatever fails after this point undoes the reservation and the assumption, wakes pods that the freed
room may help, and sends the pod back to the queue.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec

from bayplan.framework.cycle import CycleState
from bayplan.framework.diagnosis import Diagnosis
from bayplan.framework.events import ActionType, ClusterEvent, Resource
from bayplan.framework.plugin import Plugin
from bayplan.framework.points import ExtensionPoint
from bayplan.framework.queued import QueuedPod
from bayplan.framework.runtime.call import POINT_LABELS, caller
from bayplan.framework.status import SKIP, SUCCESS, Error, Status
from bayplan.loop.failure import CLEAR_NOMINATION, report_failure
from bayplan.loop.profile import Profile, Shared
from bayplan.snapshot.pod_info import PodInfo

__all__ = ["Binding", "activate", "bind_pod", "unreserve"]

_SHORT_WAIT_SECONDS = 0.2
"""A wait at Permit that is over so soon needs no announcement; for a group of pods that would double the writes."""
_PRE_BIND, _BIND = ExtensionPoint.PRE_BIND.label, ExtensionPoint.BIND.label
_FREED = ClusterEvent(Resource.ASSIGNED_POD, ActionType.DELETE)


class Binding(msgspec.Struct, frozen=True, kw_only=True):
    """What a binding cycle works on."""

    queued: QueuedPod
    assumed: PodInfo
    state: CycleState
    node_name: str
    began: float


async def bind_pod(shared: Shared, profile: Profile, binding: Binding) -> None:
    """See the module. Every outcome is settled here; only cancellation leaves it."""
    try:
        status = await _bind(shared, profile, binding)
    except asyncio.CancelledError:
        _undo(shared, profile, binding)
        raise
    except Exception as exception:
        status = Error(f"{type(exception).__name__}: {exception}", exception=exception)
    if status.is_success:
        _succeeded(shared, profile, binding)
    else:
        _failed(shared, profile, binding, status)


async def _bind(shared: Shared, profile: Profile, binding: Binding) -> Status:
    due = _pre_flight(profile, binding)
    if isinstance(due, Status):
        return due
    uid = binding.assumed.uid
    held = shared.waiting.get(uid)
    if due or (held is not None and not await held.settles_within(_SHORT_WAIT_SECONDS, shared.clock)):
        await _tell_expected_node(shared, binding)
    if held is not None:
        status = await _wait_at_permit(shared, uid)
        if not status.is_success:
            return status
    shared.queue.done(uid)
    if due:
        status = await _pre_bind(shared, profile, binding, due)
        if not status.is_success:
            return status
    if not shared.is_allowed_to_bind():
        return Error("this replica no longer leads; the pod is left to the next leader")
    if profile.extenders is not None and await profile.extenders.bind(binding.assumed, binding.node_name):
        return SUCCESS
    return await _run_bind(shared, profile, binding)


def _told(shared: Shared, profile: Profile, point: str, status: Status, began: float) -> Status:
    """The status, after the time that it took was told."""
    seconds = shared.clock.monotonic() - began
    shared.observer.extension_point_ran(point, status.code.label, profile.name, seconds)
    return status


def _pre_flight(profile: Profile, binding: Binding) -> list[Plugin] | Status:
    """The PreBind plugins that have something to do."""
    framework, call = profile.framework, caller(binding.state)
    due: list[Plugin] = []
    for plugin in framework.at(ExtensionPoint.PRE_BIND):
        if not callable(getattr(plugin, "pre_bind_pre_flight", None)):
            due.append(plugin)
            continue
        answer = call(
            plugin, "pre_bind_pre_flight", framework.complain, binding.state, binding.assumed, binding.node_name
        )
        if isinstance(answer, Status) and answer.is_skip:
            continue
        if isinstance(answer, Status) and not answer.is_success:
            return _explained("PreBindPreFlight", answer)
        due.append(plugin)
    return due


async def _tell_expected_node(shared: Shared, binding: Binding) -> None:
    """Let others know where the pod is headed while its binding takes time; not knowing harms nobody."""
    try:
        await shared.api.patch_pod_status(binding.assumed, nominated_node_name=binding.node_name)
    except Exception as exception:
        shared.observer.plugin_failed("", "nominatedNodeName", exception)


async def _wait_at_permit(shared: Shared, uid: str) -> Status:
    began = shared.clock.monotonic()
    status = await shared.waiting.wait(uid)
    shared.observer.permit_waited(status.code.label, shared.clock.monotonic() - began)
    return status


async def _pre_bind(shared: Shared, profile: Profile, binding: Binding, due: list[Plugin]) -> Status:
    """Run the PreBind plugins; neighbours that allow it run side by side."""
    began = shared.clock.monotonic()
    for group in _groups(due):
        statuses = await asyncio.gather(*(_answer(profile, plugin, "pre_bind", binding) for plugin in group))
        for status in statuses:
            if not status.is_success:
                return _told(shared, profile, _PRE_BIND, _explained("PreBind", status), began)
    return _told(shared, profile, _PRE_BIND, SUCCESS, began)


def _groups(plugins: Sequence[Plugin]) -> list[list[Plugin]]:
    groups: list[list[Plugin]] = []
    for plugin in plugins:
        if groups and plugin.allow_parallel_pre_bind and groups[-1][-1].allow_parallel_pre_bind:
            groups[-1].append(plugin)
        else:
            groups.append([plugin])
    return groups


async def _run_bind(shared: Shared, profile: Profile, binding: Binding) -> Status:
    began, status = shared.clock.monotonic(), SKIP
    for plugin in profile.framework.at(ExtensionPoint.BIND):
        status = await _answer(profile, plugin, "bind", binding)
        if not status.is_skip:
            status = status if status.is_success else _explained("Bind", status)
            break
    return _told(shared, profile, _BIND, status, began)


async def _answer(profile: Profile, plugin: Plugin, method: str, binding: Binding) -> Status:
    times = binding.state.times
    began = 0.0 if times is None else times.monotonic()
    try:
        answer: Status | None = await getattr(plugin, method)(binding.state, binding.assumed, binding.node_name)
        status = SUCCESS if answer is None else answer.by(plugin.name)
    except Exception as exception:
        profile.framework.complain(plugin.name, method, exception)
        status = Error(f"{type(exception).__name__}: {exception}", exception=exception).by(plugin.name)
    if times is not None:
        times.add(plugin.name, POINT_LABELS[method], status.code.label, times.monotonic() - began)
    return status


def _explained(point: str, status: Status) -> Status:
    if status.is_rejected or status.is_skip:
        return status
    text = f'running {point} plugin "{status.plugin}": {status.message}'
    return Error(text, exception=status.exception).by(status.plugin)


def _succeeded(shared: Shared, profile: Profile, binding: Binding) -> None:
    assumed, node_name = binding.assumed, binding.node_name
    shared.observer.bound(binding.queued, node_name, shared.clock.monotonic() - binding.began)
    note = f"Successfully assigned {assumed.key} to {node_name}"
    profile.recorder.event(assumed, kind="Normal", reason="Scheduled", action="Binding", note=note)
    framework = profile.framework
    for plugin in framework.at(ExtensionPoint.POST_BIND):
        caller(binding.state)(plugin, "post_bind", framework.complain, binding.state, assumed, node_name)
    activate(shared, binding.state)


def _undo(shared: Shared, profile: Profile, binding: Binding) -> bool:
    """Give the reservation and the room back; whether the pod was still only assumed."""
    unreserve(profile, binding.state, binding.assumed, binding.node_name)
    shared.queue.done(binding.assumed.uid)
    return shared.cache.forget(binding.assumed.uid) is not None


def _failed(shared: Shared, profile: Profile, binding: Binding, status: Status) -> None:
    """The room that the pod held is free again: wake others before the pod itself goes back, or after."""
    unreserve(profile, binding.state, binding.assumed, binding.node_name)
    freed = shared.cache.forget(binding.assumed.uid)
    if freed is not None and not status.is_rejected:
        shared.queue.move_all(_FREED, old=freed)
    diagnosis = Diagnosis.of_one_node(status) if status.is_rejected else None
    report_failure(
        shared,
        profile,
        binding.queued,
        status,
        diagnosis=diagnosis,
        nominated_node_name=CLEAR_NOMINATION,
        began=binding.began,
    )
    if freed is not None and status.is_rejected:
        shared.queue.move_all(_FREED, old=freed, predicate=lambda other: other.uid != freed.uid)


def unreserve(profile: Profile, state: CycleState, assumed: PodInfo, node_name: str) -> None:
    """Undo every reservation, in reverse order."""
    framework = profile.framework
    for plugin in reversed(framework.at(ExtensionPoint.RESERVE)):
        if callable(getattr(plugin, "unreserve", None)):
            caller(state)(plugin, "unreserve", framework.complain, state, assumed, node_name)


def activate(shared: Shared, state: CycleState) -> None:
    """Move the pods that plugins named during the cycle to the active queue."""
    if state.pods_to_activate:
        shared.queue.activate(state.pods_to_activate.values())
        state.pods_to_activate.clear()
