"""Follows pods, groups and quotas, and writes the status of those that changed.

Every change only marks a group or a namespace; one worker takes the marks in order and writes what differs. A write
that fails is tried again after a while. Nothing is written by a replica that does not lead.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec
import structlog

from bayplan.api.pod import Pod
from bayplan.app.controllers.elastic_quota_status import is_up_to_date, used_by
from bayplan.app.controllers.pod_group_status import PENDING, SCHEDULING, next_status
from bayplan.app.custom_resources import CustomResourceReflectors
from bayplan.client.backoff import Backoff, BackoffSettings, Draw
from bayplan.client.errors import ClientError, Conflict, NotFound, NotSent
from bayplan.client.events import EventRecorder, EventSubject
from bayplan.client.reflector import Reflector
from bayplan.client.retry import RetryingSender
from bayplan.client.transport import Transport
from bayplan.client.writer import Writer
from bayplan.cluster.pod_info import parse_time
from bayplan.framework.plugin import Permission
from bayplan.framework.resources import resource_info
from bayplan.observe.clock import Clock
from bayplan.plugins.community.capacity_scheduling.elastic_quota import ElasticQuota
from bayplan.plugins.community.coscheduling.pod_group import POD_GROUP_LABEL, PodGroup

__all__ = [
    "CONTROLLER_NAME",
    "PERMISSIONS",
    "WATCHES",
    "ControllerOptions",
    "StatusControllers",
    "kinds_among",
    "permissions_for",
]

CONTROLLER_NAME = "sched-plugins-controllers"
"""Also the name of the lease, as in the original."""
WATCHES = (PodGroup, ElasticQuota)
_READ = ("get", "list", "watch")


def permissions_for(kinds: Iterable[type[Any]]) -> tuple[Permission, ...]:
    """What the controllers of these kinds need, and no more."""
    infos = [resource_info(kind) for kind in kinds]
    return (
        Permission("", "pods", _READ),
        *(Permission(info.group, info.plural, _READ) for info in infos),
        *(Permission(info.group, f"{info.plural}/status", ("patch",)) for info in infos),
        Permission("events.k8s.io", "events", ("create", "patch")),
    )


PERMISSIONS = permissions_for(WATCHES)
_STALE_SECONDS = 48 * 3600.0
_RETRY = BackoffSettings(initial_seconds=0.5, ceiling_seconds=30.0)

_log = structlog.get_logger()


@dataclass(frozen=True, kw_only=True)
class ControllerOptions:
    clock: Clock
    draw: Draw
    instance: str = CONTROLLER_NAME
    is_leader: Callable[[], bool] = lambda: True
    kinds: tuple[type[Any], ...] = WATCHES
    """Those whose status is written; the others are not even read."""


def kinds_among(watched: Iterable[type[Any]]) -> tuple[type[Any], ...]:
    """The kinds to maintain beside plugins that watch these; all of them when the plugins watch none."""
    known = set(watched)
    return tuple(kind for kind in WATCHES if kind in known) or WATCHES


class _Mark(NamedTuple):
    """What to reconcile: a group (namespace and name), or the quotas of a namespace."""

    kind: type[Any]
    namespace: str
    name: str = ""


def _marks_of(pod: Pod | None) -> list[_Mark]:
    """What a pod counts for."""
    if pod is None:
        return []
    name = pod.labels.get(POD_GROUP_LABEL)
    quota = _Mark(ElasticQuota, pod.namespace)
    return [quota, _Mark(PodGroup, pod.namespace, name)] if name else [quota]


class StatusControllers:
    """`run` it in a task; cancel the task to stop."""

    def __init__(self, transport: Transport, options: ControllerOptions) -> None:
        self._options = options
        clock, draw = options.clock, options.draw
        self._marks: dict[_Mark, None] = {}
        self._is_marked = asyncio.Event()
        self._backoff = Backoff(_RETRY, draw=draw)
        self._members: dict[_Mark, dict[str, Pod]] = {}
        """The pods that a mark stands for, by key."""
        self._objects: dict[type[Any], dict[str, Any]] = {kind: {} for kind in WATCHES}
        self._pods = Reflector(transport, "/api/v1/pods", Pod, self._pod_changed, clock=clock, draw=draw)
        self._writer = Writer(transport, clock=clock, draw=draw, may_write=options.is_leader)
        self._custom = CustomResourceReflectors(transport, self._handler, clock=clock, draw=draw)
        self._custom.follow(options.kinds)
        self._events = EventRecorder(
            RetryingSender(transport, clock=clock, draw=draw, may_write=options.is_leader),
            clock=clock,
            instance=options.instance,
            is_busy=lambda: False,
        )

    async def run(self) -> None:
        """Keep the status up to date until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._pods.run(), name="controllers: pods")
            group.create_task(self._custom.run(), name="controllers: custom resources")
            group.create_task(self._events.run(), name="controllers: events")
            await self._pods.synced.wait()
            group.create_task(self._work(), name="controllers: worker")

    # What changed

    def _handler(self, event_name: str) -> Callable[[Any, Any], None]:
        kind = next(kind for kind in WATCHES if resource_info(kind).event_name == event_name)
        known = self._objects[kind]

        def changed(old: Any, new: Any) -> None:
            if new is None:
                known.pop(old.key, None)
                return
            known[new.key] = new
            self._mark(_Mark(kind, new.namespace, new.name if kind is PodGroup else ""))

        return changed

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        for mark in _marks_of(old):
            members = self._members.get(mark, {})
            members.pop(old.key if old is not None else "", None)
            if not members:
                self._members.pop(mark, None)
            self._mark(mark)
        for mark in _marks_of(new):
            if new is not None:
                self._members.setdefault(mark, {})[new.key] = new
            self._mark(mark)

    def _mark(self, mark: _Mark) -> None:
        self._marks[mark] = None
        self._is_marked.set()

    # What to do about it

    async def _work(self) -> None:
        while True:
            await self._is_marked.wait()
            if not self._options.is_leader():
                await self._options.clock.sleep(1.0)
                continue
            mark = next(iter(self._marks))
            del self._marks[mark]
            if not self._marks:
                self._is_marked.clear()
            await self._settle(mark)

    async def _settle(self, mark: _Mark) -> None:
        try:
            if mark.kind is PodGroup:
                await self._update_group(mark)
            else:
                await self._update_quotas(mark)
        except NotFound:
            return
        except NotSent:
            self._mark(mark)
            return
        except Conflict:
            # Another client wrote it meanwhile: the watch brings that version, and with it the mark.
            self._mark(mark)
            await self._options.clock.sleep(self._backoff.next_delay())
            return
        except ClientError as error:
            _log.warning("status not written; trying again", kind=mark.kind.__name__, error=str(error))
            self._mark(mark)
            await self._options.clock.sleep(self._backoff.next_delay())
            return
        self._backoff.succeeded()

    async def _update_group(self, mark: _Mark) -> None:
        group: PodGroup | None = self._objects[PodGroup].get(f"{mark.namespace}/{mark.name}")
        if group is None:
            return
        self._warn_if_stale(group)
        status = next_status(group, list(self._members.get(mark, {}).values()))
        if status != group.status:
            await self._patch(group, {"status": msgspec.to_builtins(status) | _zeros(status)})

    def _warn_if_stale(self, group: PodGroup) -> None:
        status, created = group.status, group.metadata.creation_timestamp
        if status.phase not in (PENDING, SCHEDULING) or status.running or not created:
            return
        if self._options.clock.now() - parse_time(created) > _STALE_SECONDS:
            self._event(group, "Warning", "Timeout", "schedule time longer than 48 hours")

    async def _update_quotas(self, mark: _Mark) -> None:
        quotas = [quota for quota in self._objects[ElasticQuota].values() if quota.namespace == mark.namespace]
        if not quotas:
            return
        quota: ElasticQuota = min(quotas, key=lambda each: each.name)
        used = used_by(quota, self._members.get(mark, {}).values())
        if not is_up_to_date(quota, used):
            await self._patch(quota, {"status": {"used": used}})
            self._event(quota, "Normal", "Synced", f"Elastic Quota {quota.key} synced successfully")

    async def _patch(self, item: Any, change: dict[str, Any]) -> None:
        info = resource_info(type(item))
        client = self._writer.resource(info.group, info.version, info.plural)
        expected = {"uid": item.uid, "resourceVersion": item.metadata.resource_version}
        change = {"metadata": expected, **change}
        await client.patch(item.name, change, namespace=item.namespace, subresource="status")

    def _event(self, item: Any, kind: str, reason: str, note: str) -> None:
        info = resource_info(type(item))
        regarding = EventSubject(
            kind=info.kind, api_version=info.api_version, namespace=item.namespace, name=item.name, uid=item.uid
        )
        self._events.record(
            regarding, controller=CONTROLLER_NAME, type=kind, reason=reason, action="Reconciling", note=note
        )


def _zeros(status: Any) -> dict[str, int]:
    """Counts that went back to zero must be written too, though structs leave defaults out."""
    return {name: getattr(status, name) for name in ("running", "succeeded", "failed")}
