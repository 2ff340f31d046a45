"""The binding cycle: one pod, from an assumed node to a binding that the API server has.

Beside the main path: where there is nothing to wait for, on tasks that many bindings share, else on one of its own.
Whatever fails after this point undoes the reservation and the assumption, wakes pods that the freed room may help, and
sends the pod back to the queue.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any

import msgspec

from bayplan.cluster.pod_info import PodInfo
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

__all__ = ["Binding", "activate", "start_binding", "unreserve"]

_SHORT_WAIT_SECONDS = 0.2
"""A wait at Permit that is over so soon needs no announcement; for a group of pods that would double the writes."""
_PRE_BIND, _BIND = ExtensionPoint.PRE_BIND.label, ExtensionPoint.BIND.label
_FREED = ClusterEvent(Resource.ASSIGNED_POD, ActionType.DELETE)


class Binding(msgspec.Struct, frozen=True):
    """What a binding cycle works on. With nothing to do but to bind, it is work that may wait for its turn."""

    shared: Shared
    profile: Profile
    queued: QueuedPod
    assumed: PodInfo
    state: CycleState
    node_name: str
    began: float

    @property
    def name(self) -> str:
        return f"bind {self.assumed.key}"

    def run(self) -> Coroutine[Any, Any, None]:
        return _settle(self, _bind(self))

    def abandon(self) -> None:
        _undo(self)


def start_binding(binding: Binding, *, is_held: bool) -> None:
    """Do the rest beside the main path. `is_held`: a plugin makes the pod wait at Permit."""
    shared, profile = binding.shared, binding.profile
    due = _pre_flight(binding)
    if is_held or due or not profile.binds_at_once:
        shared.start_task(binding.name, _settle(binding, _wait_and_bind(binding, due)))
    else:
        shared.queue.done(binding.assumed.uid)
        shared.start_brief(binding)


async def _settle(binding: Binding, work: Coroutine[Any, Any, Status]) -> None:
    """Every outcome is settled here; only cancellation leaves it."""
    try:
        status = await work
    except asyncio.CancelledError:
        _undo(binding)
        raise
    except Exception as exception:
        status = Error(f"{type(exception).__name__}: {exception}", exception=exception)
    if status.is_success:
        _succeeded(binding)
    else:
        _failed(binding, status)


async def _wait_and_bind(binding: Binding, due: list[Plugin] | Status) -> Status:
    if isinstance(due, Status):
        return due
    shared, uid = binding.shared, binding.assumed.uid
    held = shared.waiting.get(uid)
    if due or (held is not None and not await held.settles_within(_SHORT_WAIT_SECONDS, shared.clock)):
        await _tell_expected_node(binding)
    if held is not None:
        status = await _wait_at_permit(shared, uid)
        if not status.is_success:
            return status
    shared.queue.done(uid)
    if due:
        status = await _pre_bind(binding, due)
        if not status.is_success:
            return status
    return await _bind(binding)


async def _bind(binding: Binding) -> Status:
    shared, profile = binding.shared, binding.profile
    if not shared.is_allowed_to_bind():
        return Error("this replica no longer leads; the pod is left to the next leader")
    if profile.extenders is not None and await profile.extenders.bind(binding.assumed, binding.node_name):
        return SUCCESS
    began, status = shared.clock.monotonic(), SKIP
    for plugin in profile.binding:
        status = await _answer(plugin, "bind", binding)
        if not status.is_skip:
            status = status if status.is_success else _explained("Bind", status)
            break
    return _told(binding, _BIND, status, began)


def _told(binding: Binding, point: str, status: Status, began: float) -> Status:
    """The status, after the time that it took was told."""
    shared = binding.shared
    seconds = shared.clock.monotonic() - began
    shared.observer.extension_point_ran(point, status.code.label, binding.profile.name, seconds)
    return status


def _pre_flight(binding: Binding) -> list[Plugin] | Status:
    """The PreBind plugins that have something to do."""
    profile, state = binding.profile, binding.state
    complain, call = profile.framework.complain, caller(state)
    due: list[Plugin] = []
    for plugin in profile.pre_binding:
        if not callable(getattr(plugin, "pre_bind_pre_flight", None)):
            due.append(plugin)
            continue
        answer = call(plugin, "pre_bind_pre_flight", complain, state, binding.assumed, binding.node_name)
        if isinstance(answer, Status) and answer.is_skip:
            continue
        if isinstance(answer, Status) and not answer.is_success:
            return _explained("PreBindPreFlight", answer)
        due.append(plugin)
    return due


async def _tell_expected_node(binding: Binding) -> None:
    """Let others know where the pod is headed while its binding takes time; not knowing harms nobody."""
    shared = binding.shared
    try:
        await shared.api.patch_pod_status(binding.assumed, nominated_node_name=binding.node_name)
    except Exception as exception:
        shared.observer.plugin_failed("", "nominatedNodeName", exception)


async def _wait_at_permit(shared: Shared, uid: str) -> Status:
    began = shared.clock.monotonic()
    status = await shared.waiting.wait(uid)
    shared.observer.permit_waited(status.code.label, shared.clock.monotonic() - began)
    return status


async def _pre_bind(binding: Binding, due: list[Plugin]) -> Status:
    """Run the PreBind plugins; neighbours that allow it run side by side."""
    began = binding.shared.clock.monotonic()
    for group in _groups(due):
        statuses = await asyncio.gather(*(_answer(plugin, "pre_bind", binding) for plugin in group))
        for status in statuses:
            if not status.is_success:
                return _told(binding, _PRE_BIND, _explained("PreBind", status), began)
    return _told(binding, _PRE_BIND, SUCCESS, began)


def _groups(plugins: Sequence[Plugin]) -> list[list[Plugin]]:
    groups: list[list[Plugin]] = []
    for plugin in plugins:
        if groups and plugin.allow_parallel_pre_bind and groups[-1][-1].allow_parallel_pre_bind:
            groups[-1].append(plugin)
        else:
            groups.append([plugin])
    return groups


async def _answer(plugin: Plugin, method: str, binding: Binding) -> Status:
    times = binding.state.times
    began = 0.0 if times is None else times.monotonic()
    try:
        answer: Status | None = await getattr(plugin, method)(binding.state, binding.assumed, binding.node_name)
        status = SUCCESS if answer is None else answer.by(plugin.name)
    except Exception as exception:
        binding.profile.framework.complain(plugin.name, method, exception)
        status = Error(f"{type(exception).__name__}: {exception}", exception=exception).by(plugin.name)
    if times is not None:
        times.add(plugin.name, POINT_LABELS[method], status.code.label, times.monotonic() - began)
    return status


def _explained(point: str, status: Status) -> Status:
    if status.is_rejected or status.is_skip:
        return status
    text = f'running {point} plugin "{status.plugin}": {status.message}'
    return Error(text, exception=status.exception).by(status.plugin)


def _succeeded(binding: Binding) -> None:
    shared, profile, assumed, node_name = binding.shared, binding.profile, binding.assumed, binding.node_name
    shared.observer.bound(binding.queued, node_name, shared.clock.monotonic() - binding.began)
    note = f"Successfully assigned {assumed.key} to {node_name}"
    profile.recorder.event(assumed, kind="Normal", reason="Scheduled", action="Binding", note=note)
    for plugin in profile.post_binding:
        complain = profile.framework.complain
        caller(binding.state)(plugin, "post_bind", complain, binding.state, assumed, node_name)
    activate(shared, binding.state)


def _undo(binding: Binding) -> None:
    """Give the reservation and the room back."""
    shared, assumed = binding.shared, binding.assumed
    unreserve(binding.profile, binding.state, assumed, binding.node_name)
    shared.queue.done(assumed.uid)
    shared.cache.forget(assumed.uid)


def _failed(binding: Binding, status: Status) -> None:
    """The room that the pod held is free again: wake others before the pod itself goes back, or after."""
    shared, profile = binding.shared, binding.profile
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
