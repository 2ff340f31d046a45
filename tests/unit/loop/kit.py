"""A whole scheduler without an API server: the real parts, a transport that records, a clock that waits to be moved.

Objects are handed to the reflectors' replicas as if a watch had told of them. Time moves in `settle`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from bayplan.api.kinds import KINDS
from bayplan.api.meta import KubeObject
from bayplan.api.pod import Pod
from bayplan.app.live import LiveOptions, LiveScheduler
from bayplan.client.errors import NotSent
from bayplan.client.transport import ByteStream, Response, always
from bayplan.config.loading import default_config, load_config
from bayplan.config.profiles import resolve_profiles
from bayplan.framework.plugin import Plugin
from bayplan.framework.times import SAMPLED_SHARE
from bayplan.loop.observer import Observer
from bayplan.observe.clock import VirtualClock
from bayplan.plugins.intree import default_registry
from bayplan.testing.build import node, pod

__all__ = ["Call", "Loop", "RecordingTransport", "node", "pod", "refusal", "running"]


class Call(NamedTuple):
    method: str
    path: str
    body: Any


Answer = Callable[[Call], Response | Exception | None]


def refusal(code: int, reason: str = "", message: str = "no") -> Response:
    status = {"kind": "Status", "code": code, "reason": reason, "message": message}
    return Response(code, {}, msgspec.json.encode(status))


class RecordingTransport:
    """Says yes to everything, unless `answer` says something else."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.answer: Answer = lambda call: None
        self.hold: asyncio.Event | None = None
        """While set, bindings wait for it."""

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "",
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
        may_send: Callable[[], bool] = always,
    ) -> Response:
        if not may_send():
            raise NotSent(f"{method} {path}")
        call = Call(method, path, msgspec.json.decode(body) if body else None)
        self.calls.append(call)
        if self.hold is not None and path.endswith("/binding"):
            await self.hold.wait()
        answer = self.answer(call)
        if isinstance(answer, Exception):
            raise answer
        return answer or Response(200, {}, body or b"{}")

    def stream(self, path: str, *, query: Mapping[str, str] | None = None) -> ByteStream:
        raise AssertionError("nothing is watched here")

    async def close(self) -> None:
        """There is nothing to close."""

    @property
    def bindings(self) -> dict[str, str]:
        """Pod to node, of every binding that was asked for."""
        return {c.body["metadata"]["name"]: c.body["target"]["name"] for c in self.calls if c.path.endswith("/binding")}

    def patches(self, name: str) -> list[dict[str, Any]]:
        """What was written to a pod's status."""
        return [c.body["status"] for c in self.calls if c.path.endswith(f"/pods/{name}/status")]

    def events(self, reason: str) -> list[dict[str, Any]]:
        return [c.body for c in self.calls if c.path.endswith("/events") and c.body["reason"] == reason]


class Loop:
    def __init__(
        self,
        nodes: Iterable[KubeObject] = (),
        *,
        plugins: Sequence[type[Plugin]] = (),
        config: str = "",
        observers: Sequence[Observer] = (),
        is_leader: Callable[[], bool] = lambda: True,
        timed_share: float = SAMPLED_SHARE,
        transport: RecordingTransport | None = None,
    ) -> None:
        self.clock = VirtualClock()
        self.transport = transport or RecordingTransport()
        registry = default_registry()
        for plugin in plugins:
            registry.add(plugin)
        settings = load_config(config) if config else default_config()
        options = LiveOptions(clock=self.clock, observers=observers, is_leader=is_leader, timed_share=timed_share)
        profiles = resolve_profiles(settings, registry)
        self.live = LiveScheduler(self.transport, settings, profiles, registry, KINDS, options)
        self.put(*nodes)

    def put(self, *items: KubeObject) -> None:
        """The API server tells of these, new or changed."""
        for item in items:
            self.live.watching.reflectors[type(item)].replica.keep(item)

    def drop(self, *items: KubeObject) -> None:
        for item in items:
            self.live.watching.reflectors[type(item)].replica.drop(item.key)

    def told(self, name: str, namespace: str = "default") -> Pod:
        found = self.live.watching.pod(namespace, name)
        assert found is not None
        return found

    def change(self, name: str, **fields: Any) -> Pod:
        """Tell of a new version of a pod; fields by `spec_…`, `status_…` or `metadata_…`."""
        changed: Pod = msgspec.convert(msgspec.to_builtins(self.told(name)), Pod)
        for field, value in fields.items():
            part, _, attribute = field.partition("_")
            setattr(getattr(changed, part), attribute, value)
        changed.metadata.resource_version += "1"
        self.put(changed)
        return changed

    def confirm(self, *names: str) -> None:
        """The watch tells that these pods are where they were bound to."""
        for name in names:
            self.change(name, spec_node_name=self.transport.bindings[name])

    @property
    def queue(self) -> Any:
        return self.live.queue

    async def settle(self, seconds: float = 0.05) -> None:
        await self.clock.run_for(seconds)


@contextlib.asynccontextmanager
async def running(loop: Loop) -> AsyncIterator[Loop]:
    """Schedule while the block lasts, with everything that runs beside it except reflectors."""
    live = loop.live
    work = [live.scheduler.run(), live.status.run(), live.events.run(), live._shell.run_timers()]
    tasks = [asyncio.create_task(each) for each in work]
    try:
        await loop.settle()
        yield loop
    finally:
        live.scheduler.close()
        await live.tasks.finish(timeout=0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await live._extender_http.close()
