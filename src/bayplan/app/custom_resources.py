"""The live copy of custom resources: one reflector for each type that an enabled plugin watches.

A definition (CRD) that is not installed is the normal state of a new cluster, so it stops nothing: the lister stays
empty, the fact is reported once with the command that installs it, and the request is repeated until it is there.
The same goes for a missing permission. An object that does not fit its type is reported by name and skipped.

Which types are followed changes with a reload: `follow` names all of them, and what is no longer named is dropped.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
import structlog

from bayplan.client.backoff import Backoff, BackoffSettings, Draw
from bayplan.client.errors import ClientError, Forbidden, NotFound, api_error
from bayplan.client.reflector import Reflector, ReflectorSettings
from bayplan.client.transport import Transport
from bayplan.framework.resources import ResourceInfo, resource_info
from bayplan.observe.clock import Clock

__all__ = ["CustomResourceReflectors"]

_log = structlog.get_logger()
_SETTLE_SECONDS = 10.0
_RETRY = BackoffSettings(initial_seconds=1.0, ceiling_seconds=15.0)

Handler = Callable[[Any, Any], None]


class CustomResourceReflectors:
    """Follows custom resources from `run` until it is cancelled."""

    def __init__(
        self,
        transport: Transport,
        handler: Callable[[str], Handler],
        *,
        clock: Clock,
        draw: Draw,
        settings: ReflectorSettings | None = None,
        retry: BackoffSettings = _RETRY,
    ) -> None:
        """`handler` gives, for the event name of a resource, what to call with (old, new)."""
        self._transport, self._handler, self._clock, self._draw = transport, handler, clock, draw
        self._settings, self._retry = settings, retry
        self._followed: dict[type[Any], _Followed] = {}
        self._tasks: dict[type[Any], asyncio.Task[None]] = {}
        self._group: asyncio.TaskGroup | None = None

    def follow(self, kinds: Iterable[type[Any]]) -> None:
        """From now on follow exactly these types."""
        wanted = dict.fromkeys(kinds)
        for kind in [kind for kind in self._followed if kind not in wanted]:
            del self._followed[kind]
            task = self._tasks.pop(kind, None)
            if task is not None:
                task.cancel()
        for kind in wanted:
            if kind not in self._followed:
                self._followed[kind] = self._make(kind)
                self._start(kind)

    def _make(self, kind: type[Any]) -> _Followed:
        info = resource_info(kind)
        reflector = Reflector(
            self._transport,
            info.path,
            kind,
            _sharing(self._handler(info.event_name)),
            clock=self._clock,
            draw=self._draw,
            settings=self._settings,
        )
        return _Followed(info, reflector, self._transport, self._clock, Backoff(self._retry, draw=self._draw))

    def _start(self, kind: type[Any]) -> None:
        if self._group is not None:
            followed = self._followed[kind]
            self._tasks[kind] = self._group.create_task(followed.run(), name=f"custom resource {followed.info.path}")

    async def run(self) -> None:
        """Follow until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                for kind in self._followed:
                    self._start(kind)
                await asyncio.Event().wait()
        finally:
            self._group = None
            self._tasks.clear()

    async def wait_until_settled(self, *, timeout: float = _SETTLE_SECONDS) -> None:
        """Until each type is synced or known to be unavailable; not longer than the timeout, for one may hang."""
        waits = [asyncio.ensure_future(followed.settled.wait()) for followed in self._followed.values()]
        if not waits:
            return
        _, late = await asyncio.wait(waits, timeout=timeout)
        for wait in late:
            wait.cancel()
        for followed in self._followed.values():
            if not followed.settled.is_set():
                _log.warning("custom resource does not answer; going on without", resource=followed.info.crd_name)

    def problems(self) -> list[str]:
        """Why a lister is empty or incomplete, a sentence each."""
        return [problem for followed in self._followed.values() for problem in followed.problems()]


def _sharing(handle: Handler) -> Handler:
    def changed(old: Any, new: Any) -> None:
        if new is not None:
            # A field that may hold anything may be nested deeper than Python calls go; it stays as it is.
            with contextlib.suppress(RecursionError):
                _share_strings(new, {})
        handle(old, new)

    return changed


def _share_strings(item: Any, known: dict[str, str]) -> Any:
    """Let equal strings of an object be one: one with thousands of entries has the same few names and amounts in all of
    them, and they take more than the entries."""
    if isinstance(item, str):
        return known.setdefault(item, item)
    if isinstance(item, list):
        item[:] = [_share_strings(each, known) for each in item]
    elif isinstance(item, dict):
        for key, each in item.items():
            item[key] = _share_strings(each, known)
    elif isinstance(item, msgspec.Struct):
        for name in item.__struct_fields__:
            msgspec.structs.force_setattr(item, name, _share_strings(getattr(item, name), known))
    return item


class _Followed:
    """One type: requested until it is served, then reflected."""

    def __init__(
        self, info: ResourceInfo, reflector: Reflector[Any], transport: Transport, clock: Clock, backoff: Backoff
    ) -> None:
        self.info = info
        self.settled = asyncio.Event()
        """Set once it is synced, or known that it cannot be for now."""
        self._reflector, self._transport, self._clock, self._backoff = reflector, transport, clock, backoff
        self._complaint = ""

    async def run(self) -> None:
        while not await self._is_served():
            self.settled.set()
            await self._clock.sleep(self._backoff.next_delay())
        reflecting = asyncio.create_task(self._reflector.run(), name=f"reflector {self.info.path}")
        try:
            await self._reflector.synced.wait()
            self.settled.set()
            await reflecting
        finally:
            reflecting.cancel()
            await asyncio.gather(reflecting, return_exceptions=True)

    async def _is_served(self) -> bool:
        try:
            response = await self._transport.request("GET", self.info.path, query={"limit": "1"})
            if response.status != 200:
                raise api_error(response.status, response.body, headers=response.headers)
        except ClientError as error:
            self._complain(error)
            return False
        if self._complaint:
            _log.info("custom resource is served now", resource=self.info.crd_name)
        self._complaint = ""
        return True

    def _complain(self, error: ClientError) -> None:
        complaint = _sentence(self.info, error)
        if complaint != self._complaint:
            self._complaint = complaint
            _log.warning(complaint)

    def problems(self) -> list[str]:
        if self._complaint:
            return [self._complaint]
        rejected = self._reflector.replica.rejected
        return [f"{self.info.kind} `{key}` is skipped: {reason}" for key, reason in rejected.items()]


def _sentence(info: ResourceInfo, error: ClientError) -> str:
    if isinstance(error, NotFound):
        command = f"bayplan render crds{'' if info.is_owned else ' --all'}"
        yours = "" if info.is_owned else "; if the resource is yours, write `owned=True` where its type is declared"
        return (
            f"custom resource `{info.crd_name}` ({info.version}) is not installed, so plugins see none of its objects; "
            f"`{command}`, with the --config and --plugin of this scheduler, prints its definition for kubectl "
            f"apply{yours}"
        )
    if isinstance(error, Forbidden):
        return (
            f"not allowed to list `{info.crd_name}`, so plugins see none of its objects; "
            "`bayplan render manifests | kubectl apply -f -` grants it"
        )
    return f"cannot list `{info.crd_name}`: {error}"
