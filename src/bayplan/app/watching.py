"""The live copy of the cluster: one reflector a kind, fed into the intake, synced before anything is scheduled.

Kinds that the API server does not serve (device classes before 1.34, for one) are left out, by the
server's own list. Kinds that it serves and that this user may not read must not be left out: without disruption budgets
a scheduler evicts too much, without volumes it binds to wrong nodes. So nothing is scheduled until every kind that
decisions read is there, as with kube-scheduler, and the log repeats what is missing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec
import structlog

from bayplan.api.devices import ResourceClaim
from bayplan.api.kinds import DEVICE_TAINT_RULES, KINDS, ObjectKind
from bayplan.api.meta import KubeObject
from bayplan.api.pod import Pod
from bayplan.api.storage import PersistentVolume, PersistentVolumeClaim
from bayplan.api.workload import PriorityClass
from bayplan.client.backoff import Draw
from bayplan.client.errors import api_error
from bayplan.client.reflector import Reflector, ReflectorSettings
from bayplan.client.transport import Transport
from bayplan.config.own import BayplanConfig
from bayplan.framework.queued import QueuedPod
from bayplan.loop.observer import Observer
from bayplan.observe.clock import Clock

__all__ = ["DISPENSABLE", "Watching", "served_kinds", "wanted_kinds"]

_log = structlog.get_logger()
DISPENSABLE = (PriorityClass,)
"""Read for explanations only: no decision reads them, and kube-scheduler's own role does not grant them."""
_WRITTEN = (Pod, ResourceClaim, PersistentVolumeClaim, PersistentVolume)
"""What a scheduler writes and decides by."""
_PATIENCE_SECONDS = 10.0
"""A server that has just started refuses all users until it has read its roles."""
_REPEAT_SECONDS = 30.0
_PAUSE_SECONDS = 0.25
_LIVE_PODS = "status.phase!=Succeeded,status.phase!=Failed"


def wanted_kinds(own: BayplanConfig) -> tuple[ObjectKind, ...]:
    return (*KINDS, DEVICE_TAINT_RULES) if own.device_taint_rules else KINDS


class _ApiResource(msgspec.Struct):
    name: str = ""


class _ApiResourceList(msgspec.Struct):
    resources: list[_ApiResource] | None = None


async def served_kinds(transport: Transport, kinds: Iterable[ObjectKind] = KINDS) -> list[ObjectKind]:
    """The kinds of our table that this API server serves."""
    kinds = list(kinds)
    first, *others = dict.fromkeys(_root(kind) for kind in kinds)
    # A server that is away or refuses gets one request, not one for each group.
    served = {first: await _resources(transport, first)}
    answers = await asyncio.gather(*(_resources(transport, root) for root in others), return_exceptions=True)
    for root, answer in zip(others, answers, strict=True):
        if isinstance(answer, BaseException):
            raise answer
        served[root] = answer
    return [kind for kind in kinds if kind.plural in served[_root(kind)]]


def _root(kind: ObjectKind) -> str:
    return f"/apis/{kind.api_version}" if kind.group else f"/api/{kind.version}"


async def _resources(transport: Transport, root: str) -> set[str]:
    response = await transport.request("GET", root)
    if response.status == 404:
        return set()
    if response.status != 200:
        raise api_error(response.status, response.body, headers=response.headers)
    listed = msgspec.json.decode(response.body, type=_ApiResourceList)
    return {resource.name for resource in listed.resources or ()}


