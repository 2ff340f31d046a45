"""The live copy of the cluster: one reflector a kind, fed into the intake, synced before anything is scheduled.

Kinds that the API server does not serve (device classes before 1.34, for one) are left out; the list is asked for, not
assumed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
import structlog

from bayplan.api.kinds import KINDS, Kind
from bayplan.api.meta import KubeObject
from bayplan.api.node import Node
from bayplan.api.pod import Pod
from bayplan.client.backoff import Draw
from bayplan.client.errors import api_error
from bayplan.client.reflector import Reflector, ReflectorSettings
from bayplan.client.transport import Transport
from bayplan.observe.clock import Clock

__all__ = ["Watching", "served_kinds"]

_log = structlog.get_logger()
_NEEDED = (Node, Pod)
"""Nothing can be scheduled without these. Without one of the others, say volumes, only pods that use it must wait."""
_PATIENCE_WITH_REFUSALS_SECONDS = 10.0
"""A server that has just started refuses everybody until it has read who may do what."""
_PAUSE_SECONDS = 0.25
_LIVE_PODS = "status.phase!=Succeeded,status.phase!=Failed"


class _ApiResource(msgspec.Struct):
    name: str = ""


class _ApiResourceList(msgspec.Struct):
    resources: list[_ApiResource] | None = None


async def served_kinds(transport: Transport, kinds: Iterable[Kind] = KINDS) -> list[Kind]:
    """The kinds of our table that this API server serves."""
    served: dict[str, set[str]] = {}
    found = []
    for kind in kinds:
        root = f"/apis/{kind.api_version}" if kind.group else f"/api/{kind.version}"
        if root not in served:
            served[root] = await _resources(transport, root)
        if kind.plural in served[root]:
            found.append(kind)
    return found


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
        kinds: Iterable[Kind],
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
        """A pod as last heard from the API server."""
        reflector = self.reflectors.get(Pod)
        return None if reflector is None else reflector.objects.get(f"{namespace}/{name}")

    @property
    def is_synced(self) -> bool:
        return not self.unsynced()

    def unsynced(self) -> list[str]:
        """What is not there yet, each with the last error, if any."""
        waiting = [r for r in self.reflectors.values() if not r.synced.is_set() and r.path not in self._left_out]
        return [f"{r.path}{f' ({r.stats.last_error})' if r.stats.last_error else ''}" for r in waiting]

    async def run(self) -> None:
        """Reflect until cancelled. Nodes come before pods, so that few pods are orphans at the start."""
        async with asyncio.TaskGroup() as group:
            for reflector in self.reflectors.values():
                group.create_task(reflector.run(), name=f"reflector {reflector.path}")

    async def wait_until_synced(self) -> list[str]:
        """Wait for every kind. What we may not read is waited for a while only, and returned: see `_NEEDED`."""
        deadline = self._clock.monotonic() + _PATIENCE_WITH_REFUSALS_SECONDS
        for kind, reflector in self.reflectors.items():
            while not reflector.synced.is_set():
                is_hopeless = reflector.stats.is_forbidden and self._clock.monotonic() >= deadline
                if is_hopeless and kind not in _NEEDED:
                    self._left_out.append(reflector.path)
                    break
                await self._sync_or_pause(reflector)
        return self._left_out

    async def _sync_or_pause(self, reflector: Reflector[Any]) -> None:
        synced = asyncio.ensure_future(reflector.synced.wait())
        pause = asyncio.ensure_future(self._clock.sleep(_PAUSE_SECONDS))
        try:
            await asyncio.wait({synced, pause}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            synced.cancel()
            pause.cancel()