class Watching:
    """All reflectors of a scheduler."""

    def __init__(
        self,
        transport: Transport,
        kinds: Iterable[ObjectKind],
        handler: Callable[[type[KubeObject]], Callable[[Any, Any], None]],
        *,
        clock: Clock,
        draw: Draw,
        settings: ReflectorSettings | None = None,
    ) -> None:
        self._clock = clock
        self._left_out: list[str] = []
        self.reflectors: dict[type[KubeObject], Reflector[Any]] = {
            kind.type: Reflector(
                transport,
                kind.path,
                kind.type,
                handler(kind.type),
                clock=clock,
                draw=draw,
                field_selector=_LIVE_PODS if kind.type is Pod else "",
                settings=settings,
            )
            for kind in kinds
        }

    def pod(self, namespace: str, name: str) -> Pod | None:
        """A pod as the API server last sent it."""
        reflector = self.reflectors.get(Pod)
        return None if reflector is None else reflector.objects.get(f"{namespace}/{name}")

    def pods(self) -> Iterable[Pod]:
        """All pods that are not finished, of any scheduler, as the API server last sent them."""
        reflector = self.reflectors.get(Pod)
        return () if reflector is None else reflector.objects.values()

    def pods_by_key(self) -> Mapping[str, Pod]:
        """The same by `namespace/name`."""
        reflector = self.reflectors.get(Pod)
        return {} if reflector is None else reflector.objects

    @property
    def is_synced(self) -> bool:
        return not self.unsynced()

    def unsynced(self) -> list[str]:
        """What is not there yet, or was last seen on a watch that fell silent, each with the last error, if any."""
        missing = [r for r in self.reflectors.values() if not r.synced.is_set() and r.path not in self._left_out]
        silent = [r for r in self.reflectors.values() if r.stats.is_silent and r.synced.is_set()]
        return _described(missing) + [f"{r.path} (its watch fell silent)" for r in silent]

    def expect_bound(self, namespace: str, name: str, *, uid: str) -> None:
        """This pod was bound just now, which the watch of pods must show, unless it was faster than the answer."""
        known = self.pod(namespace, name)
        if known is not None and known.uid == uid and not known.spec.node_name:
            self.reflectors[Pod].expect_event()

    async def catch_up(self, until: float) -> None:
        """Know everything that another leader wrote until then, by the monotonic clock. The watch may not have told
        yet: pods would be bound into room that is taken, and others evicted beside those that are gone already."""
        await asyncio.gather(*(reflector.catch_up(until) for reflector in self._written()))

    def prepare_refresh(self) -> None:
        """A leader may soon be past its deadline."""
        for reflector in self._written():
            reflector.prepare_refresh()

    def refresh(self) -> None:
        """Begin to learn all that leaders wrote until now."""
        for reflector in self._written():
            reflector.refresh()

    def _written(self) -> list[Reflector[Any]]:
        return [self.reflectors[kind] for kind in _WRITTEN if kind in self.reflectors]

    async def run(self) -> None:
        """Reflect until cancelled. Nodes come before pods, so that few pods are orphans at the start."""
        async with asyncio.TaskGroup() as group:
            for reflector in self.reflectors.values():
                group.create_task(reflector.run(), name=f"reflector {reflector.path}")

    async def wait_until_synced(self) -> list[str]:
        """Wait for every kind that decisions read, however long it takes; the paths of others that may not be read."""
        speak_at = self._clock.monotonic() + _PATIENCE_SECONDS
        while missing := [r for kind, r in self.reflectors.items() if self._is_missing(kind, r)]:
            if self._clock.monotonic() >= speak_at:
                speak_at += _REPEAT_SECONDS
                self._log_missing(missing)
            await self._sync_or_pause(missing[0])
        self._left_out = [r.path for r in self.reflectors.values() if not r.synced.is_set()]
        return self._left_out

    def _is_missing(self, kind: type[KubeObject], reflector: Reflector[Any]) -> bool:
        is_done_without = kind in DISPENSABLE and reflector.stats.is_forbidden
        return not reflector.synced.is_set() and not is_done_without

    def _log_missing(self, missing: list[Reflector[Any]]) -> None:
        forbidden = [reflector.path for reflector in missing if reflector.stats.is_forbidden]
        if forbidden:
            _log.error(
                "nothing is scheduled: this user may not read objects that decisions need",
                missing=forbidden,
                hint="grant get, list and watch on them, no restart needed; `bayplan doctor` names every missing rule",
            )
        others = [reflector for reflector in missing if not reflector.stats.is_forbidden]
        if others:
            _log.warning("nothing is scheduled yet: still reading the cluster", waiting_for=_described(others))

    async def _sync_or_pause(self, reflector: Reflector[Any]) -> None:
        synced = asyncio.ensure_future(reflector.synced.wait())
        pause = asyncio.ensure_future(self._clock.sleep(_PAUSE_SECONDS))
        try:
            await asyncio.wait({synced, pause}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            synced.cancel()
            pause.cancel()


def _described(reflectors: Iterable[Reflector[Any]]) -> list[str]:
    """Each by its path, with its last error, if any."""
    return [f"{r.path}{f' ({r.stats.last_error})' if r.stats.last_error else ''}" for r in reflectors]


class BindingsShown(Observer):
    """Has the watch of pods checked after each binding of our own."""

    def __init__(self, watching: Callable[[], Watching]) -> None:
        self._watching = watching

    def bound(self, queued: QueuedPod, node_name: str, seconds: float) -> None:
        info = queued.info
        self._watching().expect_bound(info.namespace, info.name, uid=info.pod.uid)
